"""Small hold-outs and outcomes that the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.holdout.ledger import HoldoutIdentity, Use

N = 100


def images(n: int = N, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images of shape (n, 4, 4) that are all different, and labels 0 to 4."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 4, 4), dtype=np.uint8), rng.integers(0, 5, n)


def holdout(name: str = "digits-test", n: int = N, seed: int = 0) -> HoldoutIdentity:
    """The identity of `images`."""
    return HoldoutIdentity.of(*images(n, seed), name=name)


def outcomes(model: int, n: int = N) -> NDArray[np.bool_]:
    """Outcomes that differ from model to model."""
    return np.random.default_rng([1_000_000, model]).random(n) < 0.3


def use(number: int, of: HoldoutIdentity, **given: Any) -> Use:
    """The use of a hold-out by the model of that number."""
    return Use.of(of, outcomes(number, of.n), **({"model": f"model-{number}", "ran_by": "test"} | given))
