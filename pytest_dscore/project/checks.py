"""What `dscore doctor` finds: one check a line, and how the lines are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Literal

from pytest_dscore.holdout.ledger.urls import redact
from pytest_dscore.report.text import plain, wrapped

State = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Parameters
    ----------
    area
        Heading that it stands under.
    state
        What it is.
    says
        What was found.
    do
        What to do about it; empty where nothing is to be done, or `says` says it.
    """

    area: str
    state: State
    says: str
    do: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it as built-in types, without passwords."""
        return {key: redact(value) for key, value in asdict(self).items()}


def lines(checks: Iterable[Check]) -> Iterator[str]:
    """Yield what is printed: each area once, its checks below it, within 80 columns and without passwords."""
    for area, found in groupby(checks, key=lambda one: one.area):
        yield plain(area)
        for one in found:
            yield from wrapped(redact(one.says), f"  {one.state:<9}")
            if one.do:
                yield from wrapped(redact(one.do), " " * 11 + "-> ", " " * 14)
        yield ""


def summary(checks: Iterable[Check]) -> str:
    """Return the last line."""
    bad: list[Any] = [one.state for one in checks if one.state != "ok"]
    counts = [f"{bad.count(state)} {state}" for state in ("missing", "wrong") if state in bad]
    return ", ".join(counts) if counts else "all is well"
