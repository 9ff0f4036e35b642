"""The n x n grid: how a spatial map is cut, and what a person calls each part of it."""

from __future__ import annotations

_ROWS = {2: ("upper", "lower"), 3: ("upper", "middle", "lower")}
_COLUMNS = {2: ("left", "right"), 3: ("left", "middle", "right")}


def edges(length: int, n: int) -> tuple[int, ...]:
    """Cut ``length`` pixels into n parts as evenly as whole pixels allow.

    Returns
    -------
    tuple of int
        n + 1 positions, ``floor(i * length / n)`` for i = 0..n (D-Score spec, "region rows and columns").
    """
    return tuple(i * length // n for i in range(n + 1))


def cell(n: int, row: int, col: int, height: int, width: int) -> tuple[slice, slice]:
    """Rows and columns of region (row, col) in a map of ``height`` x ``width``; row 0 is the top, column 0 the left."""
    rows, columns = edges(height, n), edges(width, n)
    return slice(rows[row], rows[row + 1]), slice(columns[col], columns[col + 1])


def regions(n: int) -> tuple[tuple[int, int], ...]:
    """All n^2 (row, column) pairs in reading order, the order of the rows of every hit matrix."""
    return tuple((row, col) for row in range(n) for col in range(n))


def region_name(row: int, col: int, n: int) -> str:
    """What a person calls region (row, col): ``lower right``, or ``row 4, column 1`` (from 1) where n > 3."""
    if n == 3 and (row, col) == (1, 1):
        return "centre"
    return f"{_ROWS[n][row]} {_COLUMNS[n][col]}" if n in _ROWS else f"row {row + 1}, column {col + 1}"


def place_name(row: int, col: int, n: int) -> str:
    """Where an object is that was moved toward region (row, col), to follow the words *the object is*."""
    return region_name(row, col, n) if n in _ROWS else f"in {region_name(row, col, n)}"
