"""The budget of a long ledger: what a model costs is computed when it comes, and kept.

`Budget` analyses all models anew, which takes a second at a thousand models and minutes and a gigabyte at ten thousand.
Here the terms of `costs` are added up instead. Their sum is a valid bound as well, usually within a per cent of what
the analysis reports; where it says no, `running_budget` asks the analysis, so nothing is refused that it would allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from pytest_dscore.holdout import tails
from pytest_dscore.holdout.analyse import least_epsilon
from pytest_dscore.holdout.budget import Budget, outcomes_of, quotient
from pytest_dscore.holdout.costs import FIRST, Costing, Costs, log_union
from pytest_dscore.holdout.growing import GrowingTree
from pytest_dscore.holdout.kept_costs import Kept
from pytest_dscore.holdout.ledger.record import Use
from pytest_dscore.holdout.search import MOST_MODELS, first_between
from pytest_dscore.holdout.tails import Floats
from pytest_dscore.holdout.terms import Terms

#: Up to so many models of a hold-out the full analysis takes a fraction of a second, and says what it always said.
FEW = FIRST
_TREE_BOUNDS = ("best", "empirical")
METHOD, UNION_METHOD = "tree and anchor, model by model", "union"
EFFECTIVE = "the number of models that would cost as much at the union price (of so many models no bootstrap is drawn)"


@dataclass(frozen=True)
class RunningBudget(Budget):
    """The budget of a hold-out with many models, from what each of them costs; made by `running_budget`.

    It answers what `Budget` answers, with these differences:

    - ``failure_probability`` is the bound of `costs` (for ``union`` the sum of the models' own probabilities);
    - ``effective`` is k' = bound / mean own probability, in [1, k]: so many models would cost the same at the union
      price, at the declared epsilon. The bootstrap's k' is asymptotic, made at the epsilon that has probability delta,
      and often much smaller: it sees dependence of all orders, the bound that of pairs;
    - ``remaining`` is what the same terms give for a mixture continued: with the anchor's event paid once, each further
      model costs the mean of the terms so far. A forecast, no promise;
    - ``tolerance`` keeps tree and anchor, and is computed when asked for: seconds for thousands of models.

    Parameters
    ----------
    costing, costs
        Of `own`; None for the union bound, which needs no pairs.
    """

    costing: Costing | None = field(default=None, repr=False, compare=False)
    costs: Costs | None = field(default=None, repr=False, compare=False)

    @property
    def method(self) -> str:
        """What the bound is made of, for a report."""
        return UNION_METHOD if self.costs is None else METHOD

    @property
    def note(self) -> str:
        """Nothing is assumed and nothing fell back."""
        return ""

    @property
    def effective_note(self) -> str:
        """What `effective` means here."""
        return EFFECTIVE

    @cached_property
    def _log_bound(self) -> float:
        """Log of the bound on this hold-out's own models; it may be above 0."""
        if self.costing is None or self.costs is None:
            total = math.fsum(self._tails[: len(self.own)])
            return math.log(total) if total > 0 else -math.inf
        return tails.round_up_sum(self.costing.log_bound(self.costs))

    @property
    def _own_failure(self) -> float:
        return tails.probability(min(0.0, self._log_bound))

    @cached_property
    def _tails(self) -> tuple[float, ...]:
        if self.costs is None:
            return super()._tails
        logs = np.logaddexp(*self.costs.alone.T)
        own = [tails.probability(tails.round_up(float(log))) for log in logs]
        return (*own, *self._tails_of((*self.elsewhere, *self.refused)))

    @cached_property
    def effective(self) -> float:
        """Models that would cost the same at the union price; those elsewhere count in full."""
        own, total = len(self.own), math.fsum(self._tails[: len(self.own)])
        like = math.exp(self._log_bound - math.log(total)) * own if total > 0 else 1.0
        return min(max(1.0, like), own) + self.used - own

    @cached_property
    def remaining(self) -> int | None:
        """How many more models like those so far there may be by the bound; None where there is no limit."""
        left = self.terms.delta - self.committed
        if self.costing is None or self.costs is None or left < 0:
            return 0 if left < 0 else quotient(left, self.failure_probability / self.shown)
        spent = math.fsum(self._tails[len(self.own) :])
        mixture = _mixture(self.costing, self.costs, self.terms.delta - spent)
        linear = quotient(left, self._cost()) or 0
        return None if mixture >= MOST_MODELS else max(linear, math.floor(mixture) - len(self.own))

    @property
    def _own_tolerance(self) -> float:
        """The smallest epsilon at which the bound with the same tree and anchor is at most the own part of delta."""
        target, n = math.log(self.terms.delta * len(self.own) / self.shown), self.n
        costing, costs = self.costing, self.costs
        wrong = np.array([use.wrong for use in self.own]) if costs is None else costs.wrong
        top = first_between(lambda m: tails.round_up_sum(log_union(wrong, n, m)), target, 0, n + 1)
        if costing is None or costs is None:
            return least_epsilon(top, n)
        m = first_between(lambda m: tails.round_up_sum(costing.log_bound_at(costs, m)), target, 0, top, top * 9 // 10)
        return least_epsilon(m, n)

    def until(self, k: int) -> Budget:
        """Return the budget of the first k of `uses`."""
        return self._with(super().until(k))

    def of_first(self, k: int) -> Budget:
        """Return the budget without all but the first k of `own`."""
        return self._with(Budget(self.terms, self.own[:k], self.elsewhere, self.refused))

    def _with(self, full: Budget) -> Budget:
        """Return the same budget, whose own uses are the first of these, with their costs."""
        if len(full.own) <= FEW:
            return full
        costs = None if self.costs is None else self.costs.first(len(full.own))
        return replace(self, own=full.own, elsewhere=full.elsewhere, refused=full.refused, costs=costs)


def running_budget(
    terms: Terms,
    own: Sequence[Use],
    elsewhere: Sequence[Use] = (),
    refused: Sequence[Use] = (),
    cache: Path | None = None,
) -> Budget:
    """Return the budget of a hold-out, in well under a second for ten thousand models of which all but one are kept.

    The full `Budget` is returned for up to `FEW` models, for bounds and modes that are not made of models' own costs,
    and where the quick bound would refuse: what is refused, and that the budget is spent, is always the full analysis'
    word. That one takes minutes and a gigabyte for ten thousand models.

    Parameters
    ----------
    terms
        The hold-out's terms.
    own
        Uses of this hold-out, in the order of the record.
    elsewhere
        Uses of hold-outs that share examples with it.
    refused
        Uses of either that were refused.
    cache
        A directory in which costs are kept from run to run, see `kept_costs`; it is made if need be. None: they
        are computed anew. Where it cannot be written they are not kept, and nothing else happens.

    Returns
    -------
    Budget
        A `RunningBudget` where one serves.
    """
    own, elsewhere, refused = tuple(own), tuple(elsewhere), tuple(refused)
    full = Budget(terms, own, elsewhere, refused)
    if len(own) <= FEW or terms.epsilon is None or terms.mode == "adaptive" or full.hidden:
        return full
    if terms.bound == "union":
        return RunningBudget(terms, own, elsewhere, refused)
    if terms.bound not in _TREE_BOUNDS:
        return full
    costing = Costing(outcomes_of(own), GrowingTree(full.n, terms.epsilon).deviation, terms.delta)
    kept = Kept(cache, own, costing)
    running = RunningBudget(terms, own, elsewhere, refused, costing, kept.costs())
    return running if running.committed <= terms.delta and running.remaining != 0 else full


def _mixture(costing: Costing, costs: Costs, left: float) -> float:
    """Return how many models like those so far there may be in all, as `forecast` does, from the terms at hand."""
    others = np.arange(costs.k) != costing.anchor.model
    others[0] = False  # it had no other to be like
    each = np.exp(costs.columns()[others]).mean(axis=0)
    once = np.concatenate([np.zeros((2, 1)), np.exp(costing.anchor.logs)], axis=1)
    paid: Floats = once[0][:, None] + once[1]
    price: Floats = each[0][:, None] + each[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(paid < left, np.where(price > 0, (left - paid) / price, np.inf), 0.0)
    return 1 + float(total.max())
