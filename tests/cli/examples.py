"""A project with a ledger to ask about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.holdout.ledger import HoldoutIdentity, Use, open_ledger

N, MODELS = 1000, 12

SETTINGS = """
[tool.dscore.holdouts.digits-test]
data = "fixtures.digits:holdout"
epsilon = 0.04
"""


def outcomes(models: int = MODELS, n: int = N) -> NDArray[np.bool_]:
    """Models that fail on much the same examples, shape (models, n)."""
    rng = np.random.default_rng(0)
    hard = rng.random(n) < 0.15
    return hard ^ (rng.random((models, n)) < 0.02)


def identity(name: str = "digits-test", n: int = N, seed: int = 1) -> HoldoutIdentity:
    """A hold-out; one of the same seed and fewer examples is a part of it."""
    rng = np.random.default_rng(seed)
    return HoldoutIdentity.of(rng.random((N, 4))[:n], np.arange(N)[:n] % 10, name=name)


def record(
    root: Path, url: str = ".dscore/ledger", *, holdout: HoldoutIdentity | None = None, models: int = MODELS
) -> HoldoutIdentity:
    """Put uses on record, in the order of `outcomes`."""
    holdout = holdout or identity()
    uses = [
        Use.of(holdout, row[: holdout.n], model=f"{holdout.name}-{i}", commit="0123456789abcdef")
        for i, row in enumerate(outcomes(models))
    ]
    open_ledger(url, root=root).record_all(uses, holdout, lambda existing, new: "passed")
    return holdout


def declare(root: Path, text: str = SETTINGS) -> None:
    """Write pyproject.toml."""
    (root / "pyproject.toml").write_text(text, encoding="utf-8")
