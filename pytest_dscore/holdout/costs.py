"""What each model of a long ledger costs, in the order of the record: computed once, kept, added up in no time.

The bound is put together from two that are valid for any choice (see docs/holdout-bounds.md): every model hangs on one
of the earlier ones that it is like (the tree of `GrowingTree`), and every model is held against one anchor whose event
is relaxed to some F. With either the model's own term can only be counted too often, so for each model the smaller of
the two terms counts: ``P(any) <= P(F) + sum_i min(P(E_i and not E_parent), P(E_i and not F))``. Terms of models on
record never change when another is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_dscore.holdout.choosing import NormalModels
from pytest_dscore.holdout.empirical import SIDES, own_tails
from pytest_dscore.holdout.growing import likest
from pytest_dscore.holdout.pairs import exclusive_logs
from pytest_dscore.holdout.similarity import PackedOutcomes, agreements, similarity_matrix
from pytest_dscore.holdout.tails import Floats

Ints = NDArray[np.int64]

#: The anchor is chosen from so many first models, and below that number nothing is kept.
FIRST = 200
_OFFSETS = 8  # relaxations of the anchor's event
_CHUNK = 512  # models added at a time


@dataclass(frozen=True)
class Anchor:
    """The model that all others are held against, and what its relaxed events cost.

    Parameters
    ----------
    model
        Its index.
    offsets
        Deviations, in examples, at which its relaxed events start, shape (g,).
    logs
        Log probability of each relaxed event in the upper and in the lower tail, shape (2, g).
    """

    model: int
    offsets: Ints
    logs: Floats


@dataclass(frozen=True)
class Costs:
    """What k models cost; the first axis of every array is the models'.

    Parameters
    ----------
    wrong
        Wrong examples.
    parent, agree
        Parent in the tree (the first model is its own) and on how many examples they agree.
    agree_anchor
        On how many examples each agrees with the anchor.
    alone
        Log of each model's own tails, shape (k, 2): upper, lower.
    tree
        Log of ``P(E_i and not E_parent)`` in each tail, shape (k, 2).
    anchored
        Log of ``P(E_i and not F)`` in each tail for each offset, shape (k, 2, g).
    """

    wrong: Ints
    parent: Ints
    agree: Ints
    agree_anchor: Ints
    alone: Floats
    tree: Floats
    anchored: Floats

    @property
    def k(self) -> int:
        """Number of models."""
        return len(self.wrong)

    def first(self, k: int) -> Costs:
        """Return those of the first k models."""
        return Costs(*(getattr(self, one.name)[:k] for one in fields(self)))

    def joined(self, other: Costs) -> Costs:
        """Return these models' costs, then those of `other`."""
        names = [one.name for one in fields(self)]
        return Costs(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def columns(self) -> Floats:
        """Return the log terms with no F and with each F, in each tail, shape (k, 2, 1 + g)."""
        return np.concatenate([self.tree[:, :, None], np.minimum(self.tree[:, :, None], self.anchored)], axis=2)


class Costing:
    """How the models of one hold-out are charged: what the costs depend on besides the models' outcomes.

    Parameters
    ----------
    packed
        Outcomes of at least `FIRST` models; the first `FIRST` alone decide about the anchor.
    deviation
        Deviation that is overfitting, in examples, at least 1.
    delta
        The hold-out's failure probability, in (0, 1): an event more likely than that is no use as F.
    """

    def __init__(self, packed: PackedOutcomes, deviation: int, delta: float) -> None:
        self.packed, self.n, self.deviation, self.delta = packed, packed.n, deviation, delta
        first = PackedOutcomes(packed.bits[:FIRST], self.n)
        model = int(np.argmax(similarity_matrix(first).mean(axis=1)))
        wrong = first.errors()[[model]]
        spread = math.sqrt(float(wrong[0]) * (self.n - float(wrong[0])) / self.n)
        least = min(max(1, math.ceil(spread * float(special.ndtri(1 - delta / 2)))), deviation)
        offsets = np.unique(np.linspace(least, deviation, _OFFSETS).round().astype(np.int64))
        logs = np.array([[own_tails(wrong, self.n, side, int(o))[0] for o in offsets] for side in SIDES])
        self.anchor = Anchor(model, offsets, logs)

    def none(self) -> Costs:
        """Return the costs of no model."""
        no, g = np.zeros(0, dtype=np.int64), self.anchor.offsets.size
        return Costs(no, no, no, no, np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2, g)))

    def extended(self, costs: Costs) -> Costs:
        """Return the costs of all models, where `costs` are those of the first of them."""
        while costs.k < self.packed.k:
            stop = min(costs.k + _CHUNK, self.packed.k)
            costs = costs.joined(self._next(costs, stop))
        return costs

    def _next(self, before: Costs, stop: int) -> Costs:
        start, anchor = before.k, self.anchor.model
        rows = agreements(self.packed, start, stop)
        wrong = np.concatenate([before.wrong, PackedOutcomes(self.packed.bits[start:stop], self.n).errors()])
        candidates = [likest(self.n, wrong[:i], int(wrong[i]), row[:i] / self.n) for i, row in enumerate(rows, start)]
        few = max(1, *map(len, candidates))
        # The first model has none to hang on and is put right below; a repeated candidate changes nothing.
        chosen = np.array([[*c, *[c[0] if c else 0] * (few - len(c))] for c in candidates], dtype=np.int64)
        agree = np.take_along_axis(rows, chosen, axis=1)
        alone = _alone(wrong[start:], self.n, self.deviation)
        terms = self._outside(wrong[start:, None], wrong[chosen], agree, alone[:, :, None], self.deviation)
        best = np.argmin(np.logaddexp(terms[:, 0], terms[:, 1]), axis=1)[:, None]
        tree = np.take_along_axis(terms, best[:, :, None], axis=2)[:, :, 0]
        if start == 0:
            tree[0] = alone[0]
        made = Costs(
            wrong[start:],
            np.take_along_axis(chosen, best, axis=1)[:, 0],
            np.take_along_axis(agree, best, axis=1)[:, 0],
            rows[:, anchor],
            alone,
            tree,
            np.zeros((stop - start, 2, self.anchor.offsets.size)),
        )
        return replace(made, anchored=self._anchored(made))

    def log_bound(self, costs: Costs) -> float:
        """Return the log of the bound on the probability that any of these models, the anchor among them, overfits.

        It may be above 0, and is never above that of the union bound.
        """
        columns = _sums(costs.columns())
        columns[:, 1:] = np.logaddexp(columns[:, 1:], self.anchor.logs)
        return min(_add(columns.min(axis=1)), _add(_sums(costs.alone)))

    def log_bound_at(self, costs: Costs, deviation: int) -> float:
        """Return the log of the bound at another deviation: the same tree and anchor, one F that suits it."""
        wrong, anchor = costs.wrong, self.anchor.model
        others = np.flatnonzero(np.arange(costs.k) != anchor)
        row = np.concatenate([[self.n], costs.agree_anchor[others]])[None] / self.n
        normal = NormalModels(np.concatenate([wrong[[anchor]], wrong[others]]), self.n, row, deviation)
        offset = max(1, normal.anchored(0, np.arange(1, costs.k))[1])
        alone, logs = _alone(wrong, self.n, deviation), []
        for own, side in zip(alone.T, SIDES, strict=True):
            tree = exclusive_logs(self.n, wrong, wrong[costs.parent], costs.agree, side, deviation, deviation)
            tree = np.minimum(tree, own)
            tree[0] = own[0]
            outside = exclusive_logs(self.n, wrong, wrong[anchor], costs.agree_anchor, side, deviation, offset)
            relaxed = own_tails(wrong[[anchor]], self.n, side, offset)[0]
            logs.append(min(float(_sums(tree)), float(np.logaddexp(relaxed, _sums(np.minimum(tree, outside))))))
        return min(_add(np.array(logs)), _add(_sums(alone)))

    def _outside(self, wrong: Ints, other: Ints, agree: Ints, alone: Floats, offset: Any) -> Floats:
        """Return ``log P(E_i and not the other's event)`` in each tail, shape (k, 2, others); at most `alone`."""
        logs = [exclusive_logs(self.n, wrong, other, agree, side, self.deviation, offset) for side in SIDES]
        return np.minimum(np.stack(logs, axis=1), alone)

    def _anchored(self, costs: Costs) -> Floats:
        wrong, alone = costs.wrong[:, None], costs.alone[:, :, None]
        anchor = self._wrong_of(np.array([self.anchor.model]))
        # The anchor itself cannot overfit outside of F, and its own term comes out as 0.
        return self._outside(wrong, anchor, costs.agree_anchor[:, None], alone, self.anchor.offsets)

    def _wrong_of(self, models: Ints, others: Ints | None = None) -> Ints:
        """Return on how many examples models are wrong, or differ from others."""
        bits = self.packed.bits[models]
        return PackedOutcomes(bits if others is None else bits ^ self.packed.bits[others], self.n).errors()

    def agrees(self, costs: Costs, models: Ints) -> bool:
        """Whether all parents come before their children, and some models' costs are what the outcomes give."""
        part = Costs(*(getattr(costs, one.name)[models] for one in fields(costs)))
        earlier = (costs.parent >= 0) & (costs.parent < np.maximum(np.arange(costs.k), 1))
        if not bool(earlier.all()):
            return False
        wrong, other = self._wrong_of(models), self._wrong_of(part.parent)
        agree = self.n - self._wrong_of(models, part.parent)
        alone = _alone(wrong, self.n, self.deviation)
        tree = self._outside(wrong[:, None], other[:, None], agree[:, None], alone[:, :, None], self.deviation)[:, :, 0]
        tree[models == 0] = alone[models == 0]
        anchor = np.full(len(models), self.anchor.model)
        again = Costs(wrong, part.parent, agree, self.n - self._wrong_of(models, anchor), alone, tree, part.anchored)
        again = replace(again, anchored=self._anchored(again))
        return all(
            np.allclose(getattr(part, one.name), getattr(again, one.name), rtol=1e-9, atol=0) for one in fields(part)
        )


def log_union(wrong: Ints, n: int, deviation: int) -> float:
    """Return the log of the sum of the models' own tails; it may be above 0."""
    return _add(_sums(_alone(wrong, n, deviation)))


def _alone(wrong: Ints, n: int, deviation: int) -> Floats:
    """Return the log of each model's own tails, shape (k, 2)."""
    counts, which = np.unique(wrong, return_inverse=True)
    return np.stack([own_tails(counts, n, side, deviation)[which] for side in SIDES], axis=1)


def _sums(logs: Floats) -> Floats:
    """Return the log of the sum of exponentials over the first axis."""
    top = np.maximum(logs.max(axis=0, initial=-np.inf), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)), dtype=np.float64)


def _add(logs: Floats) -> float:
    return float(np.logaddexp(logs[0], logs[1]))
