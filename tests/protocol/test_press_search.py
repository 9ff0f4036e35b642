"""Nelder-Mead over PRESS: it finds the minimum a grid finds, and each mitigation does what it says."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol.loo import press
from pytest_dscore.protocol.press_search import KernelRidgePress

from .raetsch import load


def noisy(seed: int = 0, n: int = 60, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)


def test_finds_what_a_fine_grid_finds() -> None:
    X, y = make_moons(70, noise=0.3, random_state=0)
    search = KernelRidgePress().fit(X, y)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    lambdas = 2.0 ** np.arange(-12, 6, 0.25)
    grid = min(press(np.exp(-(2.0**g) * squared), 2 * y - 1, lambdas).min() for g in np.arange(-6, 6, 0.25))
    assert search.press_ <= grid * 1.002
    assert search.press_ == pytest.approx(search.best_estimator_.press_)
    assert search.press_ == search.press_path_.min()


def test_ard_press_is_below_rbf_press() -> None:
    X, y = noisy()
    rbf = KernelRidgePress().fit(X, y)
    ard = KernelRidgePress("ard").fit(X, y)
    assert ard.press_ < rbf.press_
    assert ard.best_params_["gamma"].shape == (6,)


def test_early_stopping_stops() -> None:
    X, y = noisy()
    search = KernelRidgePress("ard", max_evaluations=20).fit(X, y)
    assert len(search.press_path_) <= 21
    assert search.press_ > KernelRidgePress("ard").fit(X, y).press_


def test_penalty_keeps_near_the_start() -> None:
    X, y = noisy()
    start = np.r_[0.0, np.full(6, -np.log2(6))]

    def distance(penalty: float) -> float:
        best = KernelRidgePress("ard", penalty=penalty).fit(X, y).best_params_
        return float(np.linalg.norm(np.log2(np.r_[best["ridge"], best["gamma"]]) - start))

    assert distance(1e6) < 0.01 < distance(0.5) < distance(0.0)


def test_penalised_search_finds_what_a_fine_grid_finds() -> None:
    X, y = make_moons(70, noise=0.3, random_state=0)
    best = KernelRidgePress(penalty=0.3).fit(X, y).best_params_
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)

    def criterion(log_ridge: np.ndarray, log_gamma: float) -> np.ndarray:
        found = press(np.exp(-(2.0**log_gamma) * squared), 2 * y - 1, 2.0**log_ridge)
        return found + 0.3 * (log_ridge**2 + (log_gamma + 1) ** 2)

    here = criterion(np.array([np.log2(best["ridge"])]), float(np.log2(best["gamma"])))[0]
    grid = min(criterion(np.arange(-8, 4, 0.1), g).min() for g in np.arange(-5, 5, 0.1))
    assert here <= grid * 1.0005


def exact_decision(X: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """Decision values on X itself, by elimination in extended precision."""
    n = len(X)
    wide = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(gamma) * ((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    system = np.ones((n + 1, n + 2), dtype=np.longdouble)
    system[:n, :n] = K + np.longdouble(ridge) * np.eye(n)
    system[n, n], system[:n, -1], system[n, -1] = 0, y, 0
    for k in range(n + 1):
        pivot = k + int(np.abs(system[k:, k]).argmax())
        system[[k, pivot]] = system[[pivot, k]]
        system[k] /= system[k, k]
        others = np.arange(n + 1) != k
        system[others] -= system[others, k][:, None] * system[k]
    return K @ system[:n, -1] + system[n, -1]


@pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > 1e-18), reason="no extended precision here: this check did not run"
)
@pytest.mark.parametrize("seed", [13, 17])
def test_flat_kernels_keep_their_digits(seed: int) -> None:
    """16 distinct rows, on which PRESS falls towards ridge 0 and gamma 0; decision values were wrong by 2 and 14."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(0, 4, 60), rng.integers(0, 2, 60), rng.integers(0, 2, 60)].astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chance = 1 / (1 + np.exp(-(0.8 * X[:, 0] + 1.2 * X[:, 1] + 0.8 * X[:, 0] * X[:, 1])))
    y = np.where(rng.random(60) < chance, 1, -1)
    search = KernelRidgePress().fit(X, y)
    assert search.best_params_["ridge"] < 1e-6, "not the case that this test is about"
    exact = exact_decision(X, y, search.best_params_["gamma"], search.best_params_["ridge"])
    assert np.abs(search.decision_function(X) - exact).max() < 0.02


def test_average_is_the_mean_of_its_candidates() -> None:
    X, y = noisy()
    search = KernelRidgePress(average=5).fit(X, y)
    assert len(search.candidates_) == 5
    expected = sum(model.decision_function(X) for model in search.candidates_) / 5
    assert np.allclose(search.decision_function(X), expected)
    assert not np.allclose(expected, search.best_estimator_.decision_function(X), rtol=0, atol=1e-12)


def test_same_call_same_answer_and_three_classes() -> None:
    X, _ = noisy()
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    first, second = KernelRidgePress().fit(X, y), KernelRidgePress().fit(X, y)
    assert first.best_params_ == second.best_params_
    assert first.score(X, y) > 0.7


def test_paper_heart_press_is_half_the_sum() -> None:
    """The paper prints 42.576 +- 0.356 (100 realisations) for RBF on heart, 37.023 for ARD; both are half the sum."""
    data = load("heart")
    X, t = data["x"], np.where(data["t"] > 0, 1, -1)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(8):
        train = rng.permutation(len(X))[:170]
        found.append(KernelRidgePress().fit(X[train], t[train]).press_ / 2)
    # 8 realisations: the standard error is about 0.356 * sqrt(100 / 8) = 1.26.
    print(f"heart: PRESS/2 = {np.mean(found):.2f} +- {np.std(found, ddof=1) / 8**0.5:.2f}, paper 42.58 +- 0.36")
    assert abs(np.mean(found) - 42.576) < 3 * 0.356 * (100 / 8) ** 0.5


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"max_evaluations": 0}, "max_evaluations"),
        ({"penalty": -1.0}, "penalty"),
        ({"average": 0}, "average"),
        ({"start": (1.0,)}, "start"),
        ({"kernel": "poly"}, "kernel"),
    ],
)
def test_bad_settings_are_named(settings_: dict[str, Any], words: str) -> None:
    X, y = noisy()
    with pytest.raises(DScoreError, match=words):
        KernelRidgePress(**settings_).fit(X, y)
