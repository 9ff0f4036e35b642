"""Plain ASCII within 80 columns, and numbers as people write them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from fractions import Fraction

WIDTH = 80
_TIE = "\x00"  # stands for a blank at which no line is broken; `plain` lets none through


def plain(text: str) -> str:
    """Return text in printable ASCII; a name on record may hold anything, a terminal's control codes included."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)


def wrapped(text: str, first: str = "", later: str | None = None) -> list[str]:
    """Return lines of at most 80 columns, the first after `first`, the others after `later` (as many blanks)."""
    later = " " * len(first) if later is None else later
    tied = plain(text).replace(" %", f"{_TIE}%")
    lines = textwrap.wrap(tied, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines] or [first.rstrip()]


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), narrowest: int = 28
) -> list[str]:
    """Return a table whose last column is text, wrapped into what the others leave of 80 columns.

    Parameters
    ----------
    head
        Titles, one a column.
    rows
        Cells, as many in each row as titles.
    right
        Columns set to the right.
    narrowest
        Where less than this is left to the last column, it goes on lines of its own.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    count = len(head) - 1
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(count)]
    left = sum(widths) + 2 * count

    def cells(row: Sequence[str]) -> str:
        return "".join(
            (cell.rjust(width) if i in right else cell.ljust(width)) + "  "
            for i, (cell, width) in enumerate(zip(row[:count], widths, strict=True))
        )

    lines = []
    below = WIDTH - left < narrowest
    for row in [list(head), *rows]:
        if below:
            lines.append(cells(row).rstrip())
            lines += wrapped(row[-1], "    ") if row[-1] and row[-1] != head[-1] else []
        else:
            lines += [line.rstrip() for line in wrapped(row[-1], cells(row), " " * left)]
    return lines


def shortened(name: str, width: int = 24) -> str:
    """Return a name cut in the middle to so many characters: its ends tell names apart best."""
    half = (width - 3) // 2
    return name if len(name) <= width else f"{name[: width - 3 - half]}...{name[-half:]}"


def percent(share: float | Fraction) -> str:
    """Return a share as a percentage with up to four significant digits: ``2 %``, ``1.234 %``."""
    return f"{100 * float(share):.4g} %"


def percent_above(share: float) -> str:
    """Return a percentage with two decimals, rounded up: a guarantee must not be shown tighter than it is."""
    return f"{math.ceil(share * 1e4 - 1e-9) / 100:.2f} %"
