"""Nested cross-validation: model selection anew in every outer fold, and an interval with every estimate."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..figure import Figure
from .experiment import Experiment, Outcome, make_experiment
from .inputs import check_confidence, check_int, check_lengths, labels_array, nearest
from .intervals import Intervals, corrected_interval, naive_interval, nested_interval
from .parallel import Progress, Tally, run_jobs
from .splits import Fold, Rows, draws_at_random, fold_seed, is_partition, outer_folds
from .stability import ParamSelection, selection_stability

INTERVALS = ("naive", "corrected", "nested")


@dataclass(frozen=True, eq=False)
class NestedResult:
    """Error of a learning procedure, model selection included.

    Parameters
    ----------
    error
        Mean over the outer folds with the interval that was asked for (``1 - score``, or ``-score`` for ``neg_*``).
    fold_errors
        Shape (repeats * outer folds,), repeat by repeat.
    selected
        Parameters selected in each fold; empty mappings where nothing is selected.
    intervals
        ``"naive"``, ``"corrected"`` and ``"nested"``; the last is computed when it is first read, and costs
        ``nested_repeats * (K (K - 1) / 2 + K)`` further selections and fits.
    stability
        How often each value won.
    scoring, seed, repeats
        As passed: the same call gives the same number.
    """

    error: Figure
    fold_errors: NDArray[np.float64]
    selected: tuple[dict[str, Any], ...]
    intervals: Intervals = field(repr=False)
    stability: tuple[ParamSelection, ...]
    scoring: Any
    seed: int
    repeats: int

    def __str__(self) -> str:
        lines = [f"error {self.error} over {len(self.fold_errors)} outer folds"]
        return "\n".join(lines + [f"  {param}" for param in self.stability])


def nested_cv(
    estimator: Any,
    param_grid: Any,
    X: Any,
    y: Any,
    outer: Any = 10,
    inner: Any = 5,
    groups: Any = None,
    scoring: Any = "accuracy",
    repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = 1,
    *,
    interval: str = "corrected",
    confidence: float = 0.95,
    nested_repeats: int = 10,
    progress: Progress | None = None,
) -> NestedResult:
    """Estimate the error of "select, then train" by nested cross-validation (the internal protocol).

    Parameters
    ----------
    estimator
        scikit-learn compatible estimator or search object; or a callable
        ``(X, y, train, test, seed, **params) -> predictions on the test rows``.
    param_grid
        ``{name: [values, ...]}`` (or a list of such) searched anew in every outer fold; None where the estimator
        searches itself or nothing is selected.
    X, y
        n rows: array, sparse matrix, pandas or polars frame; n labels of any type.
    outer, inner
        Number of folds (>= 2), a scikit-learn splitter, or (outer only) a list of (train rows, test rows).
    groups
        One group per row; no group may be on both sides of a fold.
    scoring
        scikit-learn scorer name or callable ``(estimator, X, y) -> float``.
    repeats
        Number of times the whole is repeated on new folds.
    seed
        Integer >= 0; sets the folds and every ``random_state`` that is None.
    n_jobs
        Outer folds at a time, through joblib; None: what ``joblib.parallel_config`` says.
    interval
        Which interval ``error`` carries: ``"corrected"``, ``"naive"`` or ``"nested"``.
    confidence
        Nominal coverage, in (0, 1).
    nested_repeats
        Partitions that the ``"nested"`` interval averages over, if it is asked for.
    progress
        Called with (done, total) after each outer fold, in the order in which they finish; ``interval="nested"`` raises
        the total by its own fits.

    Returns
    -------
    NestedResult

    Raises
    ------
    SettingsError
        Something in the input cannot be used; the message says what, where, and what to do.

    References
    ----------
    Cawley and Talbot 2010, Knowl 6; Nadeau and Bengio 2003; Bates, Hastie and Tibshirani 2021.

    Notes
    -----
    Before a callable is called, torch's global generators are set from the fold's seed; afterwards they are put back.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> result = nested_cv(SVC(), {"C": [0.1, 1, 10]}, X, y, outer=5, inner=3)
    >>> bool(result.error.value < 0.1)
    True
    """
    _check_settings(interval, repeats, seed, nested_repeats)
    check_confidence(confidence)
    X, labels, group_array = as_data(X, y, groups)
    experiment = make_experiment(estimator, param_grid, X, labels, group_array, inner, scoring)
    folds = outer_folds(outer, X, labels, group_array, experiment.classify, repeats, seed)
    tally = Tally(progress, sum(len(part) for part in folds))
    outcomes = run_folds(experiment, folds, seed, n_jobs, tally)
    ready = cheap_intervals(outcomes, folds, confidence, group_array)
    losses = [[outcome.losses for outcome in part] for part in outcomes]
    later = tally if interval == "nested" else None  # read from the result, it has nobody to tell
    dear = partial(_nested, experiment, folds, losses, outer, nested_repeats, seed, n_jobs, confidence, later)
    intervals = Intervals(ready, dear)
    flat = [outcome for part in outcomes for outcome in part]
    selected = tuple(outcome.selected for outcome in flat)
    errors = np.array([outcome.error for outcome in flat])
    stability = selection_stability(selected)
    return NestedResult(intervals[interval], errors, selected, intervals, stability, scoring, seed, repeats)


def as_data(X: Any, y: Any, groups: Any) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """X (lists become arrays), labels and groups as arrays, of matching lengths.

    Raises
    ------
    SettingsError
        Lengths differ, or labels are missing.
    """
    data = np.asarray(X) if isinstance(X, (list, tuple)) else X
    labels = labels_array(y)
    return data, labels, check_lengths(data, labels, groups)


def run_folds(
    experiment: Experiment, folds: Sequence[Sequence[Fold]], seed: int, n_jobs: int | None, tally: Tally | None = None
) -> list[list[Outcome]]:
    """Run the internal protocol on every fold of every repeat, in parallel."""
    places = [(r, k) for r, part in enumerate(folds) for k in range(len(part))]
    jobs = [partial(experiment.run, *folds[r][k], fold_seed(seed, r, k), _where(r, k, len(folds))) for r, k in places]
    flat = run_jobs(jobs, n_jobs, tally)
    return [[outcome for outcome, place in zip(flat, places, strict=True) if place[0] == r] for r in range(len(folds))]


def cheap_intervals(
    outcomes: Sequence[Sequence[Outcome]],
    folds: Sequence[Sequence[Fold]],
    confidence: float,
    groups: NDArray[Any] | None,
) -> dict[str, Figure]:
    """Naive and corrected intervals, which need no further fits."""
    errors = np.array([outcome.error for part in outcomes for outcome in part])
    shares = [len(test) / len(train) for part in folds for train, test in part]
    corrected = corrected_interval(errors, float(np.mean(shares)), confidence)
    rows = np.concatenate([test for part in folds for _, test in part])
    if outcomes[0][0].losses is None:
        return {"naive": naive_interval(errors, confidence), "corrected": corrected}
    losses = np.concatenate([outcome.losses for part in outcomes for outcome in part if outcome.losses is not None])
    tested, codes = np.unique(rows, return_inverse=True)
    # A row that was tested in several repeats is one observation still.
    per_row = np.bincount(codes, weights=losses) / np.bincount(codes)
    naive = naive_interval(per_row, confidence, None if groups is None else groups[tested])
    half = (naive.upper - naive.lower) / 2
    mean = float(errors.mean())
    centred = Figure(mean, mean - half, mean + half, larger_is_better=False, confidence=confidence)
    return {"naive": centred, "corrected": corrected}


def _nested(
    experiment: Experiment,
    folds: list[list[Fold]],
    losses: list[list[Any]],
    outer: Any,
    nested_repeats: int,
    seed: int,
    n_jobs: int | None,
    confidence: float,
    tally: Tally | None,
) -> Figure:
    """Interval of Bates et al.: train without each pair of folds, on as many partitions as can be drawn."""
    rows = len(experiment.y)
    if losses[0][0] is None:
        raise SettingsError(
            f"the 'nested' interval needs a loss per row, which scoring={experiment.scoring!r} has not: use "
            "interval='corrected', or scoring='accuracy'."
        )
    if len(folds[0]) < 3 or not is_partition(folds[0], rows) or min(len(test) for _, test in folds[0]) < 2:
        raise SettingsError(
            "the 'nested' interval needs K-fold cross-validation with at least 3 folds of at least 2 rows (each row "
            "tested exactly once): use interval='corrected' with this splitter."
        )
    grouped_number = experiment.groups is not None and not experiment.classify
    wanted = nested_repeats if draws_at_random(outer) and not grouped_number else len(folds)
    if wanted > len(folds):
        folds = outer_folds(outer, experiment.X, experiment.y, experiment.groups, experiment.classify, wanted, seed)
    places = [(r, j, k) for r, part in enumerate(folds) for j, k in combinations(range(len(part)), 2)]
    if tally is not None:
        tally.total += len(places) + sum(len(part) for part in folds[len(losses) :])
    losses = losses + _losses(experiment, folds, len(losses), seed, n_jobs, tally)
    jobs = [
        partial(_pair, experiment, folds[r][j][1], folds[r][k][1], fold_seed(seed, r, j, k), f"folds {j} and {k}")
        for r, j, k in places
    ]
    pairs: list[dict[tuple[int, int], Any]] = [{} for _ in folds]
    for (r, j, k), pair in zip(places, run_jobs(jobs, n_jobs, tally), strict=True):
        pairs[r][j, k] = pair
    groups = experiment.groups
    fold_groups = None if groups is None else [[groups[test] for _, test in part] for part in folds]
    return nested_interval(pairs, losses, confidence, fold_groups)


def _losses(
    experiment: Experiment, folds: list[list[Fold]], done: int, seed: int, n_jobs: int | None, tally: Tally | None
) -> list[list[Any]]:
    """Losses of the further repeats, after the first `done`, with the seeds that they would have had there."""
    places = [(r, k) for r in range(done, len(folds)) for k in range(len(folds[r]))]
    jobs = [partial(experiment.run, *folds[r][k], fold_seed(seed, r, k), _where(r, k, len(folds))) for r, k in places]
    found = run_jobs(jobs, n_jobs, tally)
    return [
        [o.losses for o, place in zip(found, places, strict=True) if place[0] == r] for r in range(done, len(folds))
    ]


def _pair(experiment: Experiment, first: Rows, second: Rows, seed: int, where: str) -> tuple[Any, Any]:
    train = np.setdiff1d(np.arange(len(experiment.y)), np.concatenate([first, second]))
    losses = experiment.run(train, np.concatenate([first, second]), seed, where).losses
    assert losses is not None  # checked by the caller
    return losses[: len(first)], losses[len(first) :]


def _where(repeat: int, fold: int, repeats: int) -> str:
    return f"outer fold {fold}" if repeats == 1 else f"repeat {repeat}, outer fold {fold}"


def _check_settings(interval: Any, repeats: Any, seed: Any, nested_repeats: Any) -> None:
    check_int(repeats, "repeats", 1)
    check_int(seed, "seed", 0)
    check_int(nested_repeats, "nested_repeats", 1)
    if interval not in INTERVALS:
        hint = nearest(str(interval), INTERVALS) or ": use naive, corrected or nested."
        raise SettingsError(f"interval={interval!r} is unknown{hint}")
