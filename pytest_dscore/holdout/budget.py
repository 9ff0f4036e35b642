"""What the uses on record of one hold-out have spent, what still holds, and how many more models there may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
#: Up to so many models an epsilon with room is searched for, in steps of one part in so many.
_SEARCHED, _STEPS = 200, 10_000
_WORST = "error rates of 50 % and models that are not alike are supposed"
_HIDDEN = f"scores are hidden, so {_WORST}"
_REFUSED = f"nothing was shown of the models refused, so {_WORST}"


@dataclass(frozen=True)
class Budget:
    """The budget of one hold-out.

    Parameters
    ----------
    terms
        Its terms.
    own
        Uses of this hold-out whose answers were shown, in the order of the record; none only where there are refused
        ones and none `elsewhere`.
    elsewhere
        Such uses of other hold-outs that share examples with it. Each is charged at the union price, as one more model
        on this hold-out: their outcomes are of other examples, so nothing is known of how similar they are.
    refused
        Uses of either that were refused for their own outcomes. Their scores are not among those that must hold, but
        whether a model is refused depends on its score: who tries models until one is admitted gets a lucky one. So no
        model is admitted unless the refused ones would be within the budget too, at the union price and, as nothing
        shown may depend on their outcomes, for the worst error rate, 1/2.
    """

    terms: Terms
    own: tuple[Use, ...]
    elsewhere: tuple[Use, ...] = ()
    refused: tuple[Use, ...] = ()

    @property
    def uses(self) -> tuple[Use, ...]:
        """All of them."""
        return (*self.own, *self.elsewhere, *self.refused)

    @property
    def n(self) -> int:
        """Examples; the least where none of this hold-out's own uses was shown."""
        return self.own[0].n if self.own else min(use.n for use in self.uses)

    @property
    def used(self) -> int:
        """Models charged."""
        return len(self.own) + len(self.elsewhere) + len(self.refused)

    @property
    def shown(self) -> int:
        """Models whose answers were shown."""
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

    @property
    def _blind(self) -> bool:
        """Whether figures are for the worst case: nothing is known that may be used."""
        return self.hidden or not self.own or bool(self.adaptive and self.refused)

    @cached_property
    def analysis(self) -> Analysis:
        """The analysis of this hold-out's own uses, at their part of delta."""
        kind = self.terms
        return analyse(
            outcomes_of(self.own),
            epsilon=kind.epsilon or _ANY_EPSILON,
            delta=kind.delta * len(self.own) / self.shown,
            bound=kind.bound,
            mode=kind.mode,
            feedback=kind.feedback,
            ladder_step=kind.epsilon or _ANY_EPSILON,
        )

    @cached_property
    def _tails(self) -> tuple[float, ...]:
        """Each model's own probability of overfitting, in the order of `uses`."""
        return self._tails_of(self.uses)

    def _tails_of(self, uses: Sequence[Use]) -> tuple[float, ...]:
        """Return each use's own probability of overfitting, were its error rate that on this hold-out."""
        rates = [_rate(use) for use in uses]
        each = {
            rate: failure_probability(k=1, n=self.n, epsilon=self.epsilon, error=Fraction(*rate), bound="union")
            for rate in set(rates)
        }
        return tuple(each[rate] for rate in rates)

    def planned(self, bound: str | None = None) -> dict[str, Any]:
        """Return the arguments of the planning functions for models like those used.

        Adaptive: as `analyse` does, the error rate nearest to 1/2 and the least similarity seen stand for models that
        were never asked. Hidden scores are stood for by the worst case, as a figure made of them would tell them: error
        rates of 1/2, and no similarity, which leaves the union bound. So are adaptive models where some were refused,
        and where none was shown. Otherwise the means.
        """
        kind = self.terms
        shared = {
            "n": self.n,
            "mode": kind.mode,
            "feedback": kind.feedback,
            "ladder_step": kind.epsilon or _ANY_EPSILON,
        }
        if self._blind:
            return shared | {"error": Fraction(1, 2), "similarity": 0.0, "bound": "union"}
        matrix = self.analysis.similarity
        pairs = matrix[np.triu_indices(len(matrix), 1)]
        rates = [Fraction(*_rate(use)) for use in (*self.own, *self.elsewhere)]
        error = min(rates, key=lambda p: abs(p - Fraction(1, 2))) if self.adaptive else sum(rates) / len(rates)
        alike = float((pairs.min if self.adaptive else pairs.mean)()) if pairs.size else 1.0
        return shared | {
            "error": error,
            "similarity": alike if not (self.adaptive and self.elsewhere) else 0.0,
            "bound": bound or kind.bound,
        }

    @cached_property
    def failure_probability(self) -> float:
        """Bound on the probability that any score that was shown is off by the declared epsilon; 0 where none was."""
        if not self.own:
            return 0.0
        if self.adaptive or self._blind:
            return failure_probability(k=self.shown, epsilon=self.epsilon, **self.planned())
        return min(1.0, self._own_failure + math.fsum(self._tails[len(self.own) : self.shown]))

    @cached_property
    def committed(self) -> float:
        """The same with the refused models, by which the next ones are admitted."""
        if self.own and not self.refused:
            return self.failure_probability
        if self._blind:
            return failure_probability(k=self.used, epsilon=self.epsilon, **self.planned())
        return min(1.0, self.failure_probability + math.fsum(self._tails[self.shown :]))

    @property
    def _own_failure(self) -> float:
        """The part of this hold-out's own models."""
        return self.analysis.failure_probability

    @cached_property
    def tolerance(self) -> float:
        """The smallest epsilon that still holds for all that were shown, with probability 1 - delta."""
        if not self.own:
            return 0.0
        if self.adaptive or self._blind:
            return tolerance(k=self.shown, delta=self.terms.delta, **self.planned())
        own = self._own_tolerance
        if not self.elsewhere:
            return own
        rest = self.terms.delta * len(self.elsewhere) / self.shown
        nearest = min((Fraction(*_rate(use)) for use in self.elsewhere), key=lambda p: abs(p - Fraction(1, 2)))
        return max(own, tolerance(k=len(self.elsewhere), n=self.n, delta=rest, error=nearest, bound="union"))

    @cached_property
    def roomy_epsilon(self) -> float:
        """The least epsilon, to a hundredth of a per cent, with room for another model like those so far.

        Of so many models that a search would take minutes: an epsilon at which they and those refused are within the
        budget, which may be larger than need be.
        """
        if len(self.own) > _SEARCHED:
            return Budget(self.terms, self.own, (*self.elsewhere, *self.refused)).tolerance
        low, high = math.floor(self.epsilon * _STEPS), _STEPS
        while high - low > 1:
            middle = (low + high) // 2
            room = Budget(
                replace(self.terms, epsilon=middle / _STEPS), self.own, self.elsewhere, self.refused
            ).remaining
            low, high = (low, middle) if room != 0 else (middle, high)
        return high / _STEPS

    @property
    def _own_tolerance(self) -> float:
        """What still holds for this hold-out's own models, at their part of delta."""
        return self.analysis.tolerance

    @cached_property
    def effective(self) -> float:
        """Effective number of models; those elsewhere, refused, and all whose scores are hidden, count in full."""
        if self.hidden or not self.own:
            return float(self.used)
        return self.analysis.effective_models + self.used - len(self.own)

    @property
    def holds(self) -> bool:
        """Whether the declared epsilon still holds for all that was shown."""
        return self.failure_probability <= self.terms.delta

    @property
    def admits(self) -> bool:
        """Whether it would still hold with the refused models, so that all of them may be shown; and `max_uses`."""
        return self.committed <= self.terms.delta and not self.too_many

    @property
    def too_many(self) -> bool:
        """Whether they are more than `max_uses`."""
        return self.terms.max_uses is not None and self.used > self.terms.max_uses

    @cached_property
    def remaining(self) -> int | None:
        """How many more models like those so far there may be by the bound; None where there is no limit."""
        kind, left = self.terms, self.terms.delta - self.committed
        if left < 0:
            return 0
        if self.adaptive or self._blind or kind.bound == "naive-bayes":
            # One model alone says nothing of how similar the next one will be.
            planned = self.planned("union" if len(self.own) == 1 else None)
            total = max_models(epsilon=self.epsilon, delta=kind.delta, **planned)
            return None if total >= MOST_MODELS else max(0, total - self.used)
        if kind.bound == "bootstrap":
            # It grows with the effective number of models; those to come are taken to add as much as those so far.
            union = self.union_end
            return None if union is None else max(0, math.floor(union * self.used / self.effective) - self.used)
        if kind.bound in ("union", "theorem-2") or len(self.own) == 1:
            return quotient(left, self.failure_probability / self.shown)
        spent = math.fsum(self._tails[len(self.own) :])
        deviation = GrowingTree(self.n, self.epsilon).deviation
        mixture = models_by_anchor(outcomes_of(self.own), self.analysis.similarity, deviation, kind.delta - spent)
        # Where what they cost on average is lost in rounding, the mixture alone says how many.
        linear = quotient(left, self._cost()) or 0
        return None if mixture >= MOST_MODELS else max(linear, math.floor(mixture) - len(self.own))

    def _cost(self) -> float:
        """Return what those of several models that came after the first cost on average; it had none to be like."""
        alone = math.fsum(self._tails[: len(self.own)]) / len(self.own)
        return (self._own_failure - alone) / (len(self.own) - 1)

    @cached_property
    def union_end(self) -> int | None:
        """After how many models the plain union bound ends; None where it never does."""
        kind = self.terms
        if self.adaptive or self._blind:
            total = max_models(epsilon=self.epsilon, delta=kind.delta, **self.planned("union"))
            return None if total >= MOST_MODELS else total
        spent = np.cumsum(self._tails)
        if spent[-1] > kind.delta:
            return int(np.searchsorted(spent, kind.delta, side="right"))
        more = quotient(kind.delta - float(spent[-1]), float(spent[-1]) / self.used)
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
        return "union" if self._blind else self.analysis.method

    @property
    def note(self) -> str:
        """Assumption or fallback in words, empty where there is none."""
        if self.hidden:
            return _HIDDEN
        return _REFUSED if self._blind else self.analysis.note

    @property
    def effective_note(self) -> str:
        """What `effective` means where it is not the bootstrap's; else empty."""
        return ""

    def until(self, k: int) -> Budget:
        """Return the budget of the first k of `uses`."""
        own, rest = self.own[:k], max(0, k - len(self.own))
        return Budget(self.terms, own, self.elsewhere[:rest], self.refused[: max(0, k - self.shown)])

    @property
    def mode_statement(self) -> str:
        """One sentence on non-adaptive or adaptive use."""
        return describe_mode(self.terms.mode, self.terms.feedback)


def parts(uses: Sequence[Use], holdout: str) -> tuple[tuple[Use, ...], tuple[Use, ...], tuple[Use, ...]]:
    """Return uses of the hold-out with this digest, of others that share examples with it, and those refused."""
    shown = [use for use in uses if not use.refused]
    own = tuple(use for use in shown if use.holdout == holdout)
    elsewhere = tuple(use for use in shown if use.holdout != holdout)
    return own, elsewhere, tuple(use for use in uses if use.refused)


def outcomes_of(uses: Sequence[Use]) -> PackedOutcomes:
    """Return the outcome matrix of uses of one hold-out."""
    bits = np.frombuffer(b"".join(use.outcomes for use in uses), np.uint8)
    return PackedOutcomes(bits.reshape(len(uses), -1), uses[0].n)


def _rate(use: Use) -> tuple[int, int]:
    """Return errors and examples that a use is priced by: 1 of 2 where it was refused, as nothing may tell its own."""
    return (1, 2) if use.refused else (use.wrong, use.n)


def quotient(left: float, cost: float) -> int | None:
    """Return how many models at a cost the budget has left; None where there is no limit."""
    return None if cost <= 0 or left / cost >= float(MOST_MODELS) else math.floor(left / cost)
