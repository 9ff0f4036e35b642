"""Checks of what a caller passes in: one clear sentence for each thing that can be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError, SettingsError

Mode = Literal["non-adaptive", "adaptive"]
Feedback = Literal["exact", "pass-fail", "ladder"]

LARGEST_COUNT = 10**308  #: counts must fit a double

MODES: tuple[str, ...] = ("non-adaptive", "adaptive")
FEEDBACKS: tuple[str, ...] = ("exact", "pass-fail", "ladder")


def _number(value: Any, name: str) -> float:
    """Return `value` as a float, or say that `name` is no number."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise SettingsError(f"{name} must be a number, not {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{name} must be a number, not {value!r}.") from error
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return number


def open_unit(value: Any, name: str) -> float | Fraction:
    """Return `value` if it lies strictly between 0 and 1."""
    number = _number(value, name)
    if not 0.0 < number < 1.0:
        raise SettingsError(f"{name} must lie strictly between 0 and 1, not {value!r}.")
    return cast("float | Fraction", value if isinstance(value, (Fraction, np.floating)) else number)


def closed_unit(value: Any, name: str) -> float | Fraction:
    """Return `value` if it lies in [0, 1]."""
    number = _number(value, name)
    if not 0.0 <= number <= 1.0:
        raise SettingsError(f"{name} must lie between 0 and 1, not {value!r}.")
    return cast("float | Fraction", value if isinstance(value, (Fraction, np.floating)) else number)


def count(value: Any, name: str) -> int:
    """Return `value` as an integer of at least 1 (floats such as ``1e300`` are taken when they are whole)."""
    number = _number(value, name)
    if not math.isfinite(number) and not isinstance(value, int):
        raise SettingsError(f"{name} must be a whole number of at least 1, not {value!r}.")
    whole = int(value)
    if whole != value or whole < 1:
        raise SettingsError(f"{name} must be a whole number of at least 1, not {value!r}.")
    if whole > LARGEST_COUNT:
        raise SettingsError(f"{name} must be at most 1e308, not a number of {len(str(whole))} digits.")
    return whole


def choice(value: Any, name: str, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of `allowed`."""
    if value not in allowed:
        raise SettingsError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
    return str(value)


def outcomes(value: Any, name: str = "outcomes") -> NDArray[np.bool_]:
    """Return an outcome matrix as booleans of shape (k, n), True where the model is wrong.

    Raises
    ------
    DScoreError
        Not two-dimensional, rows of different lengths, no model, no example, NaN, or anything but 0 and 1.
    """
    try:
        matrix = np.asarray(value)
    except ValueError as error:
        raise DScoreError(f"{name}: the rows differ in length; every model needs one outcome per example.") from error
    if matrix.dtype == object:
        raise DScoreError(f"{name}: the rows differ in length or are not numbers; give one 0 or 1 per example.")
    if matrix.ndim != 2:
        raise DScoreError(f"{name} must have shape (models, examples), not {matrix.shape}; one row is one model.")
    if 0 in matrix.shape:
        raise DScoreError(f"{name} of shape {matrix.shape} is empty; give at least one model and one example.")
    return _binary(matrix, name)


def outcome_vector(value: Any, n: int, name: str = "outcomes") -> NDArray[np.bool_]:
    """Return one model's outcomes as booleans of shape (n,).

    Raises
    ------
    DScoreError
        Another length than `n`, masked values, or anything but 0 and 1.
    """
    if np.ma.is_masked(value):
        raise DScoreError(f"{name} is a masked array that lacks values; give one 0 or 1 per example.")
    vector = np.asarray(value)
    if vector.shape != (n,):
        raise DScoreError(f"{name} must hold one outcome for each of the {n} examples, not shape {vector.shape}.")
    return _binary(vector, name)


def _binary(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Return `values` as booleans, or name the first one that is neither 0 nor 1."""
    if values.dtype == np.bool_:
        return values
    if values.dtype.kind not in "iuf":
        raise DScoreError(f"{name} must hold 0 (right) and 1 (wrong), not values of type {values.dtype}.")
    bad = ~((values == 0) | (values == 1))
    if bool(bad.any()):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"model {where[0]}, example {where[1]}" if len(where) == 2 else f"example {where[0]}"
        raise DScoreError(f"{name} must hold only 0 (right) and 1 (wrong), but {place} is {values[where]}.")
    return values.astype(np.bool_)
