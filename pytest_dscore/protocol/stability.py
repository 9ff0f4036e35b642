"""How much the selected parameters differ between folds: over-fitting in model selection made visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ParamSelection:
    """How often each value of one hyper-parameter won.

    Parameters
    ----------
    name
        The hyper-parameter.
    counts
        (value, folds that selected it), most frequent first.
    agreement
        Share of the folds that selected the most frequent value, in (0, 1]; 1: all agree.
    log2_range
        log2 of largest over smallest selected value, where all are positive numbers; ``nan`` otherwise.
    """

    name: str
    counts: tuple[tuple[Any, int], ...]
    agreement: float
    log2_range: float

    def __str__(self) -> str:
        shown = ", ".join(f"{_short(value)} x {count}" for value, count in self.counts[:4])
        more = f" and {len(self.counts) - 4} more" if len(self.counts) > 4 else ""
        verdict = "all folds agree" if self.agreement == 1 else f"folds disagree, {self.agreement:.0%} on the first"
        return f"{self.name}: {shown}{more} ({verdict})"


def selection_stability(selected: Sequence[Mapping[str, Any]]) -> tuple[ParamSelection, ...]:
    """Count the values that the folds selected.

    Parameters
    ----------
    selected
        One mapping of parameter names to values per fold.

    Returns
    -------
    tuple of ParamSelection
        One per parameter, by name; empty where nothing was selected.
    """
    names = sorted({name for params in selected for name in params})
    return tuple(_one(name, [params[name] for params in selected if name in params], len(selected)) for name in names)


def _one(name: str, values: list[Any], folds: int) -> ParamSelection:
    tally: dict[str, list[Any]] = {}
    for value in values:
        # Values may be arrays or estimators, which cannot be hashed; their text tells them apart.
        entry = tally.setdefault(repr(value), [value, 0])
        entry[1] += 1
    ordered = sorted(tally.values(), key=lambda entry: -entry[1])
    counts = tuple((value, count) for value, count in ordered)
    return ParamSelection(name, counts, counts[0][1] / folds, _log2_range(values))


def _log2_range(values: list[Any]) -> float:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return float("nan")
    if any(isinstance(value, (bool, np.bool_)) for value in values) or not np.all(numbers > 0):
        return float("nan")
    # An array per fold (ARD): the feature that moves most.
    return float(np.max(np.ptp(np.log2(numbers), axis=0)))


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
