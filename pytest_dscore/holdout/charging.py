"""Charging a hold-out: admission by its budget, in one step with the record, before any score is shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.budget import Budget, parts
from pytest_dscore.holdout.ledger import REFUSED, HoldoutIdentity, Ledger, LedgerMissing, Recorded, Use, UseRefused
from pytest_dscore.holdout.planning import CouplingWarning, failure_probability
from pytest_dscore.holdout.running import RunningBudget, running_budget
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import sentence
from pytest_dscore.report.text import percent, percent_above

#: Says what is shown of new uses, given those on record.
Shown: TypeAlias = Callable[[Sequence[Use], Sequence[Use]], str]

_GO_ON = "retire it (`dscore holdout retire`) and go on with new examples"


@dataclass(frozen=True)
class Charged:
    """Uses that are on record, and the budget with them.

    Parameters
    ----------
    recorded
        One for each use asked for.
    budget
        All uses on record.
    """

    recorded: tuple[Recorded, ...]
    budget: Budget

    @property
    def new(self) -> int:
        """How many of them were charged now."""
        return sum(one.is_new for one in self.recorded)


def charge(
    ledger: Ledger, holdout: HoldoutIdentity, terms: Terms, uses: Sequence[Use], shown: Shown, cache: Path | None = None
) -> Charged:
    """Put uses of a hold-out on record, all or none; when this returns their scores may be shown.

    Parameters
    ----------
    ledger
        Where it is kept; the hold-out must be on record there (`Ledger.begin`).
    holdout
        Made from the data.
    terms
        What the project declares; `epsilon` is needed.
    uses
        Made by `Use.of`.
    shown
        Called with the uses of this hold-out on record and the new ones: returns what is shown of the new ones, which
        is put on record after the kind of feedback.
    cache
        Directory in which what many models cost is kept from run to run; None to compute it anew.

    Raises
    ------
    UseRefused
        The budget does not allow them, and no score may be shown. Where there was no room whatever their outcomes,
        nothing was written; where it was for their outcomes, they are on record as refused, and count.
    LedgerError
        The ledger is missing, damaged, or cannot be reached.
    """
    require_begun(ledger, holdout, terms)
    if not uses:
        raise DScoreError("no use was given to charge for")
    admission = _Admission(terms, holdout, uses, shown, cache)
    with coupling_explained():
        recorded = ledger.record_all(uses, holdout, admission)
        if admission.refusal:
            raise UseRefused(admission.refusal)
        found = admission.after or _budget(terms, holdout, ledger.uses(holdout), cache)
    return Charged(recorded, found)


class _Admission:
    """Decides, in one step with the record, whether uses are admitted; called by the ledger.

    What is decided before the outcomes are looked at tells nothing of them and leaves no trace. A refusal that depends
    on them tells something: whoever tries models until one is admitted gets one that was lucky. So it is put on record,
    with nothing shown, and counts from then on.
    """

    def __init__(
        self, terms: Terms, holdout: HoldoutIdentity, uses: Sequence[Use], shown: Shown, cache: Path | None
    ) -> None:
        self._terms, self._holdout, self._uses, self._shown, self._cache = terms, holdout, uses, shown, cache
        #: The budget with the uses, where they are admitted.
        self.after: Budget | None = None
        #: Why they are refused although on record; empty where they are not.
        self.refusal = ""

    def __call__(self, existing: Sequence[Use], new: Sequence[Use]) -> str:
        """Return the verdict to record, or raise `UseRefused` where nothing is to be recorded."""
        terms, self.after, self.refusal = self._terms, None, ""  # the ledger may ask again, when another was faster
        _refuse_richer_feedback(terms, existing)
        wanted = {use.key for use in new}
        earlier = [use for use in existing if use.refused and use.key in wanted]
        others = [use for use in existing if not (use.refused and use.key in wanted)]
        after = self._budget([*others, *new])
        before = self._before(after, existing, len(new), bool(earlier))
        if after.too_many:
            raise UseRefused(_too_many(terms, before, len(new)))
        if before is not None:
            self._refuse_unseen(before, earlier, self._asked(existing))
        if after.admits:
            self.after = after
            own = [use for use in existing if use.holdout == self._holdout.digest]
            return f"{feedback_of(terms)}; {self._shown(own, new)}"
        if after.hidden:  # for then it is the number of models that decides
            raise UseRefused(_refused(terms, before, after, len(new)))
        verdict = f"{REFUSED}nothing shown"
        with_them = self._budget([*existing, *(replace(use, verdict=verdict) for use in new)])
        self.refusal = _refused(terms, before, with_them, len(new))
        return verdict

    def _refuse_unseen(self, before: Budget, earlier: Sequence[Use], asked: int) -> None:
        """Raise `UseRefused` where it can be said without a look at the outcomes."""
        if earlier and not before.admits:
            raise UseRefused(_still_refused(self._terms, before, earlier))
        fresh = asked - len(earlier)
        if fresh > 0 and before.limit is not None and before.limit < fresh:
            raise UseRefused(_no_room(self._terms, before, fresh))

    def _asked(self, existing: Sequence[Use]) -> int:
        """Return how many of the uses were not shown before; those with equal outcomes count one by one."""
        shown = [use for use in existing if not use.refused and use.holdout == self._holdout.digest]
        keys, models = {use.key for use in shown}, {use.model for use in shown}
        return sum(use.key not in keys and use.model not in models for use in self._uses)

    def _budget(self, uses: Sequence[Use]) -> Budget:
        return _budget(self._terms, self._holdout, uses, self._cache)

    def _before(self, after: Budget, existing: Sequence[Use], new: int, changed: bool) -> Budget | None:
        """Return the budget without the new uses, the last of the own ones; `changed` if others were left out too."""
        if isinstance(after, RunningBudget) and not changed:  # which has the costs at hand
            return after.of_first(len(after.own) - new)
        return _budget_if_any(self._terms, self._holdout, existing, self._cache)


def budget_on_record(
    ledger: Ledger, holdout: HoldoutIdentity, terms: Terms, cache: Path | None = None
) -> Budget | None:
    """Return the budget of a hold-out as it stands; None where no use of it is on record yet.

    Raises
    ------
    UseRefused
        It was retired, or its labels changed.
    LedgerError
        The ledger is missing, damaged, or cannot be reached.
    """
    require_begun(ledger, holdout, terms)
    ledger.check(holdout)
    uses = ledger.uses(holdout)
    _refuse_richer_feedback(terms, uses)
    return _budget_if_any(terms, holdout, uses, cache)


def require_begun(ledger: Ledger, holdout: HoldoutIdentity, terms: Terms) -> None:
    """Raise `LedgerMissing` where the ledger does not know the hold-out, nor one that shares examples with it."""
    if not ledger.begun:
        ledger.holdouts()  # says more where records that were seen before are gone
        raise LedgerMissing(
            f"hold-out '{terms.name}': {ledger.where} holds no record. Where it was begun before, restore it (a "
            "checkout without it, a wrong URL or a wiped database look like this); where this is the first time, begin "
            f"it with `dscore holdout begin {terms.name}`"
        )
    if not ledger.related(holdout):
        raise LedgerMissing(
            f"hold-out '{terms.name}': {ledger.where} has no record of these {holdout.n:,} examples. Where the data "
            "changed by accident, put them back; where they are new and no model was scored on them, begin them with "
            f"`dscore holdout begin {terms.name}`"
        )


def feedback_of(terms: Terms) -> str:
    """Return what is revealed of a use: ``exact`` in non-adaptive mode, too."""
    return terms.feedback if terms.mode == "adaptive" else "exact"


def _head(terms: Terms) -> str:
    return f"hold-out '{terms.name}': refused, no score is shown. "


def _models(new: int) -> str:
    return "this model" if new == 1 else f"these {new} queries"


def _too_many(terms: Terms, before: Budget | None, new: int) -> str:
    used = 0 if before is None else before.used
    return (
        f"{_head(terms)}max_uses = {terms.max_uses:,}, {used:,} are used, and {_models(new)} would exceed it: {_GO_ON}"
    )


def _no_room(terms: Terms, before: Budget, new: int) -> str:
    """Return why uses are refused whatever their outcomes."""
    clean = "" if new == 1 else ", or charge = 'clean'"
    return (
        f"{_head(terms)}There is no room for {_models(new)}; {sentence(before, terms.name)}: "
        f"declare a larger epsilon (+-{percent_above(before.roomy_epsilon)} would do for one more){clean}, or {_GO_ON}"
    )


def _refused(terms: Terms, before: Budget | None, after: Budget, new: int) -> str:
    """Return why uses are refused for their outcomes, in words that tell nothing more of them.

    Parameters
    ----------
    terms
        What the project declares.
    before
        The budget without them; None where there was no use.
    after
        The budget with them as refused, or one in which all scores are hidden.
    new
        How many they are.
    """
    assert terms.epsilon is not None
    limit = f"+-{percent(terms.epsilon)} would no longer hold with probability {percent(1 - terms.delta)}"
    enough = f"+-{percent_above(after.roomy_epsilon)} would do"
    noted = "" if after.hidden else f" {_on_record(new)}"
    if before is None:
        # For error rates of 0.5: what holds for the model refused would tell its own.
        alone = failure_probability(k=1, n=after.n, epsilon=terms.epsilon, error=0.5, bound="union")
        return (
            f"{_head(terms)}With {_models(new)}, the first, {limit} on {after.n:,} examples (one model alone is off by "
            f"more with probability up to {percent(alone)}).{noted} Declare a larger epsilon ({enough}) or take more "
            "examples, see `dscore holdout plan`"
        )
    return (
        f"{_head(terms)}With {_models(new)}, {limit}; {sentence(before, terms.name)} (the forecast is for models like "
        f"those so far).{noted} Declare a larger epsilon ({enough}), or {_GO_ON}"
    )


def _on_record(new: int) -> str:
    return (
        f"{'It is' if new == 1 else 'They are'} on record as refused, and no other model is admitted unless "
        f"{'it' if new == 1 else 'they'} would fit as well: a refusal tells a little of a score, and whoever tries "
        "models until one is admitted gets a lucky one."
    )


def _still_refused(terms: Terms, before: Budget, earlier: Sequence[Use]) -> str:
    queries = "this model was" if len(earlier) == 1 else f"{len(earlier)} of these queries were"
    return (
        f"{_head(terms)}On {earlier[0].when[:10]} {queries} refused; {sentence(before, terms.name)}: declare a larger "
        f"epsilon (+-{percent_above(before.roomy_epsilon)} would do) or {_GO_ON}"
    )


@contextmanager
def coupling_explained() -> Iterator[None]:
    """Keep `CouplingWarning` from becoming an error: the analysis says the same in its note."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CouplingWarning)
        yield


