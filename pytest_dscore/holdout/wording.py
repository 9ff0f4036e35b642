"""What is said of a budget, in the same words by the gate and by ``dscore holdout``."""

from __future__ import annotations

from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.search import format_count
from pytest_dscore.report.text import percent, percent_above

#: The bounds that do not look at how alike the models are.
_BLIND = ("union",)


def sentence(budget: Budget, name: str) -> str:
    """Return the one sentence that says it all."""
    used = budget.used
    head = f"hold-out '{name}': {used:,} model{'s' if used != 1 else ''} used ({budget.effective:.0f} effective)"
    epsilon = budget.terms.epsilon
    if epsilon is None:
        return f"{head}, +-{percent_above(budget.tolerance)} still holds; no epsilon is declared to count against"
    if budget.holds:
        more = "any number" if budget.remaining is None else format_count(budget.remaining)
        alike = "" if budget.terms.bound in _BLIND or used == 1 else " at this similarity"
        middle = f"{more} more{alike} before +-{percent(epsilon)} no longer holds"
    else:
        middle = f"+-{percent(epsilon)} no longer holds, only +-{percent_above(budget.tolerance)} does"
    end = budget.union_end
    if end is None:
        return f"{head}, {middle}; the plain union bound would have no end"
    return (
        f"{head}, {middle}; the plain union bound would {'have ended' if end < used else 'end'} at {format_count(end)}"
    )
