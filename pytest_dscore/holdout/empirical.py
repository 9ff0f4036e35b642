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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.choosing import Cover, Ints, NormalModels
from pytest_dscore.holdout.coupling import JointTail, couple
from pytest_dscore.holdout.pairs import exclusive_logs
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
        self.tails = lru_cache(maxsize=64)(self._tails)

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

    def tail(self, model: int, side: Tail, deviation: int) -> float:
        """Return ``log P(N >= n p + m)`` or ``log P(N <= n p - m)``, the largest over the possible rates."""
        counts = np.array(self._rates(model), dtype=np.int64)
        return float(own_tails(counts, self.n, side, deviation).max())

    def _tails(self, side: Tail, deviation: int) -> Floats:
        """Return `tail` of every model, shape (k,)."""
        if not self.exact:
            return np.array([self.tail(model, side, deviation) for model in range(self.k)], dtype=np.float64)
        counts, which = np.unique(self.wrong, return_inverse=True)
        return np.asarray(own_tails(counts, self.n, side, deviation)[which], dtype=np.float64)

    def least_similarity(self, first: int, second: int) -> float:
        """Return the similarity that two models, known within limits only, are taken to have at least."""
        agree = round(float(self.similarity[first, second]) * self.n)
        return float(special.betaincinv(agree, self.n - agree + 1, self.level)) if agree > 0 else 0.0

    def exclusive(self, models: Any, others: Any, side: Tail, deviation: int, offset: Any) -> Floats:
        """Return ``log P(model deviates by m, other does not deviate by offset)``, at most the model's own tail.

        The largest over the limits' corners. Where there is no coupling, the model's own tail.

        Parameters
        ----------
        models, others, offset
            Indices of models and deviations of the others; shapes that broadcast.
        side, deviation
            Of the models' event.

        Returns
        -------
        ndarray
            Of the broadcast shape.
        """
        arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.int64) for x in (models, others, offset)))
        models, others, offset = (array.ravel() for array in arrays)
        own = self.tails(side, deviation)[models]
        result, able = own.copy(), np.flatnonzero(own > -math.inf)
        if self.exact:
            i, j = models[able], others[able]
            agree = np.rint(self.similarity[i, j] * self.n)
            logs = exclusive_logs(self.n, self.wrong[i], self.wrong[j], agree, side, deviation, offset[able])
            result[able] = np.minimum(own[able], logs)
        else:
            for row in able:
                pair = int(models[row]), int(others[row])
                result[row] = min(float(own[row]), self._at_corners(*pair, side, deviation, int(offset[row])))
        return np.asarray(result.reshape(arrays[0].shape), dtype=np.float64)

    def _at_corners(self, model: int, other: int, side: Tail, deviation: int, offset: int) -> float:
        similarity, best = self.least_similarity(model, other), -math.inf
        wholes = {int(self.low[model]), int(self.high[model])}, {int(self.low[other]), int(self.high[other])}
        for count in wholes[0]:
            for anchor in wholes[1]:
                coupling = couple(Fraction(anchor, self.n), Fraction(count, self.n), similarity)
                if coupling is None:
                    return 0.0
                joint = JointTail(self.n, coupling)
                # At a rate whose n p is not whole "no deviation of offset" reaches one count further.
                if side == "upper":
                    value = joint.log_probability("lower", anchor + offset, "upper", count + deviation)
                else:
                    value = joint.log_probability("upper", anchor - offset, "lower", count - deviation)
                best = max(best, value)
        return best


def own_tails(wrong: Ints, n: int, side: Tail, deviation: int) -> Floats:
    """Return each model's ``log P(N >= wrong + m)`` or ``log P(N <= wrong - m)`` at its own rate, shape (k,)."""
    p, q = wrong / n, (n - wrong) / n
    if side == "upper":
        return tails.log_upper_each(wrong + deviation, n, p, q)
    return tails.log_lower_each(wrong - deviation, n, p, q)


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
    return _total(np.concatenate([population.tails(side, deviation) for side in SIDES]))


def spanning_tree_bound(population: Population, parent: Ints, deviation: int) -> float:
    """Return the log of the Hunter-Worsley bound, as ``P(E_root) + sum P(E_child and not E_parent)`` in each tail.

    The same number as the sum of tails less the sum of joint tails, without the subtraction (Hunter 1976, Worsley
    1982).
    """
    models = np.arange(population.k)
    roots, children = models[parent == models], models[parent != models]
    terms = [population.tail(int(root), side, deviation) for side in SIDES for root in roots]
    for side in SIDES:
        terms += population.exclusive(children, parent[children], side, deviation, deviation).tolist()
    return _total(terms)


def cover_bound(population: Population, cover: Cover, deviation: int) -> float:
    """Return the log of equation (3) summed over a cover's anchors; a cluster's union bound where that is smaller."""
    offsets = dict(zip(cover.anchors.tolist(), cover.offsets.tolist(), strict=True))
    parts = []
    for side in SIDES:
        for anchor, offset in offsets.items():
            members = np.flatnonzero((cover.assignment == anchor) & (np.arange(population.k) != anchor))
            own = population.tails(side, deviation)[[anchor, *members.tolist()]]
            shared = [population.tail(anchor, side, offset)]
            shared += population.exclusive(members, anchor, side, deviation, offset).tolist()
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
    values = np.asarray(logs if isinstance(logs, np.ndarray) else list(logs), dtype=np.float64)
    top = float(values.max(initial=-np.inf))
    return top if top == -math.inf else min(0.0, top + math.log(float(np.exp(values - top).sum())))
