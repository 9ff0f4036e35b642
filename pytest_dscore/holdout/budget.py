"""What the uses on record of one hold-out have spent, what still holds, and how many more models there may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.analyse import Analysis, analyse
from pytest_dscore.holdout.forecast import models_by_anchor
from pytest_dscore.holdout.growing import GrowingTree
from pytest_dscore.holdout.ledger.record import Use
from pytest_dscore.holdout.planning import failure_probability, max_models, tolerance
from pytest_dscore.holdout.queries import describe_mode
from pytest_dscore.holdout.search import MOST_MODELS
from pytest_dscore.holdout.similarity import PackedOutcomes
from pytest_dscore.holdout.terms import Terms

#: Stands for an epsilon where none is declared, and only what does not depend on it is asked.
_ANY_EPSILON = 0.5
_HIDDEN = "scores are hidden, so error rates of 50 % and models that are not alike are supposed"


@dataclass(frozen=True)
class Budget:
    """The budget of one hold-out.

    Parameters
    ----------
    terms
        Its terms.
    own
        Uses of this hold-out, at least one, in the order of the record.
    elsewhere
        Uses of other hold-outs that share examples with it. Each is charged at the union price, as one more model on
        this hold-out: their outcomes are of other examples, so nothing is known of how similar they are.
    """

    terms: Terms
    own: tuple[Use, ...]
    elsewhere: tuple[Use, ...] = ()

    @property
    def n(self) -> int:
        """Examples."""
        return self.own[0].n

    @property
    def used(self) -> int:
        """Models charged."""
        return len(self.own) + len(self.elsewhere)

    @property
    def epsilon(self) -> float:
        """The declared epsilon, for what can only be asked where there is one."""
        if self.terms.epsilon is None:
            raise DScoreError(f"hold-out '{self.terms.name}' has no epsilon: declare one, or give --epsilon")
        return self.terms.epsilon

    @property
    def adaptive(self) -> bool:
        """Whether every model that could have been written counts."""
        return self.terms.mode == "adaptive"

    @property
    def hidden(self) -> bool:
        """Whether scores are not shown as they are, so that nothing that is shown may depend on them."""
        asked = self.adaptive and self.terms.feedback != "exact"
        return asked or any(use.score_hidden for use in (*self.own, *self.elsewhere))

    @cached_property
    def analysis(self) -> Analysis:
        """The analysis of this hold-out's own uses, at their part of delta."""
        kind = self.terms
        return analyse(
            outcomes_of(self.own),
            epsilon=kind.epsilon or _ANY_EPSILON,
            delta=kind.delta * len(self.own) / self.used,
            bound=kind.bound,
            mode=kind.mode,
            feedback=kind.feedback,
            ladder_step=kind.epsilon or _ANY_EPSILON,
        )

    @cached_property
    def _tails(self) -> tuple[float, ...]:
        """Each model's own probability of overfitting, in the order of `own`, then `elsewhere`."""
        return self._tails_of((*self.own, *self.elsewhere))

    def _tails_of(self, uses: Sequence[Use]) -> tuple[float, ...]:
        """Return each use's own probability of overfitting, were its error rate that on this hold-out."""
        rates = [(use.wrong, use.n) for use in uses]
        each = {
            rate: failure_probability(k=1, n=self.n, epsilon=self.epsilon, error=Fraction(*rate), bound="union")
            for rate in set(rates)
        }
        return tuple(each[rate] for rate in rates)

    def planned(self, bound: str | None = None) -> dict[str, Any]:
        """Return the arguments of the planning functions for models like those used.

        Adaptive: as `analyse` does, the error rate nearest to 1/2 and the least similarity seen stand for models that
        were never asked. Hidden scores are stood for by the worst case, as a figure made of them would tell them: error
        rates of 1/2, and no similarity, which leaves the union bound. Otherwise the means.
        """
        kind = self.terms
        shared = {
            "n": self.n,
            "mode": kind.mode,
            "feedback": kind.feedback,
            "ladder_step": kind.epsilon or _ANY_EPSILON,
        }
        if self.hidden:
            return shared | {"error": Fraction(1, 2), "similarity": 0.0, "bound": "union"}
        matrix = self.analysis.similarity
        pairs = matrix[np.triu_indices(len(matrix), 1)]
        rates = [Fraction(use.wrong, use.n) for use in (*self.own, *self.elsewhere)]
        error = min(rates, key=lambda p: abs(p - Fraction(1, 2))) if self.adaptive else sum(rates) / len(rates)
        alike = float((pairs.min if self.adaptive else pairs.mean)()) if pairs.size else 1.0
        return shared | {
            "error": error,
            "similarity": alike if not (self.adaptive and self.elsewhere) else 0.0,
            "bound": bound or kind.bound,
        }

    @cached_property
    def failure_probability(self) -> float:
        """Bound on the probability that any score is off by the declared epsilon."""
        if self.adaptive or self.hidden:
            return failure_probability(k=self.used, epsilon=self.epsilon, **self.planned())
        return min(1.0, self._own_failure + math.fsum(self._tails[len(self.own) :]))

    @property
    def _own_failure(self) -> float:
        """The part of this hold-out's own models."""
        return self.analysis.failure_probability

    @cached_property
    def tolerance(self) -> float:
        """The smallest epsilon that still holds for all of them, with probability 1 - delta."""
        if self.adaptive or self.hidden:
            return tolerance(k=self.used, delta=self.terms.delta, **self.planned())
        own = self._own_tolerance
        if not self.elsewhere:
            return own
        rest = self.terms.delta * len(self.elsewhere) / self.used
        nearest = min((Fraction(use.wrong, use.n) for use in self.elsewhere), key=lambda p: abs(p - Fraction(1, 2)))
        return max(own, tolerance(k=len(self.elsewhere), n=self.n, delta=rest, error=nearest, bound="union"))

    @property
    def _own_tolerance(self) -> float:
        """What still holds for this hold-out's own models, at their part of delta."""
        return self.analysis.tolerance

    @cached_property
    def effective(self) -> float:
        """Effective number of models; those elsewhere, and all whose scores are hidden, count in full."""
        return float(self.used) if self.hidden else self.analysis.effective_models + len(self.elsewhere)

    @property
    def holds(self) -> bool:
        """Whether the declared epsilon still holds."""
        return self.failure_probability <= self.terms.delta

    @cached_property
    def remaining(self) -> int | None:
        """How many more models like those so far there may be by the bound; None where there is no limit."""
        kind, left = self.terms, self.terms.delta - self.failure_probability
        if left < 0:
            return 0
        if self.adaptive or self.hidden or kind.bound == "naive-bayes":
            # One model alone says nothing of how similar the next one will be.
            planned = self.planned("union" if len(self.own) == 1 else None)
            total = max_models(epsilon=self.epsilon, delta=kind.delta, **planned)
            return None if total >= MOST_MODELS else max(0, total - self.used)
        if kind.bound == "bootstrap":
            # It grows with the effective number of models; those to come are taken to add as much as those so far.
            union = self.union_end
            return None if union is None else max(0, math.floor(union * self.used / self.effective) - self.used)
        if kind.bound in ("union", "theorem-2") or len(self.own) == 1:
            return _quotient(left, self.failure_probability / self.used)
        spent = math.fsum(self._tails[len(self.own) :])
        deviation = GrowingTree(self.n, self.epsilon).deviation
        mixture = models_by_anchor(outcomes_of(self.own), self.analysis.similarity, deviation, kind.delta - spent)
        # Where what they cost on average is lost in rounding, the mixture alone says how many.
        linear = _quotient(left, self._cost()) or 0
        return None if mixture >= MOST_MODELS else max(linear, math.floor(mixture) - len(self.own))

    def _cost(self) -> float:
        """Return what those of several models that came after the first cost on average; it had none to be like."""
        alone = math.fsum(self._tails[: len(self.own)]) / len(self.own)
        return (self._own_failure - alone) / (len(self.own) - 1)

    @cached_property
    def union_end(self) -> int | None:
        """After how many models the plain union bound ends; None where it never does."""
        kind = self.terms
        if self.adaptive or self.hidden:
            total = max_models(epsilon=self.epsilon, delta=kind.delta, **self.planned("union"))
            return None if total >= MOST_MODELS else total
        spent = np.cumsum(self._tails)
        if spent[-1] > kind.delta:
            return int(np.searchsorted(spent, kind.delta, side="right"))
        more = _quotient(kind.delta - float(spent[-1]), float(spent[-1]) / self.used)
        return None if more is None else self.used + more

    @property
    def limit(self) -> int | None:
        """How many more models there may be, by the bound and by `max_uses`; None where there is no limit."""
        limits = [] if self.terms.epsilon is None else [self.remaining]
        if self.terms.max_uses is not None:
            limits.append(max(0, self.terms.max_uses - self.used))
        return min((one for one in limits if one is not None), default=None)

    @property
    def share_used(self) -> float:
        """Part of the budget that is used, in [0, 1]."""
        return 0.0 if self.limit is None else self.used / (self.used + self.limit)

    @property
    def method(self) -> str:
        """Which bound was smallest."""
        return "union" if self.hidden else self.analysis.method

    @property
    def note(self) -> str:
        """Assumption or fallback in words, empty where there is none."""
        return _HIDDEN if self.hidden else self.analysis.note

    @property
    def effective_note(self) -> str:
        """What `effective` means where it is not the bootstrap's; else empty."""
        return ""

    def until(self, k: int) -> Budget:
        """Return the budget after the first k uses, those elsewhere last."""
        own = self.own[:k]
        return Budget(self.terms, own, self.elsewhere[: k - len(own)])

    @property
    def mode_statement(self) -> str:
        """One sentence on non-adaptive or adaptive use."""
        return describe_mode(self.terms.mode, self.terms.feedback)


def outcomes_of(uses: Sequence[Use]) -> PackedOutcomes:
    """Return the outcome matrix of uses of one hold-out."""
    bits = np.frombuffer(b"".join(use.outcomes for use in uses), np.uint8)
    return PackedOutcomes(bits.reshape(len(uses), -1), uses[0].n)


def _quotient(left: float, cost: float) -> int | None:
    return None if cost <= 0 or left / cost >= float(MOST_MODELS) else math.floor(left / cost)
