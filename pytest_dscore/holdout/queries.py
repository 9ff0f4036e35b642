"""How many models could have been asked: non-adaptive use, and adaptive use by counting what was revealed.

A bound for k models fixed in advance also holds for models written one after another, if it is applied to every model
that *could* have been asked. What the writer learns in each round decides how many those are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.checks import Feedback, Mode

_FINITE = 1e307  # logs of counts end here, so that differences of logs stay numbers; no tail is anywhere near as small


@dataclass(frozen=True)
class Queries:
    """A number of queries K >= 1, kept as logarithms because adaptive counts have millions of digits.

    Parameters
    ----------
    log
        ``log K``.
    log_rest
        ``log (K - 1)``, ``-inf`` for a single query.
    """

    log: float
    log_rest: float

    @classmethod
    def of(cls, k: int) -> Queries:
        """Return the count of `k` queries, `k` an integer of at least 1 and of any size."""
        return cls(math.log(k), math.log(k - 1) if k > 1 else -math.inf)

    @classmethod
    def from_log(cls, log: float) -> Queries:
        """Return the count whose logarithm is `log`."""
        return cls(log, log + math.log1p(-math.exp(-log)) if log > 0 else -math.inf)


def ladder_values(step: float | Fraction) -> int:
    """Return how many different values a Ladder of this step can show: the multiples of `step` nearest to [0, 1]."""
    return math.floor(1 / tails.fraction(step) + Fraction(1, 2)) + 1


def _log_binomial(top: int, bottom: int) -> float:
    """Return ``log(top choose bottom)`` from whichever side has few factors; exact up to rounding."""
    bottom = min(bottom, top - bottom)
    if bottom <= 2000:
        return math.fsum(math.log(top - i) - math.log(i + 1) for i in range(bottom))
    if top > 10**300:  # the logs of the gammas would overflow: C(top, m) <= (e top / m)^m
        return bottom * (1 + math.log(top) - math.log(bottom))
    # log-gammas cancel: what is lost is at most their size times 1e-15, and is added, so that the count is not short
    parts = (math.lgamma(top + 1.0), math.lgamma(bottom + 1.0), math.lgamma(top - bottom + 1.0))
    return parts[0] - parts[1] - parts[2] + 4e-15 * parts[0]


def count_queries(
    k: int,
    n: int,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction = 0.01,
) -> Queries:
    """Return how many queries must be covered when `k` models are scored on `n` examples.

    Parameters
    ----------
    k
        Models scored, at least 1.
    n
        Test examples, at least 1.
    mode
        ``"non-adaptive"``: k. ``"adaptive"``: by `feedback`.
    feedback
        ``"exact"``: ``(n + 1)^(k - 1)`` (Mania et al. 2019, section 4). ``"pass-fail"``: ``2^k - 1``, all nodes of a
        binary tree of k rounds, the last of which has ``2^(k - 1)``. ``"ladder"``: ``C(k + m, m + 1)`` with m the
        number of values a Ladder can show (counted here; Blum and Hardt 2015 bound the same tree more loosely).
    ladder_step
        Step of the Ladder, in (0, 1).

    Notes
    -----
    The paper's count for ``"exact"`` is that of the last round alone; it still covers all rounds, since an answer that
    is itself an overfitting answer needs no further question: of n + 1 answers at most n lead on, and
    ``sum_{i<k} n^i <= (n + 1)^(k-1)``.
    """
    if mode == "non-adaptive":
        return Queries.of(k)
    if feedback == "exact":
        return Queries.from_log(min((k - 1) * math.log(n + 1), _FINITE)) if k > 1 else Queries.of(1)
    if feedback == "pass-fail":
        return Queries.of(2**k - 1) if k <= 1000 else Queries.from_log(k * math.log(2))
    values = ladder_values(ladder_step)
    return Queries.of(1) if k == 1 else Queries.from_log(_log_binomial(k + values, values + 1))


def describe_mode(mode: Mode, feedback: Feedback = "exact") -> str:
    """Return one sentence that says what is assumed about how the models came about, for a reader new to it."""
    if mode == "non-adaptive":
        return (
            "Non-adaptive: this holds if all the models were fixed before anyone saw a result on these examples; it "
            "does not hold if a model was chosen or changed in the light of an earlier result."
        )
    seen = {
        "exact": "the exact score of every model",
        "pass-fail": "only whether each model passed",
        "ladder": "a score only when it beat the best so far by a whole step",
    }[feedback]
    return (
        f"Adaptive: this holds even if every model was written in the light of all earlier results, provided that "
        f"what was shown was {seen}; it counts every model that could have been written that way."
    )
