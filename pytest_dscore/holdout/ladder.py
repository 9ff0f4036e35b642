"""The Ladder mechanism of Blum and Hardt 2015: show a score only when it beats the best so far by a step.

What is not shown cannot be learnt from, so far fewer models could have been asked than with exact scores; how many is
counted in `queries.count_queries`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout import checks, tails


@dataclass(frozen=True)
class LadderAnswer:
    """What the Ladder shows for one model.

    Parameters
    ----------
    error
        The best error rate shown so far, a multiple of the step; it is this model's only if `improved`.
    improved
        Whether this model beat the best so far by more than the step.
    round
        Number of this submission, from 1.
    """

    error: float
    improved: bool
    round: int


class Ladder:
    """Algorithm 1 of Blum and Hardt 2015, for error rates.

    A submission with empirical error below the best shown so far less the step becomes the new best, shown rounded to
    the nearest multiple of the step; any other shows the old best again. Comparison and rounding are exact (rational
    arithmetic; a tie is rounded up, to the worse score).

    Parameters
    ----------
    n
        Number of test examples, at least 1.
    step
        In (0, 1). Blum and Hardt take about ``(log(k n) / n)^(1/3)``, see `suggested_step`.

    best
        The best error rate shown before, to go on from; None at the beginning.

    Raises
    ------
    SettingsError
        `n` or `step` out of range.
    """

    def __init__(self, n: int, step: float | Fraction, best: Fraction | None = None) -> None:
        self.n = checks.count(n, "n")
        self.step = tails.fraction(checks.open_unit(step, "ladder_step"))
        self._best = best
        self._rounds = 0

    @property
    def best(self) -> float:
        """The error rate shown so far, infinite before the first submission."""
        return math.inf if self._best is None else float(self._best)

    @property
    def exact_best(self) -> Fraction | None:
        """The error rate shown so far, None before the first submission."""
        return self._best

    @property
    def rounds(self) -> int:
        """Number of submissions so far."""
        return self._rounds

    def submit(self, outcomes: Any) -> LadderAnswer:
        """Score one model.

        Parameters
        ----------
        outcomes
            Shape (n,), True or 1 where the model is wrong.

        Raises
        ------
        DScoreError
            Wrong length, or values other than 0 and 1.
        """
        vector = checks.outcome_vector(outcomes, self.n)
        return self.submit_count(int(np.count_nonzero(vector)))

    def submit_count(self, wrong: int) -> LadderAnswer:
        """Score one model by its number of wrong examples, 0..n."""
        if not 0 <= wrong <= self.n:
            raise SettingsError(f"wrong must lie between 0 and {self.n}, not {wrong!r}.")
        error = Fraction(wrong, self.n)
        self._rounds += 1
        improved = self._best is None or error < self._best - self.step
        if improved:
            self._best = math.floor(error / self.step + Fraction(1, 2)) * self.step
        return LadderAnswer(self.best, improved, self._rounds)


def suggested_step(k: int, n: int) -> float:
    """Return a step of the size for which Blum and Hardt's Theorem 3.1 holds, ``(log(k n) / n)^(1/3)``, below 1.

    The theorem fixes it up to a constant, taken as 1 here. With it the best shown error is off by about as much.
    """
    examples = checks.count(n, "n")
    power: float = (math.log(max(2, checks.count(k, "k") * examples)) / examples) ** (1 / 3)
    return min(0.5, power)
