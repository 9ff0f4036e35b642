"""Plain ASCII within 80 columns, and numbers as people write them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from itertools import zip_longest

WIDTH = 80
FOLD = 20
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
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    narrowest: int = 28,
    folded: int | None = None,
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
    folded
        A column of names that may be long: what does not fit into `FOLD` characters stands below, so nothing is cut.
    """
    split = [[_folded(plain(cell)) if i == folded else [plain(cell)] for i, cell in enumerate(row)] for row in rows]
    count = len(head) - 1
    titles = [[title] for title in head]
    widths = [max(len(line) for row in [titles, *split] for line in row[i]) for i in range(count)]
    left = sum(widths) + 2 * count

    def cells(parts: Sequence[str]) -> str:
        return "".join(
            (part.rjust(width) if i in right else part.ljust(width)) + "  "
            for i, (part, width) in enumerate(zip(parts, widths, strict=True))
        )

    below = WIDTH - left < narrowest
    lines = [cells(head[:-1]) + ("" if below else head[-1])]
    for *parts, [last] in split:
        first = [cells(line) for line in zip_longest(*parts, fillvalue="")]
        if below:
            lines += first + (wrapped(last, "    ") if last else [])
        else:
            beside = [line[left:] for line in wrapped(last, " " * left)]
            lines += [f"{one:{left}}{other}" for one, other in zip_longest(first, beside, fillvalue="")]
    return [line.rstrip() for line in lines]


def _folded(name: str) -> list[str]:
    return [name[start : start + FOLD] for start in range(0, len(name), FOLD)] or [""]


def without_answers(key: str) -> str:
    """Return what a ledger knows a model by, without the digest of its answers."""
    return re.sub(r"@[0-9a-f]{16}$", "", key)


def model_name(key: str, *, hidden: bool = False) -> str:
    """Return what a ledger knows a model by, with digests cut to ten digits, as git cuts the names of commits.

    Where answers are `hidden` their digest is left out: whoever guesses them could check the guess by it.
    """
    return re.sub(r"[0-9a-f]{16,}", lambda digest: digest[0][:10], without_answers(key) if hidden else key)


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
