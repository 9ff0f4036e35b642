"""The bound over real outcome vectors: every model with its own error rate, every pair with its own similarity.

Three ways to use the pairs, all of them valid for any choice of anchors, offsets and tree: equation (3) with the best
anchor; the same with several anchors, each for the models likest to it (a similarity cover); and the Hunter-Worsley
inequality ``P(union) <= sum P(E_i) - sum_{(i,j) in tree} P(E_i and E_j)``. The smallest is reported, and never more
than the union bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.choosing import Cover, Ints, NormalModels
from pytest_dscore.holdout.coupling import JointTail, couple
from pytest_dscore.holdout.tails import Floats

Tail = Literal["upper", "lower"]
Estimate = Literal["plug-in", "lower-confidence"]
SIDES: tuple[Tail, Tail] = ("upper", "lower")
METHODS = ("anchor", "cover", "spanning-tree")


class Population:
    """What is taken to be true of the models in the population.

    With ``"plug-in"`` error rates and similarities are those seen on the test set, as in the paper. With
    ``"lower-confidence"`` each error rate ranges over a Clopper-Pearson interval and each similarity is at least its
    Clopper-Pearson lower limit; all of them hold at once with probability 1 - `spent` (Bonferroni over k two-sided and
    k (k - 1) / 2 one-sided limits), and probabilities are the largest over the corners of what is left possible.

    Parameters
    ----------
    wrong
        Wrong examples of each model, shape (k,).
    n
        Number of examples.
    similarity
        Observed similarities, shape (k, k).
    estimate
        ``"plug-in"`` or ``"lower-confidence"``.
    spent
        Failure probability given to the limits, in (0, 1); not used by plug-in.
    """

    def __init__(self, wrong: Ints, n: int, similarity: Floats, estimate: Estimate, spent: float) -> None:
        self.wrong, self.n, self.similarity, self.estimate = wrong, n, similarity, estimate
        self.k = int(wrong.size)
        self.exact = estimate == "plug-in"
        self.level = spent / (2 * self.k + self.k * (self.k - 1) / 2)
        self.low, self.high = wrong, wrong
        if not self.exact:
            low, high = clopper_pearson(wrong, n, self.level)
            # Whole counts, so that boundaries are whole: outward, the interval only grows.
            self.low, self.high = np.floor(low * n).astype(np.int64), np.ceil(high * n).astype(np.int64)
        self.tail = lru_cache(maxsize=None)(self._tail)

    def deviation(self, epsilon: float | Fraction) -> int:
        """Return the whole number of examples whose deviation is the overfitting event.

        Counts are whole. With plug-in rates n p is whole too and a deviation of n eps or more is one of ``ceil(n eps)``
        or more. With a rate known only within limits n p is anything, and ``floor(n eps)`` is on the safe side.
        """
        product = self.n * tails.fraction(epsilon)
        slack = Fraction(self.n, 10**15)
        return math.ceil(product - slack) if self.exact else math.floor(product)

    def _rates(self, model: int) -> list[int]:
        """Return the counts to be tried for a model: the limits, and between them if they are far apart."""
        low, high = int(self.low[model]), int(self.high[model])
        return sorted({low, low + (high - low) // 3, low + 2 * (high - low) // 3, high})

    def _tail(self, model: int, side: Tail, deviation: int) -> float:
        """Return ``log P(N >= n p + m)`` or ``log P(N <= n p - m)``, the largest over the possible rates."""
        best = -math.inf
        for count in self._rates(model):
            p = count / self.n, (self.n - count) / self.n
            if side == "upper":
                best = max(best, float(tails.log_upper(count + deviation, self.n, *p)))
            else:
                best = max(best, float(tails.log_lower(count - deviation, self.n, *p)))
        return best

    def least_similarity(self, first: int, second: int) -> float | Fraction:
        """Return the similarity that two models are taken to have at least."""
        agree = round(float(self.similarity[first, second]) * self.n)
        if self.exact:
            return Fraction(agree, self.n)
        return float(special.betaincinv(agree, self.n - agree + 1, self.level)) if agree > 0 else 0.0

    def exclusive(self, model: int, other: int, side: Tail, deviation: int, offset: int) -> float:
        """Return ``log P(model deviates by m, other does not deviate by offset)``, at most the model's own tail.

        The largest over the limits' corners. Where there is no coupling, the model's own tail.
        """
        own = self.tail(model, side, deviation)
        if own == -math.inf:
            return own
        similarity, best = self.least_similarity(model, other), -math.inf
        wholes = {int(self.low[model]), int(self.high[model])}, {int(self.low[other]), int(self.high[other])}
        # At a rate whose n p is not whole "no deviation of offset" reaches one count further.
        reach = offset - 1 if self.exact else offset
        for count in wholes[0]:
            for anchor in wholes[1]:
                coupling = couple(Fraction(anchor, self.n), Fraction(count, self.n), similarity)
                if coupling is None:
                    return own
                joint = JointTail(self.n, coupling)
                if side == "upper":
                    value = joint.log_probability("lower", anchor + reach, "upper", count + deviation)
                else:
                    value = joint.log_probability("upper", anchor - reach, "lower", count - deviation)
                best = max(best, value)
        return min(own, best)


def clopper_pearson(successes: NDArray[np.int64], n: int, level: float) -> tuple[Floats, Floats]:
    """Return one-sided Clopper-Pearson limits of rates, each missed with probability at most `level`.

    Parameters
    ----------
    successes
        Counts out of `n`, any shape.
    n
        Number of trials.
    level
        In (0, 1).
    """
    x = np.asarray(successes, dtype=np.float64)
    low = np.where(x > 0, special.betaincinv(np.maximum(x, 1), n - np.maximum(x, 1) + 1, level), 0.0)
    below = np.minimum(x, n - 1)
    high = np.where(x < n, special.betainccinv(below + 1, n - below, level), 1.0)
    return low, high


@dataclass(frozen=True)
class Structure:
    """What the bounds are computed over; chosen once, valid at every deviation.

    Parameters
    ----------
    parent
        Parent of each model in the spanning tree; the root is its own.
    covers
        One-anchor cover first, then one with several anchors where that looked better.
    """

    parent: Ints
    covers: tuple[Cover, ...]


@dataclass(frozen=True)
class EmpiricalBound:
    """The bounds on the overfitting event at one deviation.

    Parameters
    ----------
    log_probability
        Log of the smallest.
    method
        ``"union"``, ``"anchor"``, ``"cover"`` or ``"spanning-tree"``: which it was.
    log_probabilities
        The log of each.
    """

    log_probability: float
    method: str
    log_probabilities: dict[str, float]


def choose_structure(population: Population, deviation: int) -> Structure:
    """Return the tree and covers that suit a deviation, by normal approximation (see `choosing`)."""
    normal = NormalModels(population.wrong, population.n, population.similarity, deviation)
    parent, centrality = normal.tree()
    return Structure(parent, tuple(normal.covers(centrality)))


def union_bound(population: Population, deviation: int) -> float:
    """Return the log of the sum of all models' tails."""
    return _total(population.tail(i, side, deviation) for side in SIDES for i in range(population.k))


