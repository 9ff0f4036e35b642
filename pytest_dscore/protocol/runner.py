"""Run somebody's protocol on changed data, count the runs, and compare predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DScoreError, SettingsError
from .experiment import seeded
from .inputs import take_rows
from .parallel import Tally
from .perturb import fresh
from .splits import Fold, Rows
from .torch_seed import run_seeded

Predictions = NDArray[Any]
# Differences below this share of the spread of the predictions are rounding, not information.
_ROUNDING = 1e-9


@dataclass
class Runner:
    """Runs the protocol on one split, counts the runs, and turns exceptions under perturbation into notes."""

    protocol: Callable[..., Any]
    X: Any
    y: NDArray[Any]
    seed: int
    max_runs: int
    tally: Tally
    runs: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Runs that the budget still allows."""
        return self.max_runs - self.runs

    def __call__(self, split: Fold, X: Any = None, y: Any = None) -> Predictions:
        """Predictions for the test rows of `split`, with changed features or labels if given."""
        self.runs += 1
        train, test = split

        def run() -> Predictions:
            data = fresh(self.X if X is None else X)
            labels = (self.y if y is None else y).copy()
            return np.array(self.protocol(data, labels, train.copy(), test.copy(), self.seed))

        try:
            found = run_seeded(run, self.seed)
        finally:
            self.tally.add()
        if found.ndim == 0 or len(found) != len(test):
            raise SettingsError(
                f"the protocol returned predictions of shape {found.shape} for {len(test)} test rows: return one each."
            )
        return found

    def attempt(self, what: str, split: Fold, X: Any = None, y: Any = None) -> Predictions | None:
        """As a call, but None (and a note) where the protocol raises."""
        try:
            return self(split, X, y)
        except DScoreError:
            raise
        except Exception as error:  # noqa: BLE001 - anyone's code, given data that it never expected
            self.notes.append(f"{what}: the protocol raised {type(error).__name__}: {str(error)[:120]}")
            return None


def moved(before: Predictions, after: Predictions) -> NDArray[np.bool_]:
    """Which predictions differ, shape (n_test,): labels exactly, numbers beyond rounding."""
    if before.shape != after.shape:
        return np.ones(len(before), dtype=bool)
    if before.dtype.kind == "f" and after.dtype.kind == "f":
        finite = before[np.isfinite(before)]
        scale = _ROUNDING * max(float(np.ptp(finite)), float(np.abs(finite).max()), 1e-300) if finite.size else 0.0
        different = ~(np.abs(before - after) <= scale) & ~(np.isnan(before) & np.isnan(after)) & (before != after)
    else:
        different = before != after
    rows: NDArray[np.bool_] = np.asarray(different).reshape(len(before), -1).max(axis=1)
    return rows


def as_callable(protocol: Any) -> Callable[..., Any]:
    """A protocol as a callable: estimators are fitted on the training rows, with their seeds set.

    Raises
    ------
    SettingsError
        It is neither an estimator nor callable.
    """
    if hasattr(protocol, "fit") and not isinstance(protocol, type):

        def fit_then_predict(X: Any, y: Any, train: Rows, test: Rows, seed: int) -> Any:
            return seeded(protocol, seed).fit(take_rows(X, train), y[train]).predict(take_rows(X, test))

        return fit_then_predict
    if isinstance(protocol, type) or not callable(protocol):
        raise SettingsError(
            f"{protocol!r} is neither a function nor an estimator: pass a callable (X, y, train, test, seed) -> "
            "predictions, or an instance with fit and predict."
        )
    return protocol  # type: ignore[no-any-return]
