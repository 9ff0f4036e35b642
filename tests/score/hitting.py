"""Results made from given hits, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.score import DScore
from pytest_dscore.score.engine import Hits
from pytest_dscore.score.formulas import Form
from pytest_dscore.score.result import Recipe, summarise


def result_of(
    hits: NDArray[Any],
    classes: int = 5,
    form: Form = "bounded",
    replicates: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> DScore:
    """The result for hits (2 n^2 + 1, N)."""
    n = round(((len(hits) - 1) / 2) ** 0.5)
    measured = Hits(np.asarray(hits, dtype=bool), classes, {}, (), "cpu")
    return summarise(measured, Recipe(n, "delete", form, (0, 0), (0.0,), False, replicates, confidence, seed))


def hits_for(tenths: Sequence[int]) -> NDArray[Any]:
    """Hits of 10 examples: pass k gets ``tenths[k]`` of them right."""
    return np.array([[example < right for example in range(10)] for right in tenths])


def correlated_hits(count: int, passes: int, seed: int) -> NDArray[Any]:
    """Hits (passes, count) that go together, as an example that is hard for one pass is hard for the others."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(1.0, 1.0, size=count)
    strength = np.concatenate([[0.5], rng.uniform(-1.0, 0.3, size=passes - 1)])
    return np.asarray(ease + strength[:, None] + rng.normal(0.0, 0.7, size=(passes, count)) > 0)
