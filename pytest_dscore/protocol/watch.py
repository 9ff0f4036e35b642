"""See which estimators are fitted on test rows while a protocol runs; used to name a leak, never to find one."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from .duplicates import row_hashes
from .inputs import n_rows
from .torch_watch import Training, single_hashes, watch_training

_METHODS = frozenset({"fit", "fit_transform", "partial_fit", "fit_resample"})
# Enough to see the pattern; a protocol that fits thousands of models must not be slowed down by hashing.
_MOST = 300


@dataclass(frozen=True)
class FitCall:
    """One call of a fit method.

    Parameters
    ----------
    name
        ``Class.method``.
    role
        ``"search"``, ``"selector"``, ``"resampler"``, ``"encoder"`` (a transformer that needs labels), ``"predictor"``,
        ``"network"`` (a torch module), ``"watched"`` (a torch module during whose training test rows were predicted) or
        ``"transformer"``.
    rows, test_rows
        Rows that it was given, and how many of them are test rows; -1 where the values are no longer recognisable but
        there are as many as in all the data.
    keys
        Hashes of the rows that a torch module was trained on.
    """

    name: str
    role: str
    rows: int
    test_rows: int
    keys: frozenset[bytes] = field(default=frozenset(), repr=False)

    @property
    def saw_test_rows(self) -> bool:
        """Whether test rows were among what it was fitted on."""
        return self.test_rows != 0

    def __str__(self) -> str:
        if self.test_rows < 0:
            return f"{self.name} was given {self.rows} rows, as many as there are in all"
        return f"{self.name} was given {self.rows} rows, {self.test_rows} of them test rows"


@contextmanager
def watch_fits(X: Any, train: Any, test: Any) -> Iterator[list[FitCall]]:
    """Record the calls of fit methods, and the torch modules that are trained, in this thread.

    Parameters
    ----------
    X
        The data, n rows.
    train, test
        Rows of the split. Test rows with an equal training row cannot be told apart and are left out.

    Yields
    ------
    list of FitCall
        Filled while the block runs, in order of the calls.
    """
    hashes = np.array(row_hashes(X))
    marks = set(hashes[test].tolist()) - set(hashes[train].tolist())
    calls: list[FitCall] = []
    total, shape = n_rows(X), np.shape(X)[1:]

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name not in _METHODS or len(calls) >= _MOST:
            return
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        if len(names) < 2 or names[0] != "self":
            return
        data = frame.f_locals.get(names[1])
        if not getattr(data, "shape", None) and not isinstance(data, (list, tuple)):
            return
        owner = frame.f_locals["self"]
        name = f"{type(owner).__name__}.{frame.f_code.co_name}"
        calls.append(FitCall(name, _role(owner, frame.f_code.co_name), n_rows(data), _test_rows(data)))

    def _test_rows(data: Any) -> int:
        if np.shape(data)[1:] == shape:
            found = sum(key in marks for key in row_hashes(data))
            if found:
                return found
        return -1 if n_rows(data) == total else 0

    before = sys.getprofile()
    with watch_training(X, lambda: len(calls)) as seen:
        sys.setprofile(profile)
        try:
            yield calls
        finally:
            sys.setprofile(before)
    training = seen()
    if training.modules:
        _add_networks(calls, training, X, train, test)


def _add_networks(calls: list[FitCall], training: Training, X: Any, train: Any, test: Any) -> None:
    """Insert the torch modules that were trained among the calls, each where it was last trained."""
    hashes = np.array(single_hashes(X))
    every, marks = set(hashes.tolist()), set(hashes[test].tolist()) - set(hashes[train].tolist())
    # The last first, so that the positions of the others stay right.
    for record in reversed(training.modules):
        keys = frozenset(record.seen)
        rows, found = len(keys), len(keys & marks)
        if rows <= len(every) and not keys & every:
            # The values were changed (scaled), so rows can only be counted: more than there are to train on?
            found = max(0, rows - len(train))
        calls.insert(
            record.position, FitCall(f"{type(record.module).__name__} in training", "network", rows, found, keys)
        )
    watched = training.watched - set(hashes[train].tolist())
    if watched:
        name = f"{type(training.modules[-1].module).__name__} between steps of training"
        calls.append(FitCall(name, "watched", len(watched), len(watched)))


def culprit(calls: list[FitCall]) -> tuple[str, FitCall] | None:
    """Kind of leak that the calls suggest, and the call; None where no fit saw test rows.

    Of several, the first of: a search, a resampler, a selector, an encoder of labels. A predictor fitted on test rows
    is ``"overlap"`` if it is the last one fitted (the one that predicts), otherwise part of a selection; a torch module
    that is not the last one makes features. A transformer that needs no labels is ``"preprocessing"``.
    """
    calls = [call for call in calls if call.role != "watched"]
    seen = [call for call in calls if call.saw_test_rows]
    kinds = {"search": "selection", "resampler": "overlap", "selector": "selection", "encoder": "labels"}
    for role, kind in kinds.items():
        for call in seen:
            if call.role == role:
                return kind, call
    predictors = [call for call in calls if call.role in ("predictor", "network")]
    tainted = [call for call in predictors if call.saw_test_rows]
    if tainted and predictors[-1].saw_test_rows:
        return "overlap", predictors[-1]
    for call in tainted:
        if call.role == "predictor":
            return "selection", call
    seen = [call for call in seen if call.role != "network"] + tainted
    return ("preprocessing", seen[0]) if seen else None


def _role(owner: Any, method: str) -> str:
    if method == "fit_resample":
        return "resampler"
    if hasattr(owner, "cv_results_") or hasattr(owner, "param_grid") or hasattr(owner, "param_distributions"):
        return "search"
    if hasattr(owner, "get_support"):
        # VarianceThreshold and its like score no column against the labels.
        return "selector" if hasattr(owner, "score_func") or hasattr(owner, "estimator") else "transformer"
    if hasattr(owner, "steps") or hasattr(owner, "transformers"):
        return "container"  # a pipeline: its parts are seen one by one
    if is_classifier(owner) or is_regressor(owner):
        return "predictor"
    return "encoder" if _needs_labels(owner) else "transformer"


def _needs_labels(owner: Any) -> bool:
    try:
        return bool(get_tags(owner).target_tags.required)
    except Exception:  # noqa: BLE001 - anyone's class: what it lacks must not end the probe
        return False
