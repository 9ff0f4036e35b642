"""The closed forms against plain retraining through a linear solve that shares no code with them."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol.kernel_ridge import KernelRidgeClassifier
from pytest_dscore.protocol.kernels import gaussian_kernel
from pytest_dscore.protocol.loo import loo_residuals, press
from pytest_dscore.protocol.press_search import KernelRidgePress

CONTRACT = parametrize_with_checks([KernelRidgeClassifier(), KernelRidgePress(max_evaluations=8)])
# Array API input is opt-in in scikit-learn (an environment variable before the first import) and not promised here.
CHECKS = [pair for pair in CONTRACT.args[1] if pair[1].func.__name__ != "check_array_api_input"]


@pytest.mark.parametrize(CONTRACT.args[0], CHECKS, ids=CONTRACT.kwargs["ids"])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def plain_kernel(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.exp(-(scales * (A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def retrained_residuals(X: np.ndarray, targets: np.ndarray, scales: np.ndarray, ridge: float) -> np.ndarray:
    """Leave each row out, solve the bordered system of the paper, predict the row."""
    out = np.empty_like(targets)
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        size = len(X) - 1
        system = np.zeros((size + 1, size + 1))
        system[:size, :size] = plain_kernel(X[keep], X[keep], scales) + ridge * np.eye(size)
        system[:size, size] = system[size, :size] = 1
        solution = np.linalg.solve(system, np.vstack([targets[keep], np.zeros((1, targets.shape[1]))]))
        row = plain_kernel(X[i : i + 1], X[keep], scales)
        out[i] = targets[i] - (row @ solution[:size] + solution[size])[0]
    return out


def plain_targets(y: np.ndarray) -> np.ndarray:
    classes = sorted(set(y.tolist()))
    columns = [[1.0 if label == c else -1.0 for label in y] for c in (classes[1:] if len(classes) == 2 else classes)]
    return np.array(columns).T


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["rbf", "ard"])
def test_residuals_equal_retraining(kernel: str, n_classes: int) -> None:
    X, y = make_blobs(60, n_features=3, centers=n_classes, cluster_std=3.0, random_state=n_classes)
    scales = np.full(3, 0.4) if kernel == "rbf" else np.array([0.1, 0.8, 0.0])
    gamma = 0.4 if kernel == "rbf" else scales
    expected = retrained_residuals(X, plain_targets(y), scales, 0.3)
    model = KernelRidgeClassifier(kernel, gamma=gamma, ridge=0.3).fit(X, y)
    from_eigen = loo_residuals(plain_kernel(X, X, scales), plain_targets(y), [2.0, 0.3])[1]
    assert np.abs(model.loo_residuals_ - expected).max() < 1e-10
    assert np.abs(from_eigen - expected).max() < 1e-10
    assert model.press_ == pytest.approx((expected**2).sum(), abs=1e-9)
    assert press(plain_kernel(X, X, scales), plain_targets(y), [0.3])[0] == pytest.approx((expected**2).sum(), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(3, 25), st.integers(1, 4), st.floats(-8, 8), st.floats(-4, 4))
def test_residuals_equal_retraining_anywhere(seed: int, rows: int, d: int, log_ridge: float, log_gamma: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, d)), rng.choice([-1.0, 1.0], size=rows)
    scales = np.full(d, 2.0**log_gamma)
    expected = retrained_residuals(X, y[:, None], scales, 2.0**log_ridge)[:, 0]
    found = loo_residuals(plain_kernel(X, X, scales), y, 2.0**log_ridge)[0]
    assert np.abs(found - expected).max() < 1e-9


def test_loo_error_equals_retraining() -> None:
    for n_classes in (2, 3):
        X, y = make_blobs(40, centers=n_classes, cluster_std=5.0, random_state=1)
        model = KernelRidgeClassifier(gamma=0.2, ridge=0.5).fit(X, y)
        wrong = 0
        for i in range(len(X)):
            keep = np.arange(len(X)) != i
            wrong += KernelRidgeClassifier(gamma=0.2, ridge=0.5).fit(X[keep], y[keep]).predict(X[i : i + 1])[0] != y[i]
        assert model.loo_error_ == pytest.approx(wrong / len(X))


def test_kernel_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    A, B, scales = rng.normal(size=(9, 3)), rng.normal(size=(5, 3)), np.array([0.2, 1.0, 3.0])
    assert np.allclose(gaussian_kernel(A, B, scales), RBF(length_scale=1 / np.sqrt(2 * scales))(A, B), atol=1e-12)


def test_fit_equals_scikit_learns_kernel_ridge_on_centred_targets() -> None:
    """The bias is the one number that KernelRidge lacks: given it, the two solve the same system."""
    X, y = make_moons(50, noise=0.3, random_state=0)
    model = KernelRidgeClassifier(gamma=0.7, ridge=0.2).fit(X, y)
    other = KernelRidge(kernel="rbf", gamma=0.7, alpha=0.2).fit(X, 2.0 * y - 1 - model.intercept_[0])
    assert np.allclose(model.decision_function(X), other.predict(X) + model.intercept_[0], atol=1e-10)
    assert abs(model.dual_coef_.sum()) < 1e-10


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"kernel": "linear"}, "kernel='linear'"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": [1.0, 2.0]}, "kernel='rbf' takes one number"),
        ({"kernel": "ard", "gamma": [1.0]}, "2 features"),
        ({"ridge": 0.0}, "ridge"),
    ],
)
def test_bad_settings_are_named(settings_: dict[str, Any], words: str) -> None:
    X, y = make_moons(20, random_state=0)
    with pytest.raises(DScoreError, match=words.replace("(", r"\(")):
        KernelRidgeClassifier(**settings_).fit(X, y)


@pytest.mark.parametrize(
    ("K", "y", "lambdas", "words"),
    [
        (np.ones((2, 3)), [1, -1], [1], "square"),
        (np.eye(3), [1, -1], [1], "one target per row"),
        (np.eye(1), [1], [1], "at least 2 rows"),
        (np.eye(2), [1, -1], [0.0], "positive"),
        (np.eye(2), [1, np.nan], [1.0], "NaN"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), [1, -1], [1.0], "symmetric"),
        (-np.eye(2), [1, -1], [0.1], "positive semi-definite"),
    ],
)
def test_press_names_bad_input(K: Any, y: Any, lambdas: Any, words: str) -> None:
    with pytest.raises(DScoreError, match=words):
        press(K, y, lambdas)
