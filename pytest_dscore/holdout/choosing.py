"""Which tree, which anchors, which t: chosen by a normal approximation, never computed by it.

Any spanning tree, anchor, cover and t gives a valid bound. Choosing them by the exact probabilities of all pairs would
cost more than the bound itself, so they are chosen here by treating error counts as jointly normal; `empirical` then
computes the chosen ones exactly. A poor approximation makes a bound looser, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CANDIDATES = 64
_COVER_SIZES = (2, 4, 8)


@dataclass(frozen=True)
class Cover:
    """A similarity cover: each model belongs to the anchor that it is likest to.

    Parameters
    ----------
    anchors
        Indices of the anchors, shape (m,).
    assignment
        For each model its anchor's index, shape (k,); an anchor belongs to itself.
    offsets
        For each anchor the deviation, in examples, at which its relaxed event starts, shape (m,).
    """

    anchors: Ints
    assignment: Ints
    offsets: Ints


class NormalModels:
    """Error counts of k models as jointly normal variables, seen from the event that one deviates by m or more.

    Parameters
    ----------
    wrong
        Counts of wrong examples, shape (k,).
    n
        Number of examples.
    similarity
        Shape (k, k).
    deviation
        m, in examples.
    """

    def __init__(self, wrong: Ints, n: int, similarity: Floats, deviation: int) -> None:
        self.n, self.similarity, self.deviation = n, similarity, max(deviation, 1)
        self.rate = wrong / n
        self.sd = np.sqrt(np.maximum(n * self.rate * (1 - self.rate), 1e-12))
        self.z = np.minimum(self.deviation / self.sd, 1e6)
        self.log_tail = np.asarray(special.log_ndtr(-self.z), dtype=np.float64)
        # mean and variance of a standard normal above z
        self.mean = np.exp(np.minimum(-0.5 * self.z**2 - 0.5 * np.log(2 * np.pi) - self.log_tail, 20.0))
        self.mean = np.maximum(self.mean, self.z)
        self.variance = np.clip(1 + self.z * self.mean - self.mean**2, 0.0, 1.0)

    def correlation(self, model: int, others: Any = slice(None)) -> Floats:
        """Return the correlation of one model's bits with those of `others`."""
        p, q = self.rate[others], self.rate[model]
        both = (p + q - 1 + self.similarity[model, others]) / 2
        return np.asarray(np.clip((both - p * q) * self.n / (self.sd[others] * self.sd[model]), -1.0, 1.0))

    def given(self, model: int, others: Any = slice(None)) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of `model`'s standardised count, given that each of `others` overfits."""
        rho = self.correlation(model, others)
        spread = np.sqrt(np.maximum(1 - rho**2 * (1 - self.variance[others]), 1e-12))
        return rho * self.mean[others], spread

    def log_joint(self, model: int) -> Floats:
        """Return about ``log P(both overfit)`` of one model with each model, shape (k,)."""
        mean, spread = self.given(model)
        return np.asarray(self.log_tail + special.log_ndtr((mean - self.z[model]) / spread), dtype=np.float64)

    def anchored(self, anchor: int, members: Ints) -> tuple[float, int]:
        """Return about the log of equation (3)'s bound for an anchor and its members, and the best relaxed offset."""
        levels = np.linspace(0.0, self.z[anchor], 65)
        first = special.log_ndtr(-levels)
        if members.size == 0:
            return float(first[-1]), self.deviation
        mean, spread = self.given(anchor, members)
        pairs = self.log_tail[members] + special.log_ndtr((levels[:, None] - mean) / spread)
        values = np.logaddexp(first, special.logsumexp(pairs, axis=1))
        best = int(np.argmin(values))
        return float(values[best]), min(self.deviation, round(float(levels[best] * self.sd[anchor])))

    def tree(self) -> tuple[Ints, Floats]:
        """Return each model's parent in a spanning tree of large joint probabilities, and each model's centrality.

        Prim's algorithm, a row at a time: memory stays linear. The root is its own parent. A model's centrality is the
        sum of its joint probabilities with all models (in units of the largest single one).
        """
        k, scale = self.rate.size, float(self.log_tail.max())
        root = int(np.argmax(self.log_tail))
        parent, weight = np.full(k, root, dtype=np.int64), np.full(k, -1.0)
        waiting, centrality, newest = np.ones(k, dtype=bool), np.zeros(k), root
        for _ in range(k):
            waiting[newest] = False
            joint = np.exp(self.log_joint(newest) - scale)
            centrality[newest] = joint.sum()
            better = waiting & (joint > weight)
            weight[better], parent[better] = joint[better], newest
            newest = int(np.argmax(np.where(waiting, weight, -2.0)))
        return parent, centrality

    def covers(self, centrality: Floats) -> list[Cover]:
        """Return the one-anchor cover, and the best-looking of covers with several anchors where there is one."""
        k = self.rate.size
        candidates = np.argsort(-centrality, kind="stable")[: min(k, _CANDIDATES)]
        joints = np.stack([self.log_joint(int(c)) for c in candidates])
        gains = np.exp(joints - float(self.log_tail.max()))
        chosen: list[int] = []
        reached = np.zeros(k)
        for _ in range(min(max(_COVER_SIZES), candidates.size)):
            gain = np.maximum(gains - reached, 0).sum(axis=1)
            gain[chosen] = -1.0
            chosen.append(int(np.argmax(gain)))
            reached = np.maximum(reached, gains[chosen[-1]])
        made = [
            self._cover(candidates[chosen[:size]], joints[chosen[:size]]) for size in (1, *_COVER_SIZES) if size < k
        ]
        several = sorted(made[1:], key=lambda pair: pair[0])[:1]
        return [cover for _, cover in made[:1] + several]

    def _cover(self, anchors: Ints, joints: Floats) -> tuple[float, Cover]:
        """Return a cover by these anchors and about the log of its bound."""
        assignment = anchors[np.argmax(joints, axis=0)]
        assignment[anchors] = anchors
        return self.refit(anchors, assignment)

    def refit(self, anchors: Ints, assignment: Ints) -> tuple[float, Cover]:
        """Return the cover with offsets that suit this deviation, and about the log of its bound."""
        total, offsets = -np.inf, []
        for anchor in anchors:
            members = np.flatnonzero((assignment == anchor) & (np.arange(assignment.size) != anchor))
            value, offset = self.anchored(int(anchor), members)
            total = float(np.logaddexp(total, value))
            offsets.append(offset)
        return total, Cover(anchors, assignment, np.array(offsets, dtype=np.int64))
