"""Kernel ridge regression used as a classifier: the learner of Cawley and Talbot (2010)."""

# mypy: disable-error-code="import-untyped,misc"
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .kernels import KernelSettingsError, check_gamma, gaussian_kernel
from .loo import solve_dual


def validate_data(estimator: Any, *args: Any, **kwargs: Any) -> Any:
    """Check and convert X (and y): scikit-learn's function, which was a method before version 1.6."""
    method = getattr(validation, "validate_data", None)
    return method(estimator, *args, **kwargs) if method else estimator._validate_data(*args, **kwargs)


class KernelRidgeClassifier(ClassifierMixin, BaseEstimator):
    """Kernel ridge regression on targets -1/+1, with a bias, one-vs-rest for more than two classes.

    Its leave-one-out residuals come in closed form with every fit, so that a whole leave-one-out cross-validation costs
    no more than the fit itself.

    Parameters
    ----------
    kernel
        ``"rbf"``: one scale for all features. ``"ard"``: one scale per feature.
    gamma
        Scale(s) of the kernel ``exp(-gamma ||x - x'||^2)``: a number > 0, for ``"ard"`` also shape (d,), all >= 0;
        ``None`` is 1 / n_features. Cawley and Talbot write eta.
    ridge
        Regularisation lambda > 0.

    Attributes
    ----------
    classes_ : shape (n_classes,)
    dual_coef_ : alpha, shape (l, c), c = 1 for two classes
    intercept_ : shape (c,)
    loo_residuals_ : shape (l, c), ``y_i`` minus the prediction of the model trained without row i
    loo_decision_ : shape (l,) or (l, c), the decision values themselves
    press_ : sum of squared leave-one-out residuals, over all columns

    Raises
    ------
    KernelSettingsError
        (on `fit`) a setting is out of range, there is one class only, or one row.

    References
    ----------
    Cawley and Talbot 2010, Knowls 3 and 4.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = KernelRidgeClassifier(gamma=1.0, ridge=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(self, kernel: str = "rbf", gamma: Any = None, ridge: float = 1.0) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.ridge = ridge

    def fit(self, X: Any, y: Any) -> KernelRidgeClassifier:
        """Fit to X, shape (l, d), and labels y, shape (l,) of any type."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if not isinstance(self.ridge, (int, float, np.number)) or not np.isfinite(float(self.ridge)) or self.ridge <= 0:
            raise KernelSettingsError(f"ridge={self.ridge!r} must be a positive, finite number.")
        scales = check_gamma(self.gamma, self.kernel, X.shape[1])
        self.classes_, targets = one_vs_rest_targets(y)
        self.X_fit_ = X
        kernel = gaussian_kernel(X, X, scales)
        try:
            self.dual_coef_, self.intercept_, self.loo_residuals_ = solve_dual(kernel, targets, float(self.ridge))
        except np.linalg.LinAlgError as error:
            raise KernelSettingsError(f"ridge={self.ridge!r} is too small for this kernel: raise it.") from error
        loo = targets - self.loo_residuals_
        self.loo_decision_ = loo[:, 0] if loo.shape[1] == 1 else loo
        self.press_ = float((self.loo_residuals_**2).sum())
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values: shape (n,) for two classes (positive: ``classes_[1]``), otherwise (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scales = check_gamma(self.gamma, self.kernel, X.shape[1])
        values = gaussian_kernel(X, self.X_fit_, scales) @ self.dual_coef_ + self.intercept_
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted labels, shape (n,)."""
        return labels_from_decision(self.decision_function(X), self.classes_)

    @property
    def loo_error_(self) -> float:
        """Leave-one-out error rate on the training rows, in [0, 1]."""
        check_is_fitted(self)
        # A row is right where its own column has the largest leave-one-out value; targets are value + residual.
        decision = self.loo_decision_
        if decision.ndim == 1:
            return float(np.mean(decision * (decision + self.loo_residuals_[:, 0]) <= 0))
        return float(np.mean(decision.argmax(axis=1) != (decision + self.loo_residuals_).argmax(axis=1)))


def one_vs_rest_targets(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Labels to -1/+1 columns.

    Parameters
    ----------
    y
        Labels, shape (l,).

    Returns
    -------
    classes (n_classes,), targets (l, c) with c = 1 for two classes

    Raises
    ------
    KernelSettingsError
        There is only one class.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise KernelSettingsError(f"y holds one class only ({classes[0]!r}): a classifier needs at least two classes.")
    if len(classes) == 2:
        return classes, np.where(codes == 1, 1.0, -1.0)[:, None]
    return classes, np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def labels_from_decision(decision: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels from decision values of shape (n,) (two classes) or (n, n_classes)."""
    if decision.ndim == 1:
        return np.asarray(classes[(decision > 0).astype(int)])
    return np.asarray(classes[decision.argmax(axis=1)])
