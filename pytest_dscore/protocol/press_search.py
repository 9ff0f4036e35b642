"""Model selection for kernel ridge regression: Nelder-Mead on log2 parameters over PRESS, with its mitigations."""

# mypy: disable-error-code="import-untyped,misc"
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .kernel_ridge import KernelRidgeClassifier, labels_from_decision, one_vs_rest_targets, validate_data
from .kernels import KernelSettingsError, check_gamma, gaussian_kernel
from .loo import solve_dual

Floats = NDArray[np.float64]
# Beyond 2^+-40 a ridge or a scale changes no prediction in double precision but lets the simplex wander for ever.
_BOUND = 40.0
# A Gaussian kernel of l rows has no eigenvalue above l. With a ridge below l times this, K + ridge I may keep too few
# digits for the predictions, though PRESS still looks right: flat kernels on few distinct rows lead the search there.
_LEAST_RIDGE = 1e-10


class KernelRidgePress(ClassifierMixin, BaseEstimator):
    """Kernel ridge classifier that chooses its own ridge and scale(s) by minimising PRESS.

    A search object like scikit-learn's: after `fit` it has ``best_params_`` and ``best_estimator_``, and `nested_cv`
    reports what each fold selected. No ridge below 1e-10 times the number of rows is tried (unless `start` is below):
    too few digits would be left for predictions.

    Parameters
    ----------
    kernel
        ``"rbf"`` (2 parameters) or ``"ard"`` (n_features + 1; constraining to ``"rbf"`` is itself a mitigation).
    max_evaluations
        Stop after this many evaluations of PRESS: early stopping where it is small. ``None``: 200 per parameter.
    penalty
        Weight >= 0 of ``||theta - theta_0||^2``, theta the log2 parameters, theta_0 the start; added to PRESS.
    average
        Number >= 1 of best candidates met on the way whose decision values are averaged.
    start
        Start in log2 units: ``None`` for ridge 1 and gamma 1 / n_features, or (log2 ridge, log2 gamma).

    Attributes
    ----------
    best_params_, best_estimator_, best_score_ : the selected parameters, the model with them, and minus its PRESS
    press_ : PRESS of the selected model, without penalty
    theta_path_ : every evaluated point, shape (n_evaluations, n_parameters), log2 ridge first
    press_path_ : PRESS (without penalty) at each, shape (n_evaluations,)
    candidates_ : the averaged models

    Raises
    ------
    KernelSettingsError
        (on `fit`) a setting is out of range.

    References
    ----------
    Cawley and Talbot 2010, section 2 (Nelder-Mead over PRESS) and Knowl 10 (the mitigations).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> search = KernelRidgePress().fit(X, y)
    >>> sorted(search.best_params_)
    ['gamma', 'kernel', 'ridge']
    """

    def __init__(
        self,
        kernel: str = "rbf",
        max_evaluations: int | None = None,
        penalty: float = 0.0,
        average: int = 1,
        start: Any = None,
    ) -> None:
        self.kernel = kernel
        self.max_evaluations = max_evaluations
        self.penalty = penalty
        self.average = average
        self.start = start

    def fit(self, X: Any, y: Any) -> KernelRidgePress:
        """Select the parameters on X, shape (l, d), and y, shape (l,), then fit with them."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self._check_settings(X.shape[1])
        self.classes_, targets = one_vs_rest_targets(y)
        self.theta_path_, self.press_path_, criterion = self._search(X, targets)
        order = np.unique(self.theta_path_, axis=0, return_index=True)[1]
        order = order[np.argsort(criterion[order], kind="stable")][: self.average]
        if not np.isfinite(criterion[order[0]]):
            raise KernelSettingsError("PRESS is not finite anywhere the search went: scale the features of X first.")
        self.candidates_ = [
            KernelRidgeClassifier(**self._params(theta)).fit(X, y)
            for theta, value in zip(self.theta_path_[order], criterion[order], strict=True)
            if np.isfinite(value)
        ]
        self.best_estimator_ = self.candidates_[0]
        self.best_params_ = self._params(self.theta_path_[order[0]])
        self.press_ = float(self.press_path_[order[0]])
        self.best_score_ = -self.press_
        return self

    def decision_function(self, X: Any) -> Floats:
        """Decision values of the selected model, or their mean over the averaged ones; shape as in the classifier."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(np.mean([model.decision_function(X) for model in self.candidates_], axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted labels, shape (n,)."""
        return labels_from_decision(self.decision_function(X), self.classes_)

    def _check_settings(self, n_features: int) -> None:
        check_gamma(None, self.kernel, n_features)
        if self.max_evaluations is not None and self.max_evaluations < 1:
            raise KernelSettingsError(f"max_evaluations={self.max_evaluations!r} must be at least 1, or None.")
        if not self.penalty >= 0:
            raise KernelSettingsError(f"penalty={self.penalty!r} must be 0 or more.")
        if self.average < 1:
            raise KernelSettingsError(f"average={self.average!r} must be at least 1.")
        if self.start is not None and np.shape(self.start) != (2,):
            raise KernelSettingsError(f"start={self.start!r} must be two numbers: (log2 ridge, log2 gamma).")

    def _params(self, theta: Floats) -> dict[str, Any]:
        scales = 2.0 ** theta[1:]
        gamma = float(scales[0]) if self.kernel == "rbf" else scales
        return {"kernel": self.kernel, "gamma": gamma, "ridge": float(2.0 ** theta[0])}

    def _search(self, X: Floats, targets: Floats) -> tuple[Floats, Floats, Floats]:
        """Run Nelder-Mead; return the points evaluated, their PRESS, and their penalised PRESS."""
        n_features = X.shape[1]
        n_scales = 1 if self.kernel == "rbf" else n_features
        log_ridge, log_gamma = (0.0, -np.log2(n_features)) if self.start is None else self.start
        origin = np.r_[log_ridge, np.full(n_scales, log_gamma)]
        path: list[Floats] = []
        values: list[float] = []

        def criterion(theta: Floats) -> float:
            value = _press_at(X, targets, theta)
            path.append(np.array(theta))
            values.append(value)
            return value + self.penalty * float(((theta - origin) ** 2).sum())

        limit = 200 * len(origin) if self.max_evaluations is None else self.max_evaluations
        # Unit steps in log2: halving or doubling; scipy's own simplex of 5 % of a coordinate is too timid here.
        simplex = np.vstack([origin, origin + np.eye(len(origin))])
        options: Any = {"maxfev": limit, "maxiter": limit, "xatol": 1e-3, "fatol": 1e-4, "initial_simplex": simplex}
        bounds = [(-_BOUND, _BOUND)] * len(origin)
        bounds[0] = (min(float(np.log2(_LEAST_RIDGE * len(X))), log_ridge), _BOUND)
        minimize(criterion, origin, method="Nelder-Mead", bounds=bounds, options=options)
        points, found = np.array(path), np.array(values)
        return points, found, found + self.penalty * ((points - origin) ** 2).sum(axis=1)


def _press_at(X: Floats, targets: Floats, theta: Floats) -> float:
    """PRESS at log2 parameters `theta` (ridge first); infinite where the system is singular."""
    scales = np.broadcast_to(2.0 ** theta[1:], (X.shape[1],))
    try:
        residuals = solve_dual(gaussian_kernel(X, X, scales), targets, float(2.0 ** theta[0]))[2]
    except np.linalg.LinAlgError:
        return np.inf
    value = float((residuals**2).sum())
    return value if np.isfinite(value) else np.inf
