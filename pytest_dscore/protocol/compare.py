"""The honest protocol beside two shortcuts on the same folds: how optimistic they are on this data."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..errors import SettingsError
from ..figure import Figure
from .experiment import Experiment, Outcome, Selection, make_experiment
from .inputs import check_confidence, check_int
from .nested import as_data, cheap_intervals
from .parallel import Progress, Tally, run_jobs
from .splits import Fold, fold_seed, outer_folds


@dataclass(frozen=True, eq=False)
class ProtocolErrors:
    """Errors of one protocol.

    Parameters
    ----------
    error
        Mean over the folds, with the corrected interval.
    fold_errors
        Shape (J,).
    selected
        Parameters used in each fold.
    """

    error: Figure
    fold_errors: NDArray[np.float64]
    selected: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Bias:
    """Optimistic bias of a shortcut, paired fold by fold, **in percentage points**.

    Parameters
    ----------
    mean
        Mean of (internal - shortcut) error; positive: the shortcut flatters.
    se
        Its standard error over the folds, as in the paper's tables (folds counted as independent).
    p_value
        Wilcoxon signed-rank test, two-sided; 1 where no fold differs.
    """

    mean: float
    se: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} +- {self.se:.3f} points, p = {self.p_value:.3g}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three protocols on the same folds.

    Parameters
    ----------
    internal
        Selection anew in every fold (Knowl 6): the only one whose estimate can be trusted.
    external
        Selection once, on all the data, test rows included (Knowl 9).
    median
        Median of the parameters selected in the first folds (Knowl 7).
    bias
        ``"external"`` and ``"median"``, each against internal.
    seed
        As passed.
    """

    internal: ProtocolErrors
    external: ProtocolErrors
    median: ProtocolErrors
    bias: Mapping[str, Bias]
    seed: int

    def __str__(self) -> str:
        rows = ["protocol   error (%)          optimistic bias (points)"]
        for name in ("internal", "external", "median"):
            found: ProtocolErrors = getattr(self, name)
            spread = 100 * found.fold_errors.std(ddof=1) / np.sqrt(len(found.fold_errors))
            cell = f"{100 * found.error.value:.3f} +- {spread:.3f}"
            rows.append(f"{name:<10} {cell:<18} {self.bias.get(name, '')}".rstrip())
        return "\n".join(rows)


def compare_protocols(
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
    confidence: float = 0.95,
    median_folds: int = 5,
    progress: Progress | None = None,
) -> Comparison:
    """Run the internal, external and median protocols on the same folds and measure the bias of the shortcuts.

    Parameters
    ----------
    estimator, param_grid, X, y, outer, inner, groups, scoring, repeats, seed, n_jobs, confidence
        As in `nested_cv`. The estimator must select something: by `param_grid`, or itself as a search object.
    median_folds
        Number of first folds whose selections the median protocol uses, 5 in the paper.
    progress
        Called with (done, total) after each selection and each fit: four for every fold, and one on all rows.

    Returns
    -------
    Comparison

    Raises
    ------
    SettingsError
        As in `nested_cv`; nothing is selected; or there are fewer than 2 folds.

    References
    ----------
    Cawley and Talbot 2010, Knowls 6, 7 and 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> compared = compare_protocols(SVC(), {"C": [0.1, 1, 10]}, X, y, outer=5, inner=3)
    >>> sorted(compared.bias)
    ['external', 'median']
    """
    check_int(repeats, "repeats", 1)
    check_int(seed, "seed", 0)
    check_int(median_folds, "median_folds", 1)
    check_confidence(confidence)
    X, labels, group_array = as_data(X, y, groups)
    experiment = make_experiment(estimator, param_grid, X, labels, group_array, inner, scoring)
    parts = outer_folds(outer, X, labels, group_array, experiment.classify, repeats, seed)
    folds = [fold for part in parts for fold in part]
    # The seeds of nested_cv, so that "internal" here is the very number that nested_cv gives.
    seeds = [fold_seed(seed, r, k) for r, part in enumerate(parts) for k in range(len(part))]
    if len(folds) < 2:
        raise SettingsError("the protocols are compared over folds and there is one only: use at least 2.")
    tally = Tally(progress, 4 * len(folds) + 1)
    chosen = _select_all(experiment, folds, seeds, n_jobs, tally)
    everything = experiment.select(np.arange(len(labels)), fold_seed(seed, repeats), "all the data")
    tally.add()
    if not everything.params:
        raise SettingsError("nothing is selected, so there is no bias to measure: pass param_grid or a search object.")
    middle = median_selection(chosen[:median_folds])
    used = {"internal": chosen, "external": [everything] * len(folds), "median": [middle] * len(folds)}
    results = {}
    for name, selections in used.items():
        outcomes = _train_all(experiment, selections, folds, seeds, n_jobs, tally)
        figure = cheap_intervals([outcomes], [folds], confidence, group_array)["corrected"]
        errors = np.array([outcome.error for outcome in outcomes])
        results[name] = ProtocolErrors(figure, errors, tuple(outcome.selected for outcome in outcomes))
    honest = results["internal"].fold_errors
    bias = {name: paired_bias(honest, results[name].fold_errors) for name in ("external", "median")}
    return Comparison(results["internal"], results["external"], results["median"], bias, seed)


