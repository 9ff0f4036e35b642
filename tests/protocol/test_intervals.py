"""The intervals against numbers worked out another way, and their coverage by simulation."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from pytest_dscore.protocol.intervals import corrected_interval, mean_variance, naive_interval, nested_interval


def test_naive_is_scipys_standard_error() -> None:
    losses = np.array([0, 1, 0, 0, 1, 0, 0, 0, 1, 0.0])
    found = naive_interval(losses, 0.9)
    assert found.upper - found.value == pytest.approx(1.6448536269514722 * stats.sem(losses))
    assert found.value == pytest.approx(0.3)
    assert not found.larger_is_better


def test_corrected_by_hand() -> None:
    # J = 4, S^2 = 1/60 * ... : errors 0.1 0.2 0.3 0.4, variance 1/60, n_test/n_train = 1/3, t_3(0.975) = 3.182446.
    found = corrected_interval([0.1, 0.2, 0.3, 0.4], 1 / 3, 0.95)
    assert found.upper == pytest.approx(0.25 + 3.1824463 * np.sqrt((0.25 + 1 / 3) / 60), abs=1e-7)


def test_corrected_of_one_fold_has_no_ends() -> None:
    assert np.isnan(corrected_interval([0.2], 0.5).upper)


def test_grouped_variance_of_copies_is_that_of_one_each() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    assert mean_variance(np.repeat(values, 4), np.repeat(np.arange(30), 4)) == pytest.approx(stats.sem(values) ** 2)


def slow_bates(folds: list[np.ndarray], X: np.ndarray, y: np.ndarray, z: float) -> tuple[float, float, float]:
    """Algorithm 1 of the paper, loop by loop, for the mean predictor and squared error; no code in common."""
    a, b, inner, plain = [], [], [], []
    everything = np.arange(len(y))
    for k, held in enumerate(folds):
        rest = np.setdiff1d(everything, held)
        e_out = (y[held] - y[rest].mean()) ** 2
        e_in = []
        for j, fold in enumerate(folds):
            if j != k:
                train = np.setdiff1d(rest, fold)
                e_in += list((y[fold] - y[train].mean()) ** 2)
        a.append((np.mean(e_in) - np.mean(e_out)) ** 2)
        b.append(np.var(e_out, ddof=1) / len(held))
        inner += e_in
        plain += list(e_out)
    K, n = len(folds), len(y)
    root = np.sqrt(max(0.0, np.mean(a) - np.mean(b)))
    naive = np.std(inner, ddof=1) / np.sqrt(n * (K - 1) / K)
    root = min(max(root, naive), np.sqrt(K) * naive)
    value = np.mean(inner) - (1 + ((K - 2) / K) ** 1.5) * (np.mean(inner) - np.mean(plain))
    half = z * np.sqrt((K - 1) / K) * root
    return value, value - half, value + half


def losses_of_mean(folds: list[np.ndarray], y: np.ndarray) -> tuple[dict, list]:
    everything = np.arange(len(y))
    pairs = {}
    for j, k in combinations(range(len(folds)), 2):
        mean = y[np.setdiff1d(everything, np.r_[folds[j], folds[k]])].mean()
        pairs[j, k] = ((y[folds[j]] - mean) ** 2, (y[folds[k]] - mean) ** 2)
    singles = [(y[fold] - y[np.setdiff1d(everything, fold)].mean()) ** 2 for fold in folds]
    return pairs, singles


@pytest.mark.parametrize("seed", range(5))
def test_nested_equals_the_algorithm_of_the_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=40) ** 3
    folds = np.array_split(rng.permutation(40), 5)
    pairs, singles = losses_of_mean(folds, y)
    found = nested_interval([pairs], [singles], 0.9)
    expected = slow_bates(folds, y[:, None], y, 1.6448536269514722)
    assert (found.value, found.lower, found.upper) == pytest.approx(expected, abs=1e-12)


def test_coverage() -> None:
    """Least squares with nearly as many coefficients as rows: the case where Bates et al. show naive intervals fail.

    Nominal 90 %. The truth of each draw is the error of the model fitted to all its rows, known in closed form.
    """
    trials, n, p, n_folds, repeats = 300, 60, 20, 6, 5
    covered = {"naive": 0, "corrected": 0, "nested": 0}
    width = dict.fromkeys(covered, 0.0)
    rng = np.random.default_rng(1)
    for _ in range(trials):
        X, noise = rng.normal(size=(n, p)), rng.normal(size=n)
        hat = X @ np.linalg.inv(X.T @ X) @ X.T
        residual = noise - hat @ noise  # the true coefficients are 0, without loss of generality
        beta = np.linalg.lstsq(X, noise, rcond=None)[0]
        truth = 1 + beta @ beta
        pair_losses, fold_losses = [], []
        for _ in range(repeats):
            folds = np.array_split(rng.permutation(n), n_folds)

            def held_out(rows: np.ndarray, hat: np.ndarray = hat, residual: np.ndarray = residual) -> np.ndarray:
                # Residuals of the rows left out together, without refitting (block form of leave-one-out).
                block = np.eye(len(rows)) - hat[np.ix_(rows, rows)]
                return np.linalg.solve(block, residual[rows]) ** 2

            fold_losses.append([held_out(fold) for fold in folds])
            pairs = {}
            for j, k in combinations(range(n_folds), 2):
                both = held_out(np.r_[folds[j], folds[k]])
                pairs[j, k] = (both[: len(folds[j])], both[len(folds[j]) :])
            pair_losses.append(pairs)
        errors = np.array([losses.mean() for losses in fold_losses[0]])
        figures = {
            "naive": naive_interval(np.concatenate(fold_losses[0]), 0.9),
            "corrected": corrected_interval(errors, 1 / (n_folds - 1), 0.9),
            "nested": nested_interval(pair_losses, fold_losses, 0.9),
        }
        for name, figure in figures.items():
            covered[name] += bool(figure.lower <= truth <= figure.upper)
            width[name] += (figure.upper - figure.lower) / trials
    for name, count in covered.items():
        print(f"{name}: covers {count / trials:.1%} (nominal 90 %), mean width {width[name]:.2f}")
    assert covered["nested"] / trials >= 0.88
    assert covered["nested"] > covered["naive"]
