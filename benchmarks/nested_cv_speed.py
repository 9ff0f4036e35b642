"""Speed of PRESS and of nested_cv, each as a ratio within one run.

Run it alone: ``python benchmarks/nested_cv_speed.py``. Processor time is measured, which a busy machine disturbs less.
Set OMP_NUM_THREADS=1 to keep the ratios free of how the linear algebra spreads over cores.
"""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from pytest_dscore.protocol import nested_cv, press


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Best of a few runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return float(best)


def press_speed(rows: int, n_lambdas: int, share: int) -> None:
    """PRESS on a grid of lambdas against retraining without each row, and against scikit-learn's grid search."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    y = np.where(X[:, 0] + rng.normal(size=rows) > 0, 1.0, -1.0)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    lambdas = 2.0 ** np.linspace(-10, 10, n_lambdas)
    closed = seconds(lambda: press(K, y, lambdas), 3)

    def retrain() -> None:
        for i in range(share):
            keep = np.arange(rows) != i
            system = np.ones((rows, rows))
            system[:-1, :-1] = K[np.ix_(keep, keep)] + lambdas[0] * np.eye(rows - 1)
            system[-1, -1] = 0
            np.linalg.solve(system, np.r_[y[keep], 0.0])

    full = seconds(retrain) * rows / share * n_lambdas
    print(f"PRESS, l = {rows}, {n_lambdas} lambdas: {closed:.3f} s")
    print(f"  retraining: {full:.0f} s, {full / closed:,.0f} x (extrapolated from {share} of {rows} rows, one lambda)")
    one = GridSearchCV(
        KernelRidge(kernel="precomputed"), {"alpha": lambdas[:1]}, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    )
    few = max(rows // 10, 20)
    part = seconds(lambda: one.fit(K[:few, :few], y[:few]))
    print(f"  GridSearchCV over KernelRidge with LeaveOneOut at l = {few}, one lambda: {part:.2f} s")
    ours = seconds(lambda: press(K[:few, :few], y[:few], lambdas[:1]), 3)
    print(f"  PRESS for the same: {ours * 1000:.2f} ms, {part / ours:,.0f} x")


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
    quick = parser.parse_args().quick
    press_speed(*((200, 20, 10) if quick else (700, 50, 10)))
    nested_overhead(200 if quick else 600, 2 if quick else 5)


if __name__ == "__main__":
    main()
