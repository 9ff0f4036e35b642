"""Gaussian kernels with one shared or one separate scale per feature."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from ..errors import SettingsError


class KernelSettingsError(SettingsError, ValueError):
    """A kernel or ridge setting is out of range; also a `ValueError`, as the scikit-learn contract asks of `fit`."""


def check_gamma(gamma: Any, kernel: str, n_features: int) -> NDArray[np.float64]:
    """Turn `gamma` into one scale per feature.

    Parameters
    ----------
    gamma
        ``None`` (1 / n_features), a number > 0, or, for ``kernel="ard"`` only, `n_features` numbers >= 0.
    kernel
        ``"rbf"`` or ``"ard"``.
    n_features
        Number of columns of X.

    Returns
    -------
    numpy.ndarray, shape (n_features,)

    Raises
    ------
    KernelSettingsError
        The kernel is unknown, or `gamma` has the wrong length or sign.
    """
    if kernel not in ("rbf", "ard"):
        raise KernelSettingsError(
            f"kernel={kernel!r} is unknown: use 'rbf' (one gamma) or 'ard' (one gamma per feature)."
        )
    scales = np.asarray(1.0 / n_features if gamma is None else gamma, dtype=np.float64)
    if kernel == "rbf" and scales.ndim != 0:
        raise KernelSettingsError(
            f"gamma has shape {scales.shape} but kernel='rbf' takes one number: pass a number, or kernel='ard'."
        )
    if scales.ndim > 1 or (scales.ndim == 1 and len(scales) != n_features):
        raise KernelSettingsError(
            f"gamma has shape {scales.shape} but X has {n_features} features: pass one gamma per feature."
        )
    if not np.all(np.isfinite(scales)) or np.any(scales < 0) or (scales.ndim == 0 and scales == 0):
        raise KernelSettingsError(f"gamma={gamma!r} must be positive and finite.")
    return np.broadcast_to(scales, (n_features,))


def gaussian_kernel(A: NDArray[np.float64], B: NDArray[np.float64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian kernel ``exp(-sum_j scales_j (a_j - b_j)^2)``.

    Parameters
    ----------
    A, B
        Points, shapes (n, d) and (m, d).
    scales
        One scale per feature, shape (d,), all >= 0. All equal: the isotropic RBF kernel.

    Returns
    -------
    numpy.ndarray, shape (n, m)

    References
    ----------
    Cawley and Talbot 2010, Knowl 4 (RBF as the special case of ARD).
    """
    root = np.sqrt(scales)
    same = A is B
    left = A * root
    squared = euclidean_distances(left, None if same else B * root, squared=True)
    return np.asarray(np.exp(-squared), dtype=np.float64)
