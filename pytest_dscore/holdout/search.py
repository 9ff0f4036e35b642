"""Searches over whole numbers, for questions whose answer changes once from no to yes or back."""

from __future__ import annotations

import math
from collections.abc import Callable

from pytest_dscore.errors import DScoreError

MOST_MODELS = 10**300  #: where the search ends; a budget of this size means that models are no limit
MOST_EXAMPLES = 10**9
EXACT_BUDGET = 10**15  #: up to here a budget is an exact whole number


def format_count(count: int) -> str:
    """Return a budget for a report: exact with thousands separators up to 10^15, in scientific notation above."""
    if count <= EXACT_BUDGET:
        return f"{count:,}"
    digits = str(count)
    text = f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"
    return f"{text} or more" if count >= MOST_MODELS else text


def largest(holds: Callable[[int], bool]) -> int:
    """Return the largest k in 0..MOST_MODELS at which `holds` is still true (true, then false)."""
    if not holds(1):
        return 0
    low, stride = 1, 1
    while holds(min(low << stride, MOST_MODELS)):
        low = min(low << stride, MOST_MODELS)
        if low >= MOST_MODELS:
            return MOST_MODELS
        stride *= 2
    high = min(low << stride, MOST_MODELS)
    while high - low > max(1, low // 10**13):
        # halve the exponent while the ends are far apart, then the interval
        middle = (low + high) // 2 if high < 4 * low else low << ((high.bit_length() - low.bit_length()) // 2)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if holds(middle) else (low, middle)
    if low <= EXACT_BUDGET:
        return low
    unit = int(10 ** (len(str(low)) - 12))
    return low // unit * unit


def first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest value in low..high at which `holds` is true, taking it to be true at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def doubled(holds: Callable[[int], bool], start: int) -> int:
    """Return the first doubling of `start` at which `holds` is true."""
    n = start
    while not holds(n):
        n *= 2
        if n > MOST_EXAMPLES:
            raise DScoreError(
                f"More than {MOST_EXAMPLES:,} examples would be needed; use a larger epsilon or delta, or fewer models."
            )
    return n


def first_down(holds: Callable[[int], bool], top: int) -> int:
    """Return the smallest value in 1..top at which `holds` is true; it is true at `top` and changes near it."""
    stride = 1
    while top - stride >= 1 and holds(top - stride):
        top -= stride
        stride *= 2
    return first(holds, max(1, top - stride + 1), top)


def first_between(value: Callable[[int], float], target: float, low: int, high: int, start: int = 0) -> int:
    """Return the smallest m in low + 1..high at which ``value(m) <= target``, taking that to be so at `high`.

    Parameters
    ----------
    value
        Falls with m, about as the log of a normal tail: linearly in m^2. Asked at few m, each time where that line
        crosses the target, or in the middle where that did not halve what is left.
    target
        Finite.
    low, high
        ``0 <= low < high``.
    start
        Where to ask first; in the middle if not given.
    """
    ends: dict[int, float] = {}
    middle = min(max(start or (low + high) // 2, low + 1), high - 1)
    while high - low > 1:
        before = high - low
        ends[middle] = value(middle)
        low, high = (low, middle) if ends[middle] <= target else (middle, high)
        crossing = _crossing(ends.get(low), ends.get(high), target, low, high)
        halved = 2 * (high - low) <= before
        middle = min(max(crossing if halved and crossing else (low + high) // 2, low + 1), high - 1)
    return high


def _crossing(above: float | None, below: float | None, target: float, low: int, high: int) -> int | None:
    if above is None or below is None or not math.isfinite(above - below) or above <= below:
        return None
    share = (above - target) / (above - below)
    return math.ceil(math.sqrt(low * low + share * (high * high - low * low)))
