"""Speed of PRESS and of nested_cv, each as a ratio within one run.

Run ``OMP_NUM_THREADS=1 python -m benchmarks.nested_cv_speed`` (a minute; ``--quick``: seconds; ``--folds 700``: fits
every leave-one-out fold, half an hour). Both sides of a ratio run in turn and are timed in processor time, so that
other work on the machine disturbs the ratio less; one thread keeps it free of how linear algebra spreads over cores.
"""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from pytest_dscore.protocol import loo_residuals, nested_cv, press


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Best of a few runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return float(best)


def press_speed(rows: int, n_lambdas: int, folds: int) -> None:
    """PRESS on a grid of lambdas against retraining without each row, and against scikit-learn's grid search.

    The slow sides run the first `folds` of the `rows` leave-one-out folds, and their time is multiplied.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    y = np.where(X[:, 0] + rng.normal(size=rows) > 0, 1.0, -1.0)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    lambdas = 2.0 ** np.linspace(-10, 10, n_lambdas)
    search = GridSearchCV(
        KernelRidge(kernel="precomputed"),
        {"alpha": lambdas},
        cv=list(LeaveOneOut().split(X))[:folds],
        scoring="neg_mean_squared_error",
        refit=False,
    )
    one = lambdas[n_lambdas // 2]
    before = seconds(lambda: press(K, y, lambdas), 3)
    retrained = seconds(lambda: retrain(K, y, one, folds))
    searched = seconds(lambda: search.fit(K, y))
    closed = max(before, seconds(lambda: press(K, y, lambdas), 3))
    gap = np.abs(loo_residuals(K, y, [one])[0, :folds] - retrain(K, y, one, folds)).max()
    print(f"PRESS, l = {rows}, {n_lambdas} lambdas: {closed:.3f} s")
    whole = retrained * rows / folds * n_lambdas
    print(
        f"  retraining without each row: {whole:.0f} s, {whole / closed:,.0f} x "
        f"(extrapolated from {folds} of {rows} rows and one lambda; residuals differ by at most {gap:.1g})"
    )
    whole = searched * rows / folds
    print(
        f"  GridSearchCV over KernelRidge (no bias) with LeaveOneOut: {whole:.0f} s, {whole / closed:,.0f} x "
        f"(extrapolated from {folds} of {rows} folds, all lambdas)"
    )


def retrain(K: NDArray[np.float64], y: NDArray[np.float64], ridge: float, folds: int) -> NDArray[np.float64]:
    """Leave-one-out residuals of the first `folds` rows, by solving the system without each of them."""
    rows = len(K)
    residuals = np.empty(folds)
    for i in range(folds):
        keep = np.arange(rows) != i
        system = np.ones((rows, rows))
        system[:-1, :-1] = K[np.ix_(keep, keep)] + ridge * np.eye(rows - 1)
        system[-1, -1] = 0
        solution = np.linalg.solve(system, np.r_[y[keep], 0.0])
        residuals[i] = y[i] - (K[i, keep] @ solution[:-1] + solution[-1])
    return residuals


def nested_overhead(rows: int, repeats: int) -> None:
    """nested_cv against GridSearchCV inside cross_val_score, on the same folds."""
    X, y = make_classification(rows, 10, random_state=0)
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}
    inner, outer = StratifiedKFold(5, shuffle=True, random_state=0), StratifiedKFold(10, shuffle=True, random_state=0)
    ours, theirs = [], []
    for _ in range(repeats):  # alternating, so that a busy machine hits both alike
        theirs.append(seconds(lambda: cross_val_score(GridSearchCV(SVC(), grid, cv=inner), X, y, cv=outer)))
        ours.append(seconds(lambda: nested_cv(SVC(), grid, X, y, outer=outer, inner=inner)))
    ratio = min(ours) / min(theirs)
    print(
        f"nested_cv of SVC, {rows} rows: {min(ours):.2f} s; scikit-learn's nesting {min(theirs):.2f} s: {ratio:.3f} x"
    )


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--folds", type=int, default=10, help="leave-one-out folds that the slow sides run")
    args = parser.parse_args()
    rows, n_lambdas = (200, 20) if args.quick else (700, 50)
    press_speed(rows, n_lambdas, min(args.folds, rows))
    nested_overhead(200 if args.quick else 600, 2 if args.quick else 5)


if __name__ == "__main__":
    main()