def _budget_if_any(terms: Terms, holdout: HoldoutIdentity, uses: Sequence[Use], cache: Path | None) -> Budget | None:
    return _budget(terms, holdout, uses, cache) if uses else None


def _budget(terms: Terms, holdout: HoldoutIdentity, uses: Sequence[Use], cache: Path | None) -> Budget:
    """Return the budget of these uses, at least one.

    Where all were of other hold-outs that share examples with this one, the largest of them stands for it.
    """
    own, elsewhere, refused = parts(uses, holdout.digest)
    if not own and elsewhere and not any(use.holdout == holdout.digest for use in refused):
        own, elsewhere, refused = parts(uses, max(elsewhere, key=lambda use: use.n).holdout)
    return running_budget(terms, own, elsewhere, refused, cache)


def _refuse_richer_feedback(terms: Terms, existing: Sequence[Use]) -> None:
    """Refuse where earlier uses showed more than the feedback that is counted now."""
    feedback = feedback_of(terms)
    poorer = (f"{feedback}; ", REFUSED)
    richer = [use for use in existing if feedback != "exact" and not use.verdict.startswith(poorer)]
    if richer:
        raise UseRefused(
            f"hold-out '{terms.name}': refused, no score is shown. {len(richer):,} of {len(existing):,} uses on record "
            f"showed other feedback than '{feedback}', so counting by it would be too low: declare feedback = 'exact', "
            f"or {_GO_ON}"
        )
