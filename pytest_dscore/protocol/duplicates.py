"""Leaks that are in the data already: shared rows, copies, near copies, groups and time order."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from ..errors import SettingsError
from .fingerprints import image_fingerprints, is_images, table_vectors
from .inputs import is_sparse, n_rows, take_rows
from .leak import Leak, make_leak

Pairs = NDArray[np.intp]
# A near copy lies closer than this share of the usual distance between neighbours.
NEAR = 0.1
NEAR_IMAGE = 0.25
# And two images correlate at least 1 - 0.12^2 / 2 = 0.993 over 32 x 32 grey means. None of the 10,000 MNIST
# test digits comes that near to one of the 60,000 training digits.
NEAR_FINE = 0.12
FINE = 32
_SAMPLE = 2000


def check_data(
    X_train: Any, X_test: Any, groups: Any = None, time: Any = None, *, near: bool = True, where: str = "the data"
) -> tuple[Leak, ...]:
    """Look for copies, near copies, shared groups and future rows.

    Parameters
    ----------
    X_train, X_test
        Tables (n, d), sparse or frames too, or images (n, height, width[, channels]).
    groups
        ``(groups of the training rows, groups of the test rows)``.
    time
        ``(times of the training rows, times of the test rows)``, of any type with an order.
    near
        Look for near copies as well as exact ones.
    where
        How a leak names the place.

    Returns
    -------
    tuple of Leak
        Of kinds ``"duplicates"``, ``"groups"`` and ``"time"``, with row numbers relative to the parts.

    Raises
    ------
    SettingsError
        The parts differ in shape, or groups or time are not two parts of matching length.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(30, 4))
    >>> [leak.kind for leak in check_data(rows[:20], rows[18:])]
    ['duplicates']
    """
    if np.shape(X_train)[1:] != np.shape(X_test)[1:]:
        raise SettingsError(f"training rows have shape {np.shape(X_train)[1:]} but test rows {np.shape(X_test)[1:]}.")
    sizes = n_rows(X_train), n_rows(X_test)
    leaks = duplicate_leaks(X_train, X_test, near, where)
    if groups is not None:
        leaks += group_leaks(*_two_parts(groups, "groups", sizes), where=where)
    if time is not None:
        leaks += time_leaks(*_two_parts(time, "time", sizes), where=where)
    return leaks


def duplicate_leaks(X_train: Any, X_test: Any, near: bool, where: str) -> tuple[Leak, ...]:
    """Exact and near copies of training rows among test rows, unless the data repeats itself by nature."""
    exact = exact_duplicates(X_train, X_test)
    expected = expected_coincidences(X_train, X_test)
    copies = exact if len(exact) > 3 * expected + 1 or (len(exact) and expected < 0.05) else exact[:0]
    found: list[Leak] = []
    if len(copies):
        found.append(make_leak("duplicates", where, _count(copies, n_rows(X_test), "exact copies of training rows")))
    if near:
        close = near_duplicates(X_train, X_test)
        close = close[~np.isin(close[:, 0], exact[:, 0])]
        if len(close):
            found.append(make_leak("duplicates", where, _count(close, n_rows(X_test), "near copies of training rows")))
    return tuple(found)


def exact_duplicates(X_train: Any, X_test: Any) -> Pairs:
    """Test rows that are equal to a training row, by hash: linear in the number of rows.

    Parameters
    ----------
    X_train, X_test
        Rows of the same shape.

    Returns
    -------
    numpy.ndarray, shape (m, 2)
        (test row, first equal training row).
    """
    first: dict[bytes, int] = {}
    for i, key in enumerate(row_hashes(X_train)):
        first.setdefault(key, i)
    pairs = [(i, first[key]) for i, key in enumerate(row_hashes(X_test)) if key in first]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def near_duplicates(X_train: Any, X_test: Any) -> Pairs:
    """Test rows that are nearly equal to a training row.

    Images are compared by a perceptual fingerprint (8 x 8 grey means, brightness and contrast taken out), the best
    match of each then by one of 32 x 32; tables by distance after scaling each column to its spread. Near is less than
    a share of the usual distance between neighbours in the training part (a tenth in tables, with few columns less, so
    that by chance not one in twenty data sets would show such a pair; a quarter in images).

    Parameters
    ----------
    X_train, X_test
        Tables (n, d) or images (n, height, width[, channels]).

    Returns
    -------
    numpy.ndarray, shape (m, 2)
        (test row, nearest training row). Empty for text columns and for data whose neighbours mostly coincide.
    """
    none = np.empty((0, 2), dtype=np.intp)
    if n_rows(X_train) < 3 or n_rows(X_test) < 1 or is_sparse(X_train):
        return none
    if is_images(X_train):
        return _near_images(X_train, X_test)
    scaled = table_vectors(X_train, X_test)
    if scaled is None:
        return none
    train, test = scaled
    nearest, distance = pairwise_distances_argmin_min(test, train)
    # The chance that a neighbour lies within a share r of its usual distance is about log(2) r^d.
    share = min(NEAR, (0.05 / (len(test) * np.log(2))) ** (1 / train.shape[1]))
    rows = np.flatnonzero(distance < share * usual_gap(train))
    return np.asarray(np.c_[rows, nearest[rows]], dtype=np.intp)


def _near_images(X_train: Any, X_test: Any) -> Pairs:
    train, test = image_fingerprints(X_train), image_fingerprints(X_test)
    nearest, distance = pairwise_distances_argmin_min(test, train)
    rows = np.flatnonzero(distance < NEAR_IMAGE * usual_gap(train))
    sample = np.random.default_rng(0).permutation(len(X_train))[:_SAMPLE]
    usual = usual_gap(image_fingerprints(X_train[np.sort(sample)], FINE))
    fine = [image_fingerprints(X, FINE) for X in (X_test[rows], X_train[nearest[rows]])] if len(rows) else None
    if fine is None:
        return np.empty((0, 2), dtype=np.intp)
    gaps = np.linalg.norm(fine[0] - fine[1], axis=1)
    rows = rows[gaps < min(NEAR_FINE, NEAR_IMAGE * usual)]
    return np.asarray(np.c_[rows, nearest[rows]], dtype=np.intp)


def expected_coincidences(X_train: Any, X_test: Any) -> float:
    """How many test rows would equal a training row if the columns were independent: large for coarse data.

    A set with three yes-or-no columns repeats itself without any leak; one with measured columns does not.

    Parameters
    ----------
    X_train, X_test
        Tables; images count as never coinciding.
    """
    if is_images(X_train) or is_sparse(X_train):
        return 0.0
    columns = [np.asarray(X_train[name]) for name in X_train.columns] if hasattr(X_train, "columns") else None
    table = np.asarray(X_train) if columns is None else None
    size = n_rows(X_train)
    if size < 2 or (table is not None and table.ndim != 2):
        return 0.0
    log_chance = 0.0
    for values in columns if columns is not None else table.T:  # type: ignore[union-attr]
        counts = np.unique(values.astype(str) if values.dtype == object else values, return_counts=True)[1]
        same = float((counts * (counts - 1.0)).sum() / (size * (size - 1.0)))
        log_chance += np.log(same) if same > 0 else -np.inf
    return float(n_rows(X_test) * -np.expm1(size * np.log1p(-min(np.exp(log_chance), 1 - 1e-12))))


def group_leaks(train: NDArray[Any], test: NDArray[Any], where: str) -> tuple[Leak, ...]:
    """Groups (patients, users, sites) on both sides."""
    shared = np.intersect1d(train, test)
    if not len(shared):
        return ()
    rows = np.flatnonzero(np.isin(test, shared))
    text = (
        f"{len(shared)} group(s) are in both training and test ({_some(shared)}), with {len(rows)} of {len(test)} test "
        f"rows, the first: {_some(rows)}"
    )
    return (make_leak("groups", where, text),)


def time_leaks(train: NDArray[Any], test: NDArray[Any], where: str) -> tuple[Leak, ...]:
    """Training rows later than the first test row."""
    late = np.flatnonzero(train > np.sort(test)[0])  # min() knows no text
    if not len(late):
        return ()
    text = f"{len(late)} of {len(train)} training rows are later than the first test row, the first: {_some(late)}"
    return (make_leak("time", where, text),)


def overlap_leaks(train: NDArray[np.intp], test: NDArray[np.intp], where: str) -> tuple[Leak, ...]:
    """Rows that a split names on both sides."""
    shared = np.intersect1d(train, test)
    if not len(shared):
        return ()
    text = f"{len(shared)} of {len(test)} test rows are training rows too, the first: {_some(shared)}"
    return (make_leak("overlap", where, text),)


def row_hashes(X: Any) -> list[bytes]:
    """One 16-byte hash per row; equal rows have equal hashes, whatever the memory layout or float width.

    Parameters
    ----------
    X
        Array, sparse matrix or frame with n rows.
    """
    if is_sparse(X):
        # Row by row, so that the whole never becomes dense.
        return [_hash(take_rows(X, np.array([i])).toarray()) for i in range(n_rows(X))]
    if hasattr(X, "columns"):
        columns = [np.asarray(X[name]) for name in X.columns]
        if all(column.dtype.kind in "fiub" for column in columns):
            return row_hashes(np.stack([column.astype(np.float64) for column in columns], axis=1))
        return [_hash_text(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    values = np.asarray(X)
    if values.dtype.kind not in "fiub":
        return [_hash_text(np.ravel(row).tolist()) for row in values]
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 equals 0.0, but not in bytes
    return [_hash(row) for row in np.ascontiguousarray(values.reshape(len(values), -1))]


def _hash(row: NDArray[Any]) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _hash_text(row: Sequence[Any]) -> bytes:
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=16).digest()


def usual_gap(train: NDArray[Any]) -> float:
    """Median distance of a row to its nearest other row, on a sample.

    Parameters
    ----------
    train
        Vectors, shape (n, d), n >= 2.

    Returns
    -------
    float
        0 where most rows have an equal twin: then no distance is small.
    """
    pool = train[np.random.default_rng(0).permutation(len(train))[:20_000]]
    index = NearestNeighbors(n_neighbors=2).fit(pool)
    # Each row finds itself first, or an equal twin, whose distance is the same.
    return float(np.median(index.kneighbors(pool[:200])[0][:, 1]))


def _two_parts(parts: Any, name: str, sizes: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    if not isinstance(parts, (tuple, list)) or len(parts) != 2:
        raise SettingsError(f"{name} must be a pair: one array for the training rows, one for the test rows.")
    train, test = np.asarray(parts[0]), np.asarray(parts[1])
    if (len(train), len(test)) != sizes:
        raise SettingsError(f"{name} has {len(train)} + {len(test)} entries for {sizes[0]} + {sizes[1]} rows.")
    return train, test


def _count(pairs: Pairs, total: int, what: str) -> str:
    shown = ", ".join(f"{test} = {train}" for test, train in pairs[:5])
    more = ", ..." if len(pairs) > 5 else ""
    return f"{len(pairs)} of {total} test rows are {what} (test = training: {shown}{more})"


def _some(values: NDArray[Any]) -> str:
    return ", ".join(str(value) for value in values[:5]) + (", ..." if len(values) > 5 else "")
