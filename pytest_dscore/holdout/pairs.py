"""Joint tails of many pairs of models at once: what `coupling` sums for one pair, row by row of a matrix.

An analysis needs some thousands of joint tails whose sums have a few hundred terms each, so that one at a time most of
the time goes into calling functions. The formulas, the window and the bound on what lies outside of it are those of
`JointTail`; the few pairs that need more care than a plain sum (rates of 0 or 1, tails below the smallest double) are
given to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.coupling import Coupling, JointTail
from pytest_dscore.holdout.tails import Floats

Ints = NDArray[np.int64]
_CELLS = 2**16  # terms held at a time: such a matrix of doubles stays in the processor's cache
_GRID = np.linspace(0.0, 1.0, 33)
_REACHES = (60.0, 300.0)  # e^-36 is what must not be missed; the approximation that windows are cut by is a rough one
_MOST_EXAMPLES = 200_000  # up to here sums from neighbour to neighbour stay within a few 1e-12
_SCALE = 600.0  # sums whose first term is so much smaller than the largest, in logs, are left to `JointTail`


@dataclass(frozen=True)
class _Rows:
    """``P(U >= u and L <= l)`` in each row: U and L count j trials of the rates, j counts n trials of `shared`."""

    shared: Floats
    shared_rest: Floats
    above: Floats
    above_rest: Floats
    below: Floats
    below_rest: Floats
    u: Floats
    l: Floats  # noqa: E741

    def __getitem__(self, rows: NDArray[Any]) -> _Rows:
        return _Rows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def exclusive_logs(
    n: int, wrong: Any, other: Any, agree: Any, side: Literal["upper", "lower"], deviation: Any, offset: Any
) -> Floats:
    """Return ``log P(a model deviates by `deviation` and another does not by `offset`)`` for many pairs.

    Parameters
    ----------
    n
        Examples, at least 1.
    wrong, other
        Wrong examples of the model and of the other one; whole numbers 0..n, shapes that broadcast.
    agree
        Number of examples, 0..n, on which both are right or both wrong.
    side
        ``"upper"`` for ``N >= wrong + deviation and N' < other + offset``, ``"lower"`` for the mirror image.
    deviation, offset
        Whole numbers, at least 0.

    Returns
    -------
    ndarray
        float64 of the broadcast shape; never below the true value of the coupling by more than rounding (1e-12 of the
        probability), as `JointTail`. 0 where there is no coupling: nothing is known beyond the model's own tail.
    """
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.int64) for a in (wrong, other, agree, deviation, offset)))
    a, b, same, m, t = (array.ravel() for array in arrays)
    both = a + b - n + np.minimum(same, n - np.abs(a - b))  # 2 n P11; whole numbers below 2^53, so ratios are exact
    result = np.zeros(a.size)
    coupled = np.flatnonzero((a > 0) & (b > 0) & (n * both >= 2 * a * b))
    a, b, both, m, t = (array[coupled] for array in (a, b, both, m, t))
    rates = (2 * a * b / (n * both), (n * both - 2 * a * b) / (n * both))
    model, relative = (both / (2 * b), (2 * b - both) / (2 * b)), (both / (2 * a), (2 * a - both) / (2 * a))
    if side == "upper":
        rows = _Rows(*rates, *model, *relative, (a + m).astype(np.float64), (b + t - 1).astype(np.float64))
    else:
        rows = _Rows(*rates, *relative, *model, (b - t + 1).astype(np.float64), (a - m).astype(np.float64))
    result[coupled] = _joint(n, rows)
    return result.reshape(arrays[0].shape)


def _joint(n: int, rows: _Rows) -> Floats:
    """Return the log probabilities, by matrices where the rows are ordinary and one by one where not."""
    result = np.full(rows.u.size, np.nan)
    result[(rows.u > n) | (rows.l < 0)] = -np.inf
    for reach in _REACHES:
        for chosen, left, width in _chunks(n, rows, np.isnan(result), reach):
            result[chosen] = _summed(n, rows[chosen], left, width)
    for row in np.flatnonzero(np.isnan(result)):
        result[row] = _single(n, rows, int(row))
    return result


def _single(n: int, rows: _Rows, row: int) -> float:
    upper = float(rows.above[row]), float(rows.above_rest[row])
    lower = float(rows.below[row]), float(rows.below_rest[row])
    coupling = Coupling(float(rows.shared[row]), float(rows.shared_rest[row]), *upper, *lower)
    return JointTail(n, coupling).log_probability("upper", int(rows.u[row]), "lower", int(rows.l[row]))


def _chunks(n: int, rows: _Rows, wanted: NDArray[np.bool_], reach: float) -> Iterator[tuple[Ints, Floats, int]]:
    """Yield ordinary rows in groups of about one width, with the first j of each window and the width."""
    positive = (rows.shared_rest > 0) & (rows.above_rest > 0) & (rows.below_rest > 0)
    ordinary = np.flatnonzero(wanted & positive & (rows.u >= 2) & (rows.l >= 1) & (n <= _MOST_EXAMPLES))
    if not ordinary.size:
        return
    left, right = _windows(n, rows[ordinary], reach)
    for chosen in _groups(right - left + 1):
        width = int((right - left)[chosen].max()) + 1
        start = np.minimum(left[chosen], n - width + 1)
        fits = start >= rows.u[ordinary[chosen]]
        if fits.any():
            yield ordinary[chosen[fits]], start[fits], width


def _windows(n: int, r: _Rows, reach: float) -> tuple[Floats, Floats]:
    """Return first and last j of windows outside of which terms should be below ``exp(-reach)`` of the largest.

    By a normal approximation on a grid that is zoomed into: terms are log-concave, so what counts lies between the
    neighbours of what is kept. Whoever sums the window sees whether it was wide enough.
    """
    mean, spread = n * r.shared, np.sqrt(n * r.shared * r.shared_rest)
    # A product of one-peaked factors peaks between their peaks; below u the upper tail is empty.
    left = np.maximum(r.u, np.minimum(mean, r.l / r.below) - 9 * spread - 8)
    right = np.minimum(n, np.maximum(mean, r.u / r.above) + 9 * spread + 8)
    index = np.arange(len(mean))
    for _ in range(2):
        j = left[:, None] + (right - left)[:, None] * _GRID
        logs = -0.5 * ((j - mean[:, None]) / spread[:, None]) ** 2
        for count, rate, rest, sign in ((r.u - 0.5, r.above, r.above_rest, 1), (r.l + 0.5, r.below, r.below_rest, -1)):
            off = j * rate[:, None] - count[:, None]
            logs += special.log_ndtr(sign * off / np.sqrt(j * (rate * rest)[:, None]))
        kept = logs > logs.max(axis=1)[:, None] - reach
        first = np.maximum(kept.argmax(axis=1) - 1, 0)
        last = np.minimum(_GRID.size - kept[:, ::-1].argmax(axis=1), _GRID.size - 1)
        left, right = j[index, first], j[index, last]
    return np.maximum(np.floor(left) - 4, r.u), np.minimum(np.ceil(right) + 4, n)


def _groups(widths: Floats) -> Iterator[Ints]:
    """Yield the rows in groups that are small, and alike in width so that little is added for nothing."""
    order = np.argsort(widths, kind="stable")
    order = order[(widths[order] >= 4) & (widths[order] <= _CELLS)]
    while order.size:
        most = 1.3 * widths[order[0]] + 16
        size = min(int(np.searchsorted(widths[order], most, side="right")), max(1, int(_CELLS // most)))
        yield order[:size]
        order = order[size:]


def _summed(n: int, r: _Rows, left: Floats, width: int) -> Floats:
    """Return the sums over windows of one width; nan in rows that `JointTail` must do."""
    j = left[:, None] + np.arange(width)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = _weights(n, j, r.shared, r.shared_rest)
        logs += _upper_run(r.u, j, r.above, r.above_rest)
        logs += _lower_run(r.l, j, r.below, r.below_rest)
        top = logs.max(axis=1)
        total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        rest = np.maximum(
            _geometric(logs[:, 0], logs[:, 1], left - r.u), _geometric(logs[:, -1], logs[:, -2], n - j[:, -1])
        )
        value = np.minimum(0.0, np.logaddexp(total, rest + np.log(2)))
    return np.where((rest < total - 36) & np.isfinite(total), value, np.nan)  # e^-36 = 2e-16: added, not dropped


def _geometric(edge: Floats, inner: Floats, terms: Floats) -> Floats:
    """Return the log of a bound on the terms beyond an edge; see `coupling`."""
    ratio = edge - inner
    bound = edge + np.minimum(np.log(terms), ratio - np.log(-np.expm1(ratio)))
    return np.where(terms <= 0, -np.inf, np.where(ratio < 0, bound, np.inf))


def _log_rest(rate: Floats, rest: Floats) -> Floats:
    return np.where(rate < 0.5, np.log1p(-rate), np.log(rest))


def _weights(n: int, j: Floats, rate: Floats, rest: Floats) -> Floats:
    """Return ``log P(Bin(n, rate) = j)`` from one value and the ratios of neighbours."""
    ratios = np.log((n - j[:, :-1]) / j[:, 1:]) + (np.log(rate) - _log_rest(rate, rest))[:, None]
    middle = np.full(len(j), j.shape[1] // 2)
    return _anchored(ratios, middle, tails.inner_log_pmf(_at(j, middle), np.full(len(j), float(n)), rate, rest))


def _pmf_run(count: Floats, j: Floats, rate: Floats, rest: Floats) -> Floats:
    """Return ``log P(Bin(j, rate) = count)``; nan in rows where fewer than two j are above the count."""
    first = count - j[:, 0]
    middle = np.maximum(j.shape[1] // 2, first + 1).astype(np.int64)
    known = middle < j.shape[1]
    middle = np.minimum(middle, j.shape[1] - 1)
    gap = j[:, 1:] - count[:, None]
    ratios = np.where(gap > 0, np.log(j[:, 1:] / gap) + _log_rest(rate, rest)[:, None], 0.0)
    value = np.where(known, tails.inner_log_pmf(count, _at(j, middle), rate, rest), np.nan)
    return np.where(j < count[:, None], -np.inf, _anchored(ratios, middle, value))


def _anchored(ratios: Floats, middle: Ints, value: Floats) -> Floats:
    """Return the sequences with these log ratios that have `value` at index `middle`."""
    result = np.zeros((len(ratios), ratios.shape[1] + 1))
    np.cumsum(ratios, axis=1, out=result[:, 1:])
    result += (value - _at(result, middle))[:, None]
    return result


def _at(matrix: Floats, column: Ints) -> Floats:
    return np.take_along_axis(matrix, column[:, None], axis=1)[:, 0]


def _upper_run(count: Floats, j: Floats, rate: Floats, rest: Floats) -> Floats:
    """Return ``log P(Bin(j, rate) >= count)`` for consecutive j >= count, as `coupling` does."""
    steps = np.empty_like(j)
    steps[:, 0] = tails.log_upper_each(count, j[:, 0], rate, rest)
    steps[:, 1:] = _pmf_run(count - 1, j[:, :-1], rate, rest) + np.log(rate)[:, None]
    return _log_cumsum(steps)


def _lower_run(count: Floats, j: Floats, rate: Floats, rest: Floats) -> Floats:
    """Return ``log P(Bin(j, rate) <= count)`` for consecutive j."""
    steps = np.empty_like(j)
    steps[:, 0] = tails.log_lower_each(count, j[:, -1], rate, rest)
    steps[:, 1:] = _pmf_run(count, j[:, :-1], rate, rest)[:, ::-1] + np.log(rate)[:, None]
    return _log_cumsum(steps)[:, ::-1]


def _log_cumsum(logs: Floats) -> Floats:
    """Return the logs of running sums along each row; nan where one scale would lose the first of them."""
    top = logs.max(axis=1)
    sums = np.log(np.cumsum(np.exp(logs - top[:, None]), axis=1)) + top[:, None]
    return np.where((top - logs[:, 0] <= _SCALE)[:, None], np.minimum(sums, 0.0), np.nan)
