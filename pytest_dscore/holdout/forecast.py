"""How many models like those seen the similarity bound would allow: equation (3), with the same mixture continued."""

from __future__ import annotations

import math

import numpy as np

from pytest_dscore.holdout.empirical import SIDES, Population, Tail
from pytest_dscore.holdout.similarity import PackedOutcomes

_MOST_MODELS = 64  # a sample of so many stands for the mixture
_OFFSETS = 24  # relaxations of the anchor's event that are tried, in each tail


def models_by_anchor(
    packed: PackedOutcomes, similarity: np.typing.NDArray[np.float64], deviation: int, left: float
) -> float:
    """Return how many models there may be in all, if those to come are a mixture like those seen; inf if no limit.

    With the anchor's event relaxed to F the bound is ``P(F) + sum P(E_i and not F)`` in each tail. P(F) is paid once,
    and each further model costs the mean of the other terms: both depend on how far F is relaxed, which pays the more
    the more models there are.

    Parameters
    ----------
    packed
        Outcomes of at least two models.
    similarity
        Shape (k, k).
    deviation
        Deviation that is overfitting, in examples.
    left
        What may be spent on them.
    """
    population = Population(packed.errors(), packed.n, similarity, "plug-in", left)
    anchor = int(np.argmax(similarity.mean(axis=1)))
    others = np.flatnonzero(np.arange(packed.k) != anchor)
    sample = others[np.unique(np.linspace(0, len(others) - 1, min(len(others), _MOST_MODELS)).astype(int))]
    offsets = sorted({max(1, round(deviation * i / _OFFSETS)) for i in range(1, _OFFSETS + 1)})

    def prices(side: Tail) -> list[tuple[float, float]]:
        """Return (paid once, paid for each model) for each offset."""
        logs = population.exclusive(sample, anchor, side, deviation, np.array(offsets)[:, None])
        each = np.exp(logs).mean(axis=1)
        return [(math.exp(population.tail(anchor, side, o)), float(e)) for o, e in zip(offsets, each, strict=True)]

    upper, lower = (prices(side) for side in SIDES)
    best = 0.0
    for once, each in ((u[0] + w[0], u[1] + w[1]) for u in upper for w in lower):
        if once < left:
            best = max(best, (left - once) / each if each > 0 else math.inf)
    return 1 + best
