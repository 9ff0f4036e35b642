"""Three intervals round a cross-validated error: naive, Nadeau-Bengio corrected, and nested (Bates et al. 2021)."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..figure import Figure

Floats = NDArray[np.float64]


def mean_variance(losses: ArrayLike, groups: Any = None) -> float:
    """Estimated variance of the mean of `losses`.

    Parameters
    ----------
    losses
        Shape (n,).
    groups
        Shape (n,): rows of one group are counted as dependent (cluster-robust), or None for independent rows.

    Returns
    -------
    float
        ``nan`` where there are fewer than two independent units.
    """
    values = np.asarray(losses, dtype=np.float64)
    if groups is None:
        return float(values.var(ddof=1) / len(values)) if len(values) > 1 else np.nan
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, weights=values - values.mean())
    count = len(sums)
    return float(count / (count - 1) * (sums**2).sum() / len(values) ** 2) if count > 1 else np.nan


def naive_interval(losses: ArrayLike, confidence: float = 0.95, groups: Any = None) -> Figure:
    """Mean +- z standard errors, as if the losses were independent.

    They are not: each row was also used to train the models of the other folds. The interval is too short; it is here
    because everybody prints it.

    Parameters
    ----------
    losses
        One loss per row (or per fold, where the score is not a mean over rows), shape (n,).
    confidence
        Nominal coverage in (0, 1).
    groups
        See `mean_variance`.

    References
    ----------
    Bates, Hastie and Tibshirani 2021, section 2 ("naive" intervals).
    """
    values = np.asarray(losses, dtype=np.float64)
    half = _z(confidence) * np.sqrt(mean_variance(values, groups))
    return _figure(float(values.mean()), half, confidence)


def corrected_interval(fold_errors: ArrayLike, test_share: float, confidence: float = 0.95) -> Figure:
    """Nadeau and Bengio's corrected resampled t interval.

    The variance of the fold errors S^2 is multiplied by ``1 / J + n_test / n_train`` instead of 1 / J, because training
    parts overlap.

    Parameters
    ----------
    fold_errors
        Shape (J,), J >= 2; all folds of all repeats.
    test_share
        n_test / n_train, > 0 (mean over the folds).
    confidence
        Nominal coverage in (0, 1).

    Returns
    -------
    Figure
        With ``nan`` ends where J is 1.

    References
    ----------
    Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52, equation 7.
    """
    errors = np.asarray(fold_errors, dtype=np.float64)
    count = len(errors)
    if count < 2:
        return _figure(float(errors.mean()), np.nan, confidence)
    scale = np.sqrt((1 / count + test_share) * errors.var(ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * scale
    return _figure(float(errors.mean()), half, confidence)


def nested_interval(
    pair_losses: Sequence[Mapping[tuple[int, int], tuple[Floats, Floats]]],
    fold_losses: Sequence[Sequence[Floats]],
    confidence: float = 0.95,
    fold_groups: Sequence[Sequence[Any]] | None = None,
) -> Figure:
    """Interval of Bates, Hastie and Tibshirani (2021) from nested cross-validation.

    For each outer fold k, cross-validation among the other folds estimates an error that fold k, which took no part in
    it, then checks: ``(mean(e_in) - mean(e_out))^2`` less the variance of ``mean(e_out)`` is an estimate of the squared
    error of cross-validation itself. Its root, held between 1 and sqrt(K) naive standard errors, is the width.

    Parameters
    ----------
    pair_losses
        Per repeat: for folds j < k, trained without both, losses on the rows of j and on the rows of k.
    fold_losses
        Per repeat: for each fold, trained without it, the losses on its rows.
    confidence
        Nominal coverage in (0, 1).
    fold_groups
        Per repeat and fold, the groups of its rows: they enter the variances as dependent.

    Returns
    -------
    Figure
        Its value is corrected for the bias of training on fewer rows, so it is not quite the mean of the folds.

    References
    ----------
    Bates, Hastie and Tibshirani 2021, Cross-validation: what does it estimate and how well does it do it?, algorithm 1;
    the bias correction ``(1 + ((K - 2) / K)^1.5) (Err_ncv - Err_cv)`` is that of the authors' own R package.
    """
    gaps, noises, inside, inside_groups = [], [], [], []
    for r, (pairs, folds) in enumerate(zip(pair_losses, fold_losses, strict=True)):
        for k, out in enumerate(folds):
            parts = [(j, pairs[min(j, k), max(j, k)][int(j > k)]) for j in range(len(folds)) if j != k]
            e_in = np.concatenate([losses for _, losses in parts])
            groups = None if fold_groups is None else fold_groups[r][k]
            gaps.append((e_in.mean() - out.mean()) ** 2)
            noises.append(mean_variance(out, groups))
            inside.append(e_in)
            if fold_groups is not None:
                inside_groups.append(np.concatenate([fold_groups[r][j] for j, _ in parts]))
    n_folds, rows = len(fold_losses[0]), sum(len(losses) for losses in fold_losses[0])
    if fold_groups is None:
        row_variance = float(np.concatenate(inside).var(ddof=1))
    else:
        # The variance per row that would give the cluster-robust variance of each inner mean.
        per_fold = [mean_variance(e, g) * len(e) for e, g in zip(inside, inside_groups, strict=True)]
        row_variance = float(np.mean(per_fold))
    naive_inner = np.sqrt(row_variance / (rows * (n_folds - 1) / n_folds))
    mean_squared = max(0.0, float(np.mean(gaps) - np.nanmean(noises)))
    inflation = 1.0 if naive_inner == 0 else float(np.clip(np.sqrt(mean_squared) / naive_inner, 1, np.sqrt(n_folds)))
    nested = float(np.concatenate(inside).mean())
    plain = float(np.mean([np.concatenate(list(folds)).mean() for folds in fold_losses]))
    value = nested - (1 + ((n_folds - 2) / n_folds) ** 1.5) * (nested - plain)
    return _figure(value, _z(confidence) * inflation * np.sqrt(row_variance / rows), confidence)


class Intervals(Mapping[str, Figure]):
    """The three intervals by name; the dear one, ``"nested"``, is computed when it is first asked for.

    Parameters
    ----------
    ready
        Intervals at hand.
    compute_nested
        Called once for ``"nested"``; may raise where that interval is not defined.
    """

    def __init__(self, ready: Mapping[str, Figure], compute_nested: Callable[[], Figure]) -> None:
        self._ready = dict(ready)
        self._compute_nested = compute_nested

    def __getitem__(self, name: str) -> Figure:
        if name == "nested" and name not in self._ready:
            self._ready[name] = self._compute_nested()
        return self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("naive", "corrected", "nested"))

    def __len__(self) -> int:
        return 3


def _z(confidence: float) -> float:
    return float(stats.norm.ppf((1 + confidence) / 2))


def _figure(value: float, half: Any, confidence: float) -> Figure:
    return Figure(value, float(value - half), float(value + half), larger_is_better=False, confidence=confidence)
