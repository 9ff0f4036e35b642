"""The spanning-tree bound, one model at a time: what a ledger needs to judge the next use quickly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout import checks, tails
from pytest_dscore.holdout.coupling import JointTail, couple
from pytest_dscore.holdout.empirical import SIDES, Tail

_CANDIDATES = 4


class GrowingTree:
    """The Hunter-Worsley bound of `empirical` over a tree that grows by a leaf with each model.

    The tree of an earlier state is never changed, so adding a model costs the exact joint tails with a few of the
    models most like it, whatever the number of models before. The bound is valid for any tree; it may be a little above
    that of the tree that `analyse` would choose with all models at hand. Rates and similarities are plugged in.

    Parameters
    ----------
    n
        Number of examples, at least 1.
    epsilon
        Tolerance in (0, 1).

    Raises
    ------
    SettingsError
        `n` or `epsilon` out of range.
    """

    def __init__(self, n: int, epsilon: float | Fraction) -> None:
        self.n = checks.count(n, "n")
        self.epsilon = checks.open_unit(epsilon, "epsilon")
        self.deviation = math.ceil(self.n * tails.fraction(self.epsilon) - Fraction(self.n, 10**15))
        self._wrong: list[int] = []
        self._parents: list[int] = []
        self._log = self._log_union = -math.inf

    @property
    def k(self) -> int:
        """Number of models."""
        return len(self._wrong)

    @property
    def parents(self) -> tuple[int, ...]:
        """Each model's parent in the tree; the first is its own."""
        return tuple(self._parents)

    @property
    def failure_probability(self) -> float:
        """Bound on the probability that any model so far overfits, in [0, 1]."""
        return tails.probability(tails.round_up(min(0.0, self._log)))

    @property
    def union_probability(self) -> float:
        """The union bound over the same models, in [0, 1]; never below `failure_probability`."""
        return tails.probability(tails.round_up(min(0.0, self._log_union)))

    def add(self, wrong: int, similarity: Any) -> float:
        """Add a model.

        Parameters
        ----------
        wrong
            Number of examples on which it is wrong, 0..n.
        similarity
            Its similarity to each model added before, in order, shape (k,); from `similarity_row`.

        Returns
        -------
        float
            `failure_probability` with the new model.

        Raises
        ------
        SettingsError
            `wrong` is not within 0..n.
        DScoreError
            `similarity` has another length than the number of models so far, or values outside [0, 1].
        """
        row = np.asarray(similarity, dtype=np.float64)
        if isinstance(wrong, bool) or int(wrong) != wrong or not 0 <= wrong <= self.n:
            raise SettingsError(f"wrong must be a whole number between 0 and {self.n}, not {wrong!r}.")
        if row.shape != (self.k,):
            raise DScoreError(f"similarity must hold one value for each of the {self.k} models, not shape {row.shape}.")
        if not bool(((row >= 0) & (row <= 1)).all()):
            raise DScoreError("similarity must hold values between 0 and 1 only.")
        own = {side: self._tail(int(wrong), side) for side in SIDES}
        alone = tails.log_add(*own.values())
        best, parent = alone, self.k if self.k == 0 else 0
        for other in self._likest(int(wrong), row):
            shared = tails.log_add(
                *(self._exclusive(int(wrong), other, float(row[other]), own, side) for side in SIDES)
            )
            if shared < best:
                best, parent = shared, other
        self._wrong.append(int(wrong))
        self._parents.append(parent)
        self._log = tails.log_add(self._log, best)
        self._log_union = tails.log_add(self._log_union, alone)
        return self.failure_probability

    def _tail(self, wrong: int, side: Tail) -> float:
        p, q = wrong / self.n, (self.n - wrong) / self.n
        if side == "upper":
            return float(tails.log_upper(wrong + self.deviation, self.n, p, q))
        return float(tails.log_lower(wrong - self.deviation, self.n, p, q))

    def _likest(self, wrong: int, row: tails.Floats) -> list[int]:
        """Return the models whose outcomes correlate most with the new one's."""
        if self.k == 0:
            return []
        p, q = np.array(self._wrong) / self.n, wrong / self.n
        spread = np.sqrt(np.maximum(p * (1 - p) * q * (1 - q), 1e-300))
        correlation = ((p + q - 1 + row) / 2 - p * q) / spread
        few = min(_CANDIDATES, self.k)
        return [int(i) for i in np.argpartition(-correlation, few - 1)[:few]]

    def _exclusive(self, wrong: int, other: int, similarity: float, own: dict[Tail, float], side: Tail) -> float:
        """Return ``log P(the new model overfits and the other does not)`` in one tail."""
        count = self._wrong[other]
        agree = Fraction(round(similarity * self.n), self.n)
        coupling = couple(Fraction(count, self.n), Fraction(wrong, self.n), agree)
        if coupling is None or own[side] == -math.inf:
            return own[side]
        joint, m = JointTail(self.n, coupling), self.deviation
        if side == "upper":
            return min(own[side], joint.log_probability("lower", count + m - 1, "upper", wrong + m))
        return min(own[side], joint.log_probability("upper", count - m + 1, "lower", wrong - m))
