"""What is said of a budget, in the same words by the gate and by ``dscore holdout``."""

from __future__ import annotations

from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.search import format_count
from pytest_dscore.report.text import percent, percent_above


def sentence(budget: Budget, name: str) -> str:
    """Return the one sentence that says it all."""
    used = budget.used
    refused = f"; {len(budget.refused):,} of them refused" if budget.refused else ""
    head = (
        f"hold-out '{name}': {used:,} model{'s' if used != 1 else ''} used ({budget.effective:.0f} effective{refused})"
    )
    epsilon = budget.terms.epsilon
    if epsilon is None:
        return f"{head}, +-{percent_above(budget.tolerance)} still holds; no epsilon is declared to count against"
    if budget.holds:
        middle = _more(budget, epsilon)
    else:
        middle = f"+-{percent(epsilon)} no longer holds, only +-{percent_above(budget.tolerance)} does"
    end = budget.union_end
    if end is None:
        return f"{head}, {middle}; the plain union bound would have no end"
    return (
        f"{head}, {middle}; the plain union bound would {'have ended' if end < used else 'end'} at {format_count(end)}"
    )


def refused_note(budget: Budget) -> str:
    """Return what models that were refused for their own outcomes do to the next ones."""
    one = len(budget.refused) == 1
    models = "1 model was" if one else f"{len(budget.refused):,} models were"
    return (
        f"{models} refused, which tells a little of {'its' if one else 'their'} score: the next is admitted only if "
        f"{'it' if one else 'they'} would be within the budget as well, at the union price for an error rate of 50 %"
    )


def _more(budget: Budget, epsilon: float) -> str:
    """Return how many more models there may be, and what ends them: the bound, or max_uses where that comes first."""
    most, remaining = budget.terms.max_uses, budget.remaining
    if most is not None and (remaining is None or most - budget.used < remaining):
        left = most - budget.used
        return f"{left:,} more before max_uses = {most:,} is reached" if left > 0 else _all_used(budget.used, most)
    more = "any number" if remaining is None else format_count(remaining)
    alike = " at this similarity" if remaining != 0 and _by_similarity(budget) else ""
    return f"{more} more{alike} before +-{percent(epsilon)} no longer holds"


def _all_used(used: int, most: int) -> str:
    return f"no more: max_uses = {most:,} is {'reached' if used == most else 'exceeded'}"


def _by_similarity(budget: Budget) -> bool:
    """Whether the forecast goes by how alike the models are; see `Budget.remaining`."""
    # Nothing is known of a single model, of hidden scores and, in adaptive mode, of uses elsewhere and refused ones.
    unknown = len(budget.own) <= 1 or budget.hidden or (budget.adaptive and (budget.elsewhere or budget.refused))
    return not unknown and budget.terms.bound != "union"
