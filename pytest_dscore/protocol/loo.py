"""Leave-one-out residuals of kernel ridge regression in closed form, and PRESS, their sum of squares."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from .kernels import KernelSettingsError

Floats = NDArray[np.float64]


def loo_residuals(K: ArrayLike, y: ArrayLike, lambdas: ArrayLike) -> Floats:
    """Leave-one-out residuals ``y_i - f^(-i)(x_i)`` for many ridge values from one eigendecomposition.

    With ``M = K + lambda I`` and ``K = V diag(w) V'``, everything that the residual ``alpha_i / [C^-1]_ii`` needs is a
    product of V with a vector that depends on lambda, so each lambda costs O(l^2) after the one O(l^3).

    Parameters
    ----------
    K
        Kernel matrix of the training points, shape (l, l), symmetric and positive semi-definite.
    y
        Targets, shape (l,) or, for c one-vs-rest columns, (l, c).
    lambdas
        Ridge values, shape (m,) or a number, all > 0.

    Returns
    -------
    numpy.ndarray, shape (m, l) or (m, l, c)

    Raises
    ------
    KernelSettingsError
        A shape does not fit, a lambda is not positive, K is not symmetric positive semi-definite, or l < 2.

    References
    ----------
    Cawley and Talbot 2010, Knowl 3; the diagonal of C^-1 is by block inversion
    ``[M^-1]_ii - (M^-1 1)_i^2 / (1' M^-1 1)``.
    """
    kernel, targets, ridge = _check(K, y, lambdas)
    values, vectors = linalg.eigh(kernel)
    if values[0] < -1e-8 * max(1.0, values[-1]):
        raise KernelSettingsError(
            f"K is not positive semi-definite (smallest eigenvalue {values[0]:.3g}): pass a kernel matrix."
        )
    columns = targets[:, None] if targets.ndim == 1 else targets
    weights = 1.0 / (np.maximum(values, 0.0)[:, None] + ridge)  # (l, m)
    inverse_ones = vectors @ (vectors.sum(axis=0)[:, None] * weights)  # M^-1 1 for every lambda, (l, m)
    totals = inverse_ones.sum(axis=0)
    diagonal = (vectors**2) @ weights - inverse_ones**2 / totals
    residuals = np.empty((len(ridge), len(columns), columns.shape[1]))
    for c, target in enumerate(columns.T):
        inverse_y = vectors @ ((vectors.T @ target)[:, None] * weights)
        bias = inverse_y.sum(axis=0) / totals
        residuals[:, :, c] = ((inverse_y - bias * inverse_ones) / diagonal).T
    return residuals[:, :, 0] if targets.ndim == 1 else residuals


def press(K: ArrayLike, y: ArrayLike, lambdas: ArrayLike) -> Floats:
    """Allen's PRESS: the sum of squared leave-one-out residuals, for each ridge value.

    The figures printed in Cawley and Talbot's tables are half of this sum; here it is the sum, as in their formula.

    Parameters
    ----------
    K
        Kernel matrix of the training points, shape (l, l), symmetric and positive semi-definite.
    y
        Targets (-1/+1 for classification), shape (l,) or, one-vs-rest, (l, c); columns are summed.
    lambdas
        Ridge values, shape (m,), all > 0.

    Returns
    -------
    numpy.ndarray, shape (m,)
        One value >= 0 per lambda.

    Raises
    ------
    KernelSettingsError
        See `loo_residuals`.

    References
    ----------
    Cawley and Talbot 2010, Knowl 3 (equation for PRESS).

    Examples
    --------
    >>> import numpy as np
    >>> press(np.eye(3), [1.0, -1.0, 1.0], [1.0, 2.0]).shape
    (2,)
    """
    residuals = loo_residuals(K, y, lambdas)
    return np.asarray((residuals**2).sum(axis=tuple(range(1, residuals.ndim))))


def solve_dual(K: Floats, targets: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Dual coefficients, bias and leave-one-out residuals for one ridge value, by Cholesky.

    Faster than the eigendecomposition where a single lambda is wanted, as in Nelder-Mead.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l).
    targets
        Shape (l, c).
    ridge
        Lambda > 0.

    Returns
    -------
    alpha (l, c), bias (c,), residuals (l, c)

    Raises
    ------
    numpy.linalg.LinAlgError
        ``K + ridge I`` is numerically singular.

    References
    ----------
    Cawley and Talbot 2010, Knowl 3 (the linear system in alpha and b).
    """
    size = len(K)
    regular = K + ridge * np.eye(size)
    factor = linalg.cho_factor(regular, lower=True, overwrite_a=True, check_finite=False)
    inverse, info = linalg.lapack.dpotri(factor[0], lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("K + ridge I is singular")
    # dpotri fills one triangle only.
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    inverse_ones = inverse.sum(axis=1)
    total = inverse_ones.sum()
    inverse_y = inverse @ targets
    bias = inverse_y.sum(axis=0) / total
    alpha = inverse_y - inverse_ones[:, None] * bias
    diagonal = np.diagonal(inverse) - inverse_ones**2 / total
    return alpha, bias, alpha / diagonal[:, None]


def _check(K: ArrayLike, y: ArrayLike, lambdas: ArrayLike) -> tuple[Floats, Floats, Floats]:
    kernel: Floats = np.asarray(K, dtype=np.float64)
    targets: Floats = np.asarray(y, dtype=np.float64)
    ridge: Floats = np.atleast_1d(np.asarray(lambdas, dtype=np.float64))
    problem: Any = None
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        problem = f"K has shape {kernel.shape}: pass a square kernel matrix"
    elif targets.ndim not in (1, 2) or len(targets) != len(kernel):
        problem = f"y has shape {targets.shape} but K is {kernel.shape[0]} x {kernel.shape[1]}: pass one target per row"
    elif len(kernel) < 2:
        problem = "leave-one-out needs at least 2 rows: pass more data"
    elif ridge.ndim != 1 or not np.all(np.isfinite(ridge)) or np.any(ridge <= 0):
        problem = f"lambdas={lambdas!r} must be a list of positive, finite numbers"
    elif not np.all(np.isfinite(kernel)) or not np.all(np.isfinite(targets)):
        problem = "K or y holds NaN or infinite values: remove or impute them"
    elif not np.allclose(kernel, kernel.T, rtol=1e-8, atol=1e-10):
        problem = "K is not symmetric: pass the kernel of the training points with themselves"
    if problem is not None:
        raise KernelSettingsError(f"{problem}.")
    return kernel, targets, ridge
