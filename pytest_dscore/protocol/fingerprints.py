"""Vectors in which copies lie close together: perceptual fingerprints of images, scaled columns of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_BLOCK = 4096


def is_images(X: Any) -> bool:
    """Whether X is an array of images: (n, height, width) or with a fourth axis for channels, either order."""
    return getattr(X, "ndim", 2) in (3, 4)


def image_fingerprints(X: Any, grid: int = 8) -> Floats:
    """Perceptual fingerprint: grey means over a square grid, centred and scaled to length 1.

    Centring takes out brightness, scaling contrast; means take out fine noise and compression. A flat image becomes the
    zero vector.

    Parameters
    ----------
    X
        Images, shape (n, height, width), (n, height, width, channels) or (n, channels, height, width).
    grid
        Cells along each side; an image with fewer pixels keeps its pixels.

    Returns
    -------
    numpy.ndarray, shape (n, grid * grid), or fewer for smaller images
    """
    parts = [_unit(_pool(_grey(X[i : i + _BLOCK]), grid)) for i in range(0, len(X), _BLOCK)]
    return np.concatenate(parts)


def table_vectors(X_train: Any, X_test: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Columns centred and divided by their standard deviation in the training part; constant columns dropped.

    Parameters
    ----------
    X_train, X_test
        Tables, shapes (n, d) and (m, d); NaN counts as the column's mean.

    Returns
    -------
    (n, e), (m, e) or None
        None where a column is not numeric or none varies.
    """
    tables = [_numeric(X_train), _numeric(X_test)]
    train, test = tables
    if train is None or test is None or train.ndim != 2:
        return None
    with np.errstate(invalid="ignore"):
        known = np.isfinite(train)
        counts = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, train, 0.0).sum(axis=0) / counts
        spread = np.sqrt((np.where(known, train - mean, 0.0) ** 2).sum(axis=0) / counts)
    used = spread > 0
    if not used.any():
        return None
    scaled = [np.where(np.isfinite(t), t - mean, 0.0)[:, used] / spread[used] for t in (train, test)]
    return scaled[0], scaled[1]


def _numeric(X: Any) -> NDArray[np.float64] | None:
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else [np.asarray(X)]
    if any(column.dtype.kind not in "fiub" for column in columns):
        return None
    if hasattr(X, "columns"):
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    return columns[0].astype(np.float64)


def _grey(X: Any) -> Floats:
    images = np.asarray(X, dtype=np.float32)
    if images.ndim == 3:
        return images
    channels_first = images.shape[1] <= 4 < images.shape[3]
    return np.asarray(images.mean(axis=1 if channels_first else 3), dtype=np.float32)


def _pool(images: Floats, grid: int) -> Floats:
    for axis in (1, 2):
        size = images.shape[axis]
        if size > grid:
            edges = np.linspace(0, size, grid + 1).round().astype(int)
            shape = [1, 1, 1]
            shape[axis] = grid
            cells = np.diff(edges).reshape(shape).astype(np.float32)
            images = np.asarray(np.add.reduceat(images, edges[:-1], axis=axis) / cells, dtype=np.float32)
    return images.reshape(len(images), -1).astype(np.float32)


def _unit(vectors: Floats) -> Floats:
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    # A flat image has no direction: rounding noise must not give it one.
    flat = length <= 1e-5 * (1 + np.abs(vectors).max(axis=1, keepdims=True))
    return np.asarray(np.where(flat, 0.0, centred / np.where(flat, 1.0, length)), dtype=np.float32)
