"""Charging a hold-out: admission by its budget, in one step with the record, before any score is shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger, LedgerMissing, Recorded, Use, UseRefused
from pytest_dscore.holdout.planning import CouplingWarning, failure_probability, tolerance
from pytest_dscore.holdout.running import running_budget
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
        The budget does not allow them; nothing was written, and no score may be shown.
    LedgerError
        The ledger is missing, damaged, or cannot be reached.
    """
    require_begun(ledger, holdout, terms)

    admitted: list[Budget] = []

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        _refuse_richer_feedback(terms, existing)
        after = _budget(terms, holdout, [*existing, *new], cache)
        if not within(after):
            raise UseRefused(refusal(terms, _budget_if_any(terms, holdout, existing, cache), after, len(new)))
        admitted.append(after)
        own = [use for use in existing if use.holdout == holdout.digest]
        return f"{feedback_of(terms)}; {shown(own, new)}"

    if not uses:
        raise DScoreError("no use was given to charge for")
    with coupling_explained():
        recorded = ledger.record_all(uses, holdout, admit)
        found = admitted[-1] if admitted else _budget(terms, holdout, ledger.uses(holdout), cache)
    return Charged(recorded, found)


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


def within(budget: Budget) -> bool:
    """Whether uses are within the bound and within max_uses."""
    return budget.holds and (budget.terms.max_uses is None or budget.used <= budget.terms.max_uses)


def require_begun(ledger: Ledger, holdout: HoldoutIdentity, terms: Terms) -> None:
    """Raise `LedgerMissing` where the ledger does not know the hold-out, nor one that shares examples with it."""
    if not ledger.begun:
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


def refusal(terms: Terms, before: Budget | None, after: Budget, new: int) -> str:
    """Return why `new` more uses are refused.

    Parameters
    ----------
    terms
        What the project declares.
    before, after
        The budget without and with them.
    new
        How many they are.
    """
    models = "this model" if new == 1 else f"these {new} queries"
    head = f"hold-out '{terms.name}': refused, no score is shown. "
    if terms.max_uses is not None and after.used > terms.max_uses:
        used = 0 if before is None else before.used
        return f"{head}max_uses = {terms.max_uses:,}, {used:,} are used, and {models} would exceed it: {_GO_ON}"
    assert terms.epsilon is not None
    limit = f"+-{percent(terms.epsilon)} would no longer hold with probability {percent(1 - terms.delta)}"
    if before is None:
        # For error rates of 0.5: what holds for the model refused would tell its own.
        alone = failure_probability(k=1, n=after.n, epsilon=terms.epsilon, error=0.5, bound="union")
        enough = tolerance(k=new, n=after.n, delta=terms.delta, error=0.5, bound="union")
        return (
            f"{head}With {models}, the first, {limit} on {after.n:,} examples (one model alone is off by more with "
            f"probability up to {percent(alone)}): declare a larger epsilon (+-{percent_above(enough)} would do for an "
            "error rate of 50 %) or take more examples, see `dscore holdout plan`"
        )
    unlike = " (the forecast is for models like those so far)" if before.limit is None or before.limit >= new else ""
    ways = "declare a larger epsilon, " if new == 1 else "declare a larger epsilon or charge = 'clean', "
    return f"{head}With {models}, {limit}; {sentence(before, terms.name)}{unlike}: {ways}or {_GO_ON}"


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
    own = tuple(use for use in uses if use.holdout == holdout.digest)
    if not own:
        other = max(uses, key=lambda use: use.n).holdout
        own = tuple(use for use in uses if use.holdout == other)
    chosen = own[0].holdout
    return running_budget(terms, own, tuple(use for use in uses if use.holdout != chosen), cache)


def _refuse_richer_feedback(terms: Terms, existing: Sequence[Use]) -> None:
    """Refuse where earlier uses showed more than the feedback that is counted now."""
    feedback = feedback_of(terms)
    richer = [use for use in existing if feedback != "exact" and not use.verdict.startswith(f"{feedback}; ")]
    if richer:
        raise UseRefused(
            f"hold-out '{terms.name}': refused, no score is shown. {len(richer):,} of {len(existing):,} uses on record "
            f"showed other feedback than '{feedback}', so counting by it would be too low: declare feedback = 'exact', "
            f"or {_GO_ON}"
        )
