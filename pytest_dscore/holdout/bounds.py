"""The bounds on the overfitting event for k models of one error rate: union, similarity, naive-bayes, theorem-2.

A bound is made for one hold-out (n, error, epsilon, similarity) and then asked for any number of queries; what does
not depend on that number is computed once. Bounds over real outcome vectors are in `empirical`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy import special

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout import tails
from pytest_dscore.holdout.coupling import Coupling, JointTail, Side, couple
from pytest_dscore.holdout.queries import Queries
from pytest_dscore.holdout.theorem2 import log_theorem2

#: Names for pyproject; ``best`` is the smallest of those that assume nothing about the models beyond what is given.
PLANNING_BOUNDS = ("union", "similarity", "naive-bayes", "theorem-2", "best")
NEEDS_OUTCOMES = ("empirical", "bootstrap")

_BELOW_DOUBLES = -745.0

NO_COUPLING = "similarity is below that of independent models, so the coupling does not exist: the union bound is used"
NAIVE_BAYES = (
    "assumption A1 (naive Bayes): apart from examples that no model ever fails on, models fail independently; "
    "real models only come near to that"
)


@dataclass(frozen=True)
class Holdout:
    """What a planning bound needs to know.

    Parameters
    ----------
    n
        Test examples, at least 1.
    epsilon
        Tolerance in (0, 1).
    error
        Population error rate in [0, 1]; None only for theorem-2.
    similarity
        Least probability that two models are both right or both wrong; None where it is not known.
    cover_size
        N of Theorem 2.
    """

    n: int
    epsilon: float | Fraction
    error: float | Fraction | None = None
    similarity: float | Fraction | None = None
    cover_size: int = 1


class Bound(Protocol):
    """An upper bound on the probability of the overfitting event, as a function of the number of queries."""

    method: str
    note: str

    def log_probability(self, queries: Queries) -> float:
        """Return the log of the bound, at most 0, without the rounding slack."""
        ...  # pragma: no cover


class UnionBound:
    """``k * (P(Bin >= ceil(n(p+eps))) + P(Bin <= floor(n(p-eps))))`` with exact tails (equation 2)."""

    method = "union"
    note = ""

    def __init__(self, holdout: Holdout) -> None:
        self.log_tail = tails.log_add(*tails.log_two_tails(holdout.n, _error(holdout, "union"), holdout.epsilon))

    def log_probability(self, queries: Queries) -> float:
        """Return ``log(k * tail)``, at most 0."""
        return min(0.0, queries.log + self.log_tail) if self.log_tail > -math.inf else -math.inf


class SimilarityTail:
    """One tail of equation (3): ``P(E_1 at eps - t) + (k - 1) P(E_i and not E_1 at eps - t)``, least over t.

    Over counts: the relaxed event is ``N_1 >= c`` (upper; ``<= c`` lower) with c on the mean's side of the boundary.
    Taking one more count c into it adds ``P(N_1 = c)`` to the first term and takes ``(k - 1) P(N_1 = c, E_i)`` from
    the second, which pays while ``(k - 1) P(E_i | N_1 = c) > 1``. Given c, N_i is a sum of two binomials that grows
    with c, so this holds up to one point, found by bisection: no flat stretch can stop it short, as would happen with
    values of the sum itself, equal in double precision over long ranges when k is huge.
    """

    def __init__(self, n: int, error: Fraction, coupling: Coupling, side: Side, boundary: int) -> None:
        self.n, self.side, self.boundary = n, side, boundary
        self.rate, self.rest = float(error), float(1 - error)
        self.joint = JointTail(n, coupling)
        self.sign = 1 if side == "upper" else -1
        self.widest = boundary if side == "upper" else n - boundary  # number of counts that can be taken in
        self.log_given = lru_cache(maxsize=None)(self._log_given)
        self.at = lru_cache(maxsize=None)(self._at)
        joint_rate = coupling.shared * coupling.first * coupling.second
        given = joint_rate / self.rate, (self.rate - joint_rate) / self.rest if self.rest > 0 else 0.0
        self.slope = given[0] - given[1]
        spread = self.rate * given[0] * (1 - given[0]) + self.rest * given[1] * (1 - given[1])
        self.spread = math.sqrt(max(0.0, n * spread))

    def _log_given(self, step: int) -> float:
        """Return ``log P(E_i | N_1 = c)`` for the count c that `step` + 1 would take in."""
        c = self.boundary - self.sign * (step + 1)
        alone = float(tails.log_pmf(c, self.n, self.rate, self.rest))
        return self.joint.log_probability("equal", c, self.side, self.boundary) - alone if alone > -math.inf else alone

    def _at(self, step: int) -> tuple[float, float]:
        """Return the logs of ``P(E_1)`` and ``P(E_i and not E_1)`` with E_1 widened by `step` counts."""
        c = self.boundary - self.sign * step
        if self.side == "upper":
            first = float(tails.log_upper(c, self.n, self.rate, self.rest))
            return first, self.joint.log_probability("lower", c - 1, "upper", self.boundary)
        first = float(tails.log_lower(c, self.n, self.rate, self.rest))
        return first, self.joint.log_probability("upper", c + 1, "lower", self.boundary)

    def best_step(self, log_others: float) -> int:
        """Return the number of counts to take in for ``k - 1 = exp(log_others)`` other models."""
        if self.slope <= 0:
            return 0
        # Normal approximation of the turning point; doubling strides from there bracket it, bisection finds it.
        distance = abs(self.boundary - self.n * self.rate)
        z = -float(special.ndtri_exp(-min(max(log_others, 0.7), 1e12)))
        guess = round(min(max(distance - (distance - z * self.spread) / self.slope, 0), self.widest))
        stride = 2
        if guess < self.widest and self.log_given(guess) + log_others > 0:
            low, high = guess, min(guess + stride, self.widest)
            while high < self.widest and self.log_given(high) + log_others > 0:
                stride *= 2
                low, high = high, min(high + stride, self.widest)
            low += 1
        else:
            low, high = max(guess - stride, 0), guess
            while low > 0 and self.log_given(low) + log_others <= 0:
                stride *= 2
                low, high = max(low - stride, 0), low
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.log_given(middle) + log_others > 0 else (low, middle)
        return low

    def log_probability(self, queries: Queries) -> float:
        """Return the log of the smallest bound over t, at most 0."""
        if queries.log_rest == -math.inf or self.widest <= 0:
            return self.at(0)[0]
        first, pair = self.at(self.best_step(queries.log_rest))
        return min(0.0, tails.log_add(first, queries.log_rest + pair)) if pair > -math.inf else first


class SimilarityBound:
    """Equation (3) with (10), minimised over t in each tail; never above the union bound."""

    def __init__(self, holdout: Holdout) -> None:
        error, similarity = _error(holdout, "similarity"), _similarity(holdout, "similarity")
        self.union = UnionBound(holdout)
        self.method, self.note = "similarity", ""
        self.tails: tuple[SimilarityTail, ...] = ()
        coupling = couple(error, error, similarity)
        if coupling is None:
            if error > 0:
                self.method, self.note = "union", NO_COUPLING
            return
        p = tails.fraction(error)
        a, b = tails.boundaries(holdout.n, error, holdout.epsilon)
        self.tails = (
            SimilarityTail(holdout.n, p, coupling, "upper", a),
            SimilarityTail(holdout.n, p, coupling, "lower", b),
        )

    def log_probability(self, queries: Queries) -> float:
        """Return the log of the bound, at most 0."""
        union = self.union.log_probability(queries)
        if not self.tails or union == -math.inf:
            return union
        return min(union, tails.log_add(*(tail.log_probability(queries) for tail in self.tails)))


class NaiveBayesBound:
    """The exact probability under Assumption A1: ``sum_j Bin(j; n, pw) (1 - (1 - tail_j)^k)``."""

    def __init__(self, holdout: Holdout) -> None:
        error, similarity = _error(holdout, "naive-bayes"), _similarity(holdout, "naive-bayes")
        self.union = UnionBound(holdout)
        self.method, self.note = "naive-bayes", NAIVE_BAYES
        self.n = holdout.n
        self.a, self.b = tails.boundaries(holdout.n, error, holdout.epsilon)
        self.coupling = couple(error, error, similarity)
        if self.coupling is None and error > 0:
            self.method, self.note = "union", NO_COUPLING
        self.half = 0.0

    def log_probability(self, queries: Queries) -> float:
        """Return the log of the probability, at most 0 (the sum's cut-off ends are added as if certain)."""
        union = self.union.log_probability(queries)
        if self.coupling is None or union < _BELOW_DOUBLES:
            return union  # the sum would have to run over nearly all j to tell two numbers apart that both print as 0
        self.half = self.half or 9.0 * math.sqrt(self.n * self.coupling.shared * self.coupling.shared_rest) + 20
        while True:
            total, rest = self._sum(queries)
            if rest == -math.inf or rest < total - 30:
                return min(union, tails.log_add(total, rest))
            self.half *= 1.5

    def _sum(self, queries: Queries) -> tuple[float, float]:
        """Return the log of the sum over the present window, and of a bound on what lies outside of it."""
        if self.coupling is None:  # pragma: no cover - the caller has looked
            return 0.0, -math.inf
        log_weights, log_hazard, rest = _naive_bayes_terms(self.n, self.coupling, self.a, self.b, self.half)
        exponent = np.minimum(queries.log + log_hazard, 700.0)
        with np.errstate(divide="ignore"):
            # 1 - exp(-x) is x itself where x is small: keeps the log of probabilities below the smallest double
            miss = np.where(exponent < -40, exponent, np.log(-np.expm1(-np.exp(exponent))))
        logs = log_weights + miss
        top = float(logs.max())
        return (top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else top), rest


@lru_cache(maxsize=8)
def _naive_bayes_terms(
    n: int, coupling: Coupling, a: int, b: int, half: float
) -> tuple[tails.Floats, tails.Floats, float]:
    """Return ``log Bin(j; n, pw)`` and ``log(-log(1 - tail_j))`` over a window of j, and the log mass outside it."""
    centre = n * coupling.shared
    low, high = max(0, math.floor(centre - half)), min(n, math.ceil(centre + half))
    j = np.arange(low, high + 1, dtype=np.float64)
    log_weights = tails.log_pmf(j, n, coupling.shared, coupling.shared_rest)
    joint = JointTail(n, coupling)
    log_tail = np.minimum(np.logaddexp(joint.run("upper", a, j), joint.run("lower", b, j)), 0.0)
    with np.errstate(divide="ignore"):
        hazard = np.where(log_tail < -40, log_tail, np.log(-np.log1p(-np.exp(log_tail))))
    rest = tails.log_add(
        float(tails.log_lower(low - 1, n, coupling.shared, coupling.shared_rest)),
        float(tails.log_upper(high + 1, n, coupling.shared, coupling.shared_rest)),
    )
    return log_weights, hazard, rest


class Theorem2Bound:
    """Equation (4), the closed form; needs no error rate."""

    method = "theorem-2"
    note = ""

    def __init__(self, holdout: Holdout) -> None:
        self.holdout = holdout
        self.eta = _similarity(holdout, "theorem-2")

    def log_probability(self, queries: Queries) -> float:
        """Return the log of (4), at most 0."""
        h = self.holdout
        return min(0.0, log_theorem2(queries, h.n, h.epsilon, self.eta, h.cover_size))


class BestBound:
    """The smallest of the assumption-free bounds that can be computed: union, and with a similarity two more."""

    def __init__(self, holdout: Holdout) -> None:
        self.bounds: list[Bound] = [UnionBound(holdout)]
        if holdout.similarity is not None:
            self.bounds += [SimilarityBound(holdout), Theorem2Bound(holdout)]
        self.method, self.note = "union", self.bounds[1].note if len(self.bounds) > 1 else ""

    def log_probability(self, queries: Queries) -> float:
        """Return the log of the smallest bound, and keep in `method` which it was."""
        values = [bound.log_probability(queries) for bound in self.bounds]
        self.method = self.bounds[values.index(min(values))].method
        return min(values)


def make_bound(name: str, holdout: Holdout) -> Bound:
    """Return the bound called `name`.

    Raises
    ------
    SettingsError
        The name is unknown, needs outcome vectors, or needs an error rate or a similarity that is not given.
    """
    makers: dict[str, Callable[[Holdout], Bound]] = {
        "union": UnionBound,
        "similarity": SimilarityBound,
        "naive-bayes": NaiveBayesBound,
        "theorem-2": Theorem2Bound,
        "best": BestBound,
    }
    if name in NEEDS_OUTCOMES:
        raise SettingsError(f"bound {name!r} needs the models' outcomes: call analyse(outcomes, ..., bound={name!r}).")
    if name not in makers:
        raise SettingsError(f"bound must be one of {', '.join(PLANNING_BOUNDS + NEEDS_OUTCOMES)}, not {name!r}.")
    return makers[name](holdout)


def _error(holdout: Holdout, bound: str) -> float | Fraction:
    if holdout.error is None:
        raise SettingsError(f"bound {bound!r} needs error=, the models' error rate (between 0 and 1).")
    return holdout.error


def _similarity(holdout: Holdout, bound: str) -> float | Fraction:
    if holdout.similarity is None:
        raise SettingsError(f"bound {bound!r} needs similarity=, the share of examples on which two models agree.")
    return holdout.similarity