def spanning_tree_bound(population: Population, parent: Ints, deviation: int) -> float:
    """Return the log of the Hunter-Worsley bound, as ``P(E_root) + sum P(E_child and not E_parent)`` in each tail.

    The same number as the sum of tails less the sum of joint tails, without the subtraction (Hunter 1976, Worsley
    1982).
    """
    terms = []
    for side in SIDES:
        for child in range(population.k):
            other = int(parent[child])
            if other == child:
                terms.append(population.tail(child, side, deviation))
            else:
                terms.append(population.exclusive(child, other, side, deviation, deviation))
    return _total(terms)


def cover_bound(population: Population, cover: Cover, deviation: int) -> float:
    """Return the log of equation (3) summed over a cover's anchors; a cluster's union bound where that is smaller."""
    offsets = dict(zip(cover.anchors.tolist(), cover.offsets.tolist(), strict=True))
    parts = []
    for side in SIDES:
        for anchor, offset in offsets.items():
            members = [int(i) for i in np.flatnonzero(cover.assignment == anchor) if i != anchor]
            own = [population.tail(i, side, deviation) for i in (anchor, *members)]
            shared = [population.tail(anchor, side, offset)]
            shared += [population.exclusive(i, anchor, side, deviation, offset) for i in members]
            parts.append(min(_total(own), _total(shared)))
    return _total(parts)


def empirical_bound(
    population: Population,
    structure: Structure,
    deviation: int,
    methods: Iterable[str] = METHODS,
) -> EmpiricalBound:
    """Return the smallest of the bounds asked for and the union bound, at a deviation of so many examples."""
    values = {"union": union_bound(population, deviation)}
    if population.k > 1:
        normal = NormalModels(population.wrong, population.n, population.similarity, deviation)
        for name, cover in zip(("anchor", "cover"), structure.covers, strict=False):
            if name in methods:
                suited = normal.refit(cover.anchors, cover.assignment)[1]
                values[name] = cover_bound(population, suited, deviation)
        if "spanning-tree" in methods:
            values["spanning-tree"] = spanning_tree_bound(population, structure.parent, deviation)
    method = min(values, key=lambda name: (values[name], name != "union"))
    return EmpiricalBound(values[method], method, values)


def _total(logs: Iterable[float]) -> float:
    """Return the log of the sum of exponentials, at most 0."""
    values = np.fromiter(logs, dtype=np.float64)
    top = float(values.max(initial=-np.inf))
    return top if top == -math.inf else min(0.0, top + math.log(float(np.exp(values - top).sum())))