def paired_bias(internal: NDArray[np.float64], shortcut: NDArray[np.float64]) -> Bias:
    """Mean, standard error and Wilcoxon p-value of ``internal - shortcut`` over the folds, in percentage points.

    Parameters
    ----------
    internal, shortcut
        Fold errors as fractions, shape (J,), J >= 2, same folds.
    """
    gaps = 100 * (np.asarray(internal) - np.asarray(shortcut))
    # Rounding noise must not count as a difference to the rank test.
    gaps = np.where(np.abs(gaps) < 1e-10, 0.0, gaps)
    p_value = float(stats.wilcoxon(gaps).pvalue) if np.any(gaps) else 1.0
    return Bias(float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))), p_value)


def median_selection(chosen: Sequence[Selection]) -> Selection:
    """Coordinate-wise median of selected parameters; the most frequent value where they are not numbers.

    Of an even number of values the lower middle one is taken, so that the median is a value that some fold selected
    and stays valid (an integer, a member of the grid).
    """
    params: dict[str, Any] = {}
    for name in chosen[0].params:
        values = [selection.params[name] for selection in chosen if name in selection.params]
        if all(isinstance(v, (int, float, np.number, np.ndarray)) and not isinstance(v, bool) for v in values):
            middle = np.sort(np.array(values), axis=0)[(len(values) - 1) // 2]
            params[name] = middle if isinstance(values[0], np.ndarray) else middle.item()
        else:
            texts = [repr(value) for value in values]
            params[name] = values[texts.index(max(texts, key=texts.count))]
    return Selection(params, chosen[0].template)


def _select_all(
    experiment: Experiment, folds: Sequence[Fold], seeds: Sequence[int], n_jobs: int | None, tally: Tally
) -> list[Selection]:
    jobs = [
        partial(experiment.select, train, seed, f"outer fold {k}")
        for k, ((train, _), seed) in enumerate(zip(folds, seeds, strict=True))
    ]
    return run_jobs(jobs, n_jobs, tally)


def _train_all(
    experiment: Experiment,
    selections: Sequence[Selection],
    folds: Sequence[Fold],
    seeds: Sequence[int],
    n_jobs: int | None,
    tally: Tally,
) -> list[Outcome]:
    jobs = [
        partial(experiment.fixed, chosen, train, test, seed, f"outer fold {k}")
        for k, (chosen, (train, test), seed) in enumerate(zip(selections, folds, seeds, strict=True))
    ]
    return run_jobs(jobs, n_jobs, tally)
