"""Two models on one test set: the coupling of Mania et al. 2019, equation (10), and joint tail probabilities.

Two outcome bits ``(q1, q2)`` with error rates p1, p2 that agree with probability s are, in distribution,
``(X1 W, X2 W)`` for three independent bits, whenever they are at least as alike as independent models are. Given the
number of examples j with ``W = 1`` the two error counts are independent, so a joint tail is one sum over j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.tails import Floats

Side = Literal["upper", "lower", "equal"]
Question = tuple[Side, int, Side, int]


@dataclass(frozen=True)
class Coupling:
    """The three rates of ``(q1, q2) = (X1 W, X2 W)``, each with its complement so that no digit is lost near 1.

    Parameters
    ----------
    shared, shared_rest
        ``P(W = 1)`` and ``P(W = 0)``: examples on which at least one of the two may fail.
    first, first_rest
        ``P(X1 = 1)`` and its complement.
    second, second_rest
        ``P(X2 = 1)`` and its complement.
    """

    shared: float
    shared_rest: float
    first: float
    first_rest: float
    second: float
    second_rest: float


def couple(
    first_error: float | Fraction, second_error: float | Fraction, similarity: float | Fraction
) -> Coupling | None:
    """Return the coupling of two models, or None where there is none.

    ``P11 = (p1 + p2 - (1 - s)) / 2``, ``pw = p1 p2 / P11``, ``px1 = P11 / p2``, ``px2 = P11 / p1`` (spec, bound 2),
    in rational arithmetic. A similarity above the largest possible one, ``1 - |p1 - p2|``, is lowered to it.

    Parameters
    ----------
    first_error, second_error
        Population error rates in [0, 1].
    similarity
        ``P(q1 = q2)`` in [0, 1].

    Returns
    -------
    Coupling or None
        None where the two are less alike than independent models (``P11 < p1 p2``) or one of them never fails.
    """
    p1, p2, s = tails.fraction(first_error), tails.fraction(second_error), tails.fraction(similarity)
    both = (p1 + p2 - (1 - min(s, 1 - abs(p1 - p2)))) / 2
    if p1 <= 0 or p2 <= 0 or both < p1 * p2:
        return None
    shared, first, second = p1 * p2 / both, both / p2, both / p1
    return Coupling(float(shared), float(1 - shared), float(first), float(1 - first), float(second), float(1 - second))


def _log_tail(side: Side, count: int, trials: Floats, rate: float, rest: float) -> Floats:
    """Return ``log P(Bin(j, rate) >= count)`` (upper), ``<= count`` (lower) or ``= count`` for each j of `trials`."""
    if side == "equal":
        return tails.log_pmf(count, trials, rate, rest)
    tail = tails.log_upper if side == "upper" else tails.log_lower
    return tail(count, trials, rate, rest)


def _pmf_run(count: int, trials: Floats, rate: float, rest: float) -> Floats:
    """Return ``log P(Bin(j, rate) = count)`` for consecutive j, from one value and the ratios of neighbours."""
    if rate <= 0.0 or rest <= 0.0 or count < 0:
        return tails.log_pmf(count, trials, rate, rest)
    result = np.full(trials.size, -np.inf)
    skip = min(max(0, count - int(trials[0])), trials.size)  # no j < count can give it
    j = trials[skip:]
    if j.size:
        middle = j.size // 2
        ratios = np.log(j[1:] / (j[1:] - count)) + _log_rest(rate, rest)  # P(j) / P(j - 1)
        result[skip:] = _anchored(ratios, middle, tails.scalar_log_pmf(count, int(j[middle]), rate, rest))
    return result


def _weights_run(n: int, trials: Floats, rate: float, rest: float) -> Floats:
    """Return ``log P(Bin(n, rate) = j)`` for consecutive j; as `_pmf_run`."""
    if rate <= 0.0 or rest <= 0.0:
        return tails.log_pmf(trials, n, rate, rest)
    middle = trials.size // 2
    ratios = np.log((n - trials[:-1]) / trials[1:]) + (math.log(rate) - _log_rest(rate, rest))
    return _anchored(ratios, middle, tails.scalar_log_pmf(int(trials[middle]), n, rate, rest))


def _log_rest(rate: float, rest: float) -> float:
    """Return ``log(1 - rate)`` from whichever of the two is known to more digits."""
    return math.log1p(-rate) if rate < 0.5 else math.log(rest)


def _anchored(ratios: Floats, middle: int, value: float) -> Floats:
    """Return the sequence with these log ratios that is `value` at index `middle` (errors grow outwards from it)."""
    result = np.empty(ratios.size + 1)
    result[middle] = value
    np.cumsum(ratios[middle:], out=result[middle + 1 :])
    result[middle + 1 :] += value
    np.cumsum(-ratios[:middle][::-1], out=result[:middle][::-1])
    result[:middle] += value
    return result


def _run(side: Side, count: int, trials: Floats, rate: float, rest: float) -> Floats:
    """Return `_log_tail` for consecutive `trials`, with one incomplete beta function instead of one for each.

    ``P(Bin(j+1) >= c) = P(Bin(j) >= c) + rate * P(Bin(j) = c-1)`` and ``P(Bin(j) <= c) = P(Bin(j+1) <= c) + rate *
    P(Bin(j) = c)``: sums of positive terms, so nothing cancels.
    """
    if side == "equal":
        return _pmf_run(count, trials, rate, rest)
    if rest <= 0.0 or rate <= 0.0 or trials.size == 1:
        return _log_tail(side, count, trials, rate, rest)
    log_rate = math.log(rate)
    steps = np.empty(trials.size)
    if side == "upper":
        steps[:1] = _log_tail(side, count, trials[:1], rate, rest)
        steps[1:] = _pmf_run(count - 1, trials[:-1], rate, rest) + log_rate
        return _log_cumsum(steps)
    steps[:1] = _log_tail(side, count, trials[-1:], rate, rest)
    steps[1:] = _pmf_run(count, trials[:-1], rate, rest)[::-1] + log_rate
    return _log_cumsum(steps)[::-1]


def _log_cumsum(logs: Floats) -> Floats:
    """Return the log of the running sums of ``exp(logs)``; exact even where the first terms underflow."""
    top = float(logs.max(initial=-np.inf))
    if top == -np.inf:
        return logs
    if top - logs[0] > 600:  # one scale would lose the small sums: add in log space
        return np.asarray(np.logaddexp.accumulate(logs), dtype=np.float64)
    return np.asarray(np.minimum(np.log(np.cumsum(np.exp(logs - top))) + top, 0.0), dtype=np.float64)


class JointTail:
    """``P(N1 in tail, N2 in tail)`` for the error counts of two models on the same n examples.

    Each term of the sum over j (equation 10) is a product of three log-concave sequences in j (a binomial
    probability, and distribution or survival functions of negative binomial waiting times), hence log-concave: one
    peak, and beyond any point past the peak the terms fall at least geometrically. So a window round the peak is
    summed and the rest is *bounded* by a geometric series that is added: the result is never below the true value.

    Parameters
    ----------
    n
        Number of test examples.
    coupling
        From `couple`.
    """

    def __init__(self, n: int, coupling: Coupling) -> None:
        self.n = n
        self.coupling = coupling

    def log_probability(self, first_side: Side, first_count: int, second_side: Side, second_count: int) -> float:
        """Return the log of the joint probability.

        Parameters
        ----------
        first_side, second_side
            ``"upper"`` for ``N >= count``, ``"lower"`` for ``N <= count``, ``"equal"`` for ``N = count``.
        first_count, second_count
            The counts; outside 0..n the tail is empty or certain, as it should be.
        """
        question: Question = (first_side, first_count, second_side, second_count)
        low, high = self._support(question)
        if low > high:
            return -math.inf
        start, end = self._peak(low, high, question)
        spread = math.sqrt(self.n * self.coupling.shared * self.coupling.shared_rest)
        half = 8.7 * spread + 20
        while True:
            left, right = max(low, math.floor(start - half)), min(high, math.ceil(end + half))
            logs = self._terms(np.arange(left, right + 1, dtype=np.float64), question)
            top = float(logs.max())
            if top == -math.inf:
                return -math.inf
            total = top + math.log(float(np.exp(logs - top).sum()))
            rest = max(
                -math.inf if left == low else _geometric(logs[0], logs[1], left - low),
                -math.inf if right == high else _geometric(logs[-1], logs[-2], high - right),
            )
            if rest < total - 36:  # e^-36 = 2e-16: added, not dropped
                return min(0.0, float(np.logaddexp(total, rest + math.log(2))))
            half *= 2

    def run(self, side: Side, count: int, trials: Floats) -> Floats:
        """Return the log tails of ``Bin(j, P(X2 = 1))`` for consecutive j, as `log_probability` uses them."""
        return _run(side, count, trials, self.coupling.second, self.coupling.second_rest)

    def _support(self, question: Question) -> tuple[int, int]:
        """Return the range of j in which a term can be above zero."""
        low, high = 0, self.n
        for side, count, _, rest in self._tails(question):
            if side != "lower":
                low = max(low, count)
            if side != "upper" and (count < 0 or rest <= 0.0):
                high = min(high, count)
        if self.coupling.shared_rest <= 0.0:
            low = max(low, self.n)
        return low, high

    def _tails(self, question: Question) -> tuple[tuple[Side, int, float, float], tuple[Side, int, float, float]]:
        """Return side, count, rate and complement of the two models."""
        c = self.coupling
        return (*question[:2], c.first, c.first_rest), (*question[2:], c.second, c.second_rest)

    def _terms(self, j: Floats, question: Question) -> Floats:
        """Return the log terms for consecutive j."""
        logs = _weights_run(self.n, j, self.coupling.shared, self.coupling.shared_rest)
        for tail in self._tails(question):
            logs = logs + _run(tail[0], tail[1], j, *tail[2:])
        return logs

    def _peak(self, low: int, high: int, question: Question) -> tuple[int, int]:
        """Return a range of j round the largest term.

        A product of one-peaked factors peaks between their peaks. Where that range is wide, a grid that is zoomed into
        narrows it down. Were it off, the caller would notice and widen its window.
        """
        shared = self.n * self.coupling.shared
        spread = math.sqrt(shared * self.coupling.shared_rest)
        turns = [(side, count / rate) for side, count, rate, _ in self._tails(question) if rate > 0.0]
        start = min([shared] + [turn for side, turn in turns if side != "upper"])
        end = max([shared] + [turn for side, turn in turns if side != "lower"])
        low = min(max(low, math.floor(start - 2)), high)
        high = max(min(high, math.ceil(end + 2)), low)
        while high - low > max(16, 6 * spread):
            j = np.unique(np.linspace(low, high, 17).round())
            logs = tails.log_pmf(j, self.n, self.coupling.shared, self.coupling.shared_rest)
            for tail in self._tails(question):
                logs = logs + _log_tail(tail[0], tail[1], j, *tail[2:])
            best = int(np.argmax(logs))
            if logs[best] == -np.inf:
                break
            low, high = int(j[max(0, best - 1)]), int(j[min(j.size - 1, best + 1)])
        return low, high


def _geometric(edge: float, inner: float, terms: int) -> float:
    """Return the log of a bound on up to `terms` terms beyond the window's edge, whose ratio is ``edge / inner``."""
    if edge == -math.inf:
        return -math.inf
    ratio = float(edge) - float(inner)
    if ratio >= 0.0:
        return math.inf  # not past the peak: the caller widens the window
    return float(edge) + min(math.log(terms), ratio - math.log(-math.expm1(ratio)))
