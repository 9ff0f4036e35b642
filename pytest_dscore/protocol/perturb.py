"""Change test rows: features and labels far from what they were, so that whatever is fitted on them moves."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import is_sparse
from .splits import Rows

Rng = np.random.Generator


def replace_features(X: Any, rows: Rows, train: Rows, how: str, seed: int) -> tuple[Any, Rows]:
    """Copy X with some rows changed, in the type that X has.

    Parameters
    ----------
    X
        Array with any number of axes, sparse matrix, pandas or polars frame.
    rows
        Rows to change.
    train
        Rows whose spread (and values) the change is made from.
    how
        ``"outliers"`` (half of the columns 1,000 standard deviations of the widest column away), ``"shifted"`` (the
        other columns moved to a wide cluster, 100 to 200 of them away), ``"constant"`` (all equal to one training
        row), ``"resampled"`` (copies of random training rows),
        ``"islands"`` (about six copies each of a few training rows), or ``"missing"`` (NaN, where the type has it).
    seed
        Seed of what is drawn.

    Returns
    -------
    changed, source
        `source`: the training row that each of `rows` was copied from, where it was.
    """
    rng = np.random.default_rng(seed)
    # The same row for every column, so that a copied row is a row that exists.
    few = {"constant": 1, "islands": max(2, len(rows) // 6)}.get(how, len(train))
    source = rng.choice(rng.permutation(train)[:few], size=len(rows))
    if how in ("resampled", "constant", "islands"):
        return _like(X, lambda values: _copied(values, rows, source)), source
    sheet = X.toarray() if is_sparse(X) else X
    if isinstance(sheet, np.ndarray):
        new = _moved(sheet, rows, train, how, rng)
        return (type(X)(new) if is_sparse(X) else new), source
    names = list(X.columns)
    numbers = [name for name in names if np.asarray(X[name]).dtype.kind in "fiu"]
    columns = {name: _shuffled(np.array(X[name]), rows, train, rng) for name in names if name not in numbers}
    if numbers:
        table = np.stack([np.asarray(X[name], dtype=np.float64) for name in numbers], axis=1)
        moved = _moved(table, rows, train, how, rng)
        columns |= {n: _cast(moved[:, i], np.asarray(X[n]).dtype) for i, n in enumerate(numbers)}
    return _with_columns(X, {name: columns[name] for name in names}), source


def fresh(X: Any) -> Any:
    """Copy of X, so that a protocol that writes into its input cannot disturb the next run."""
    if hasattr(X, "copy"):
        return X.copy()
    return X.clone() if hasattr(X, "clone") else X


def change_labels(y: NDArray[Any], rows: Rows, train: Rows, how: str, seed: int, guess: NDArray[Any]) -> NDArray[Any]:
    """Copy of y with the labels of `rows` changed, for classes always to a class that the training rows have.

    Parameters
    ----------
    y
        Labels, shape (n,).
    rows, train
        Rows to change; rows that the classes (or the spread of a numeric target) come from.
    how
        ``"flipped"`` (against the prediction, so that whatever was chosen looks its worst), ``"permuted"``,
        ``"constant"``, or ``"impossible"``.
    seed
        Seed of what is drawn.
    guess
        Prediction of the unchanged protocol for each of `rows`; used where it is a class.
    """
    rng = np.random.default_rng(seed)
    changed = y.copy()
    if is_numeric_target(y):
        known = y[train]
        centre, spread = known.mean(), known.std() + 1e-12
        if how == "flipped":
            changed[rows] = centre + 1000 * spread * np.where(y[rows] > centre, -1, 1)
        elif how == "permuted":
            changed[rows] = rng.permutation(y[rows])
        else:
            changed[rows] = centre + 10 * spread if how == "constant" else np.nan
        return changed
    classes = np.unique(y[train])
    # A prediction that is no class (a score) cannot be opposed; the true label can.
    against = guess if guess.shape == (len(rows),) and np.isin(guess, classes).all() else y[rows]
    code = np.searchsorted(classes, np.where(np.isin(against, classes), against, classes[0]))
    if how == "flipped":
        changed[rows] = classes[(code + 1) % len(classes)]
    elif how == "permuted":
        drawn = rng.permutation(y[rows])
        changed[rows] = drawn if (drawn != y[rows]).any() else rng.choice(classes, size=len(rows))
    elif how == "constant":
        counts = np.bincount(code, minlength=len(classes))
        changed[rows] = classes[counts.argmin()]
    else:
        return _impossible(changed, rows)
    return changed


def is_numeric_target(y: NDArray[Any]) -> bool:
    """Whether y is a quantity rather than a class: floats that are not all whole numbers."""
    return y.dtype.kind == "f" and not bool(np.all(y == np.round(y)))


def _impossible(y: NDArray[Any], rows: Rows) -> NDArray[Any]:
    if y.dtype.kind == "f":
        y[rows] = np.nan
    elif y.dtype.kind == "i":
        y[rows] = np.iinfo(y.dtype).min // 2
    elif y.dtype.kind in "US":
        y = y.astype(object)
        y[rows] = "no such label"
    elif y.dtype.kind == "u":
        y[rows] = np.iinfo(y.dtype).max
    else:
        y = y.astype(object)
        y[rows] = None
    return y


def _like(X: Any, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Any:
    """Apply a change of rows to an array, a sparse matrix, or each column of a frame."""
    if is_sparse(X):
        return type(X)(change(X.toarray()))
    if isinstance(X, np.ndarray):
        return change(X)
    return _with_columns(X, {name: change(np.array(X[name])) for name in X.columns})


def _with_columns(X: Any, columns: dict[Any, NDArray[Any]]) -> Any:
    if hasattr(X, "iloc"):
        # Assign to a copy, so that the index stays.
        return (
            X.assign(**columns) if all(isinstance(name, str) for name in columns) else type(X)(columns, index=X.index)
        )
    return type(X)(columns)


def _copied(values: NDArray[Any], rows: Rows, source: Rows) -> NDArray[Any]:
    changed = values.copy()
    changed[rows] = values[source]
    return changed


def _shuffled(values: NDArray[Any], rows: Rows, train: Rows, rng: Rng) -> NDArray[Any]:
    """Text and booleans have no outliers: values of other training rows."""
    changed = values.copy()
    changed[rows] = values[rng.choice(train, size=len(rows))]
    return changed


def _moved(X: NDArray[Any], rows: Rows, train: Rows, how: str, rng: Rng) -> NDArray[Any]:
    if X.dtype.kind not in "fiu":
        return _shuffled(X, rows, train, rng)
    changed = X.copy()
    old = X[rows].astype(np.float64)
    if how == "missing":
        changed[rows] = np.nan if X.dtype.kind == "f" else 0
        return changed
    known = X[train].astype(np.float64)
    # One spread per column in a table; one for all pixels of images, where many columns never vary.
    axis = 0 if X.ndim <= 2 else None
    centre, spread = np.nanmean(known, axis=axis), np.nanstd(known, axis=axis)
    spread = np.where(spread > 0, spread, 1.0)
    # Half of the columns: were all moved alike, a scaler would undo it and a projection would not turn.
    columns = rng.permutation(np.arange(int(np.prod(X.shape[1:]))) % 2 == 0).reshape(X.shape[1:])
    if how == "outliers":
        # Features that are never negative (counts, pixels) stay so: some models refuse anything else.
        sign = 1.0 if np.nanmin(known) >= 0 else rng.choice([-1.0, 1.0], size=old.shape)
        far = centre + sign * 1000 * spread.max() * rng.uniform(0.5, 1.5, size=old.shape)
        new = np.where(columns, far, old)
    else:
        cluster = centre + 100 * spread.max() * rng.uniform(1, 2, size=old.shape)
        new = np.where(columns & (X.shape[-1] > 1), old, cluster)
    changed[rows] = _cast(new, X.dtype)
    return changed


def _cast(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Back to the type of the data, within its range."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.clip(np.round(values), limits.min, limits.max)
    return np.asarray(values.astype(dtype))
