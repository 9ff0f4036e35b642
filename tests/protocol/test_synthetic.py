"""The paper's synthetic benchmark: its Bayes error, and over-fitting of the selection criterion."""

# mypy: disable-error-code="type-arg"
from __future__ import annotations

import numpy as np

from pytest_dscore.protocol import KernelRidgeClassifier, KernelRidgePress

CENTRES = np.array([[-0.7, 0.3], [0.3, 0.3], [-0.3, 0.7], [0.4, 0.7]])


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    which = rng.integers(0, 4, n)
    return CENTRES[which] + 0.2 * rng.normal(size=(n, 2)), np.where(which < 2, -1, 1)


def test_a_good_fit_comes_near_the_bayes_error() -> None:
    """The Bayes error is 12.37 %, integrated on a grid here."""
    axis = np.arange(-2, 2, 0.01)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
    density = np.exp(-((points - CENTRES) ** 2).sum(axis=2) / 0.08) / (2 * np.pi * 0.04) / 4
    bayes = np.minimum(density[:, :2].sum(axis=1), density[:, 2:].sum(axis=1)).sum() * 0.01**2
    assert abs(bayes - 0.1237) < 2e-4
    rng = np.random.default_rng(0)
    X, y = draw(400, rng)
    Z, t = draw(20_000, rng)
    error = 1 - KernelRidgePress().fit(X, y).score(Z, t)
    assert bayes - 0.007 < error < bayes + 0.015


def test_more_optimised_is_not_better() -> None:
    """64 rows, ARD with eight columns of noise: PRESS goes on falling while the true error turns and rises."""
    rng = np.random.default_rng(1)
    press_path, error_path = [], []
    for _ in range(5):
        X, y = draw(64, rng)
        Z, t = draw(2000, rng)
        X, Z = (np.c_[A, 0.4 * rng.normal(size=(len(A), 8))] for A in (X, Z))
        search = KernelRidgePress("ard", max_evaluations=1000).fit(X, y)
        steps = []
        for stop in (40, 150, 1000):
            best = search.press_path_[:stop].argmin()
            scales = 2.0 ** search.theta_path_[best]
            model = KernelRidgeClassifier("ard", gamma=scales[1:], ridge=float(scales[0])).fit(X, y)
            steps.append((model.press_, 1 - model.score(Z, t)))
        press_path.append([p for p, _ in steps])
        error_path.append([e for _, e in steps])
    press, error = np.mean(press_path, axis=0), np.mean(error_path, axis=0)
    print(f"after 40, 150, 1000 evaluations: PRESS {press.round(1)}, true error {(100 * error).round(2)} %")
    assert press[0] > press[1] > press[2]
    assert error[2] > error.min() + 0.003
