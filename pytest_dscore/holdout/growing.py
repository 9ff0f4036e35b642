"""The spanning-tree bound, one model at a time: what a ledger needs to judge the next use quickly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout import checks, tails
from pytest_dscore.holdout.choosing import Ints
from pytest_dscore.holdout.empirical import SIDES, own_tails
from pytest_dscore.holdout.pairs import exclusive_logs

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
        own = np.array([own_tails(np.array([int(wrong)]), self.n, side, self.deviation) for side in SIDES])
        alone = float(np.logaddexp(*own[:, 0]))
        best, parent = alone, self.k if self.k == 0 else 0
        others = np.array(likest(self.n, np.array(self._wrong), int(wrong), row), dtype=np.int64)
        if others.size:
            shared = np.logaddexp(*np.minimum(self._exclusive(int(wrong), others, row), own))
            likest_one = int(np.argmin(shared))
            if shared[likest_one] < best:
                best, parent = float(shared[likest_one]), int(others[likest_one])
        self._wrong.append(int(wrong))
        self._parents.append(parent)
        self._log = tails.log_add(self._log, best)
        self._log_union = tails.log_add(self._log_union, alone)
        return self.failure_probability

    def _exclusive(self, wrong: int, others: Ints, row: tails.Floats) -> tails.Floats:
        """Return ``log P(the new model overfits and the other does not)`` in each tail, shape (2, others)."""
        agree = np.rint(row[others] * self.n)
        counts, m = np.array(self._wrong)[others], self.deviation
        return np.array([exclusive_logs(self.n, wrong, counts, agree, side, m, m) for side in SIDES])


def likest(n: int, wrong: Ints, new: int, similarity: tails.Floats) -> list[int]:
    """Return the few models whose outcomes correlate most with a new one's.

    Parameters
    ----------
    n
        Examples.
    wrong
        Wrong examples of the earlier models, shape (k,).
    new
        Those of the new one.
    similarity
        Of the new one to each earlier one, shape (k,).
    """
    if wrong.size == 0:
        return []
    p, q = wrong / n, new / n
    spread = np.sqrt(np.maximum(p * (1 - p) * q * (1 - q), 1e-300))
    correlation = ((p + q - 1 + similarity) / 2 - p * q) / spread
    few = min(_CANDIDATES, wrong.size)
    return [int(i) for i in np.argpartition(-correlation, few - 1)[:few]]
