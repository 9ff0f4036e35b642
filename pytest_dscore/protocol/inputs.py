"""Look at what the user handed over (arrays, frames, sparse matrices) and say in one sentence what cannot be used."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import _safe_indexing

from ..errors import SettingsError
from ..figure import MOST_CONFIDENCE


def is_sparse(data: Any) -> bool:
    """Whether `data` is a scipy sparse matrix or array."""
    # Not scipy's issparse by name: its type guard would hide tocsr from the type checker.
    return bool(sparse.issparse(data))


def n_rows(data: Any) -> int:
    """Count the rows of an array, sparse matrix, frame or list."""
    shape = getattr(data, "shape", None)
    return int(shape[0]) if shape else len(data)


def take_rows(data: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of an array (any number of axes), sparse matrix, pandas or polars frame, or list, in the type it has."""
    if isinstance(data, np.ndarray):
        return data[rows]
    if is_sparse(data):
        return data.tocsr()[rows]
    return _safe_indexing(data, rows)


def labels_array(y: Any) -> NDArray[Any]:
    """Labels as a one-dimensional array, whatever container they came in.

    Raises
    ------
    SettingsError
        y is not one-dimensional, or holds NaN or None.
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise SettingsError(f"y has shape {labels.shape}: pass one label per row.")
    missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        raise SettingsError(
            f"y holds {len(missing)} missing label(s), the first in row {missing[0]}: remove those rows."
        )
    if labels.dtype == object:
        kinds = {type(label) for label in labels.tolist()}
        if len(kinds) == 1:
            labels = np.array(labels.tolist())
    return labels


def check_lengths(X: Any, y: NDArray[Any], groups: Any) -> NDArray[Any] | None:
    """Check that X, y and groups have as many rows, and return the groups as an array.

    Raises
    ------
    SettingsError
        A length differs.
    """
    rows = n_rows(X)
    if len(y) != rows:
        raise SettingsError(f"y has {len(y)} labels but X has {rows} rows: pass one label per row.")
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.ndim != 1 or len(found) != rows:
        raise SettingsError(f"groups has shape {found.shape} but X has {rows} rows: pass one group per row.")
    return found


def check_int(value: Any, name: str, least: int) -> int:
    """Check an integer setting of at least `least`.

    Raises
    ------
    SettingsError
        It is not an integer, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingsError(f"{name}={value!r} must be an integer of at least {least}.")
    return int(value)


def check_confidence(value: Any) -> float:
    """Check the confidence of an interval.

    Raises
    ------
    SettingsError
        It is not.
    """
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0 < float(value) <= MOST_CONFIDENCE:
        raise SettingsError(f"confidence={value!r} must be a number between 0 and {MOST_CONFIDENCE}.")
    return float(value)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Suggestion for a misspelt name: ``"; did you mean 'C'?"`` or nothing."""
    close = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_grid(param_grid: Any, estimator: Any) -> list[dict[str, Sequence[Any]]]:
    """Check a search space against the estimator's parameters.

    Parameters
    ----------
    param_grid
        Mapping of names to lists of values, or a list of such mappings.
    estimator
        scikit-learn estimator, or a callable, whose keyword names are then not checked.

    Returns
    -------
    list of dict

    Raises
    ------
    SettingsError
        The space is empty, a value is not a list, or a name is not a parameter.
    """
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    if not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise SettingsError("param_grid is empty or no mapping: pass {name: [values, ...]}, or None to select nothing.")
    valid = sorted(estimator.get_params()) if hasattr(estimator, "get_params") else None
    for grid in grids:
        if not grid:
            raise SettingsError("param_grid is empty: pass {name: [values, ...]}, or None to select nothing.")
        for name, values in grid.items():
            if valid is not None and name not in valid:
                kind = type(estimator).__name__
                raise SettingsError(f"param_grid names {name!r}, which {kind} does not have{nearest(name, valid)}.")
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise SettingsError(f"param_grid[{name!r}] is {values!r}: pass a list of values.")
            if len(values) == 0:
                raise SettingsError(f"param_grid[{name!r}] is empty: pass at least one value.")
    return [dict(grid) for grid in grids]


def check_scorer(scoring: Any) -> Any:
    """scikit-learn scorer from its name or a callable ``(estimator, X, y) -> float``.

    Raises
    ------
    SettingsError
        The name is unknown.
    """
    if callable(scoring):
        return scoring
    try:
        return get_scorer(scoring)
    except (ValueError, TypeError, KeyError) as error:
        hint = nearest(str(scoring), get_scorer_names())
        raise SettingsError(f"scoring={scoring!r} is not a scorer that scikit-learn knows{hint}.") from error


def missing_columns(X: Any) -> list[str]:
    """Names (or numbers) of the columns of X that hold NaN or None, in order."""
    if is_sparse(X):
        sheet = X.tocsc()
        columns = [
            i for i in range(sheet.shape[1]) if np.isnan(sheet.data[sheet.indptr[i] : sheet.indptr[i + 1]]).any()
        ]
        return [str(i) for i in columns]
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns if _has_missing(np.asarray(X[name]))]
    values = np.asarray(X)
    if values.ndim < 2:
        return []
    return [str(i) for i in range(values.shape[1]) if _has_missing(values[:, i])]


def explain_failure(error: Exception, X: Any) -> Exception:
    """Give a clear error where a fit failed because X holds NaN and nothing imputes it; otherwise the error itself."""
    if isinstance(error, SettingsError) or "nan" not in str(error).lower():
        return error
    columns = missing_columns(X)
    if not columns:
        return error
    shown = ", ".join(columns[:5]) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
    return SettingsError(
        f"X holds NaN in column(s) {shown} and the estimator does not accept it: put an imputer into the pipeline."
    )


def _has_missing(values: NDArray[Any]) -> bool:
    if values.dtype.kind in "fc":
        return bool(np.isnan(values).any())
    if values.dtype == object:
        return any(value is None or value != value for value in values.ravel().tolist())
    return False
