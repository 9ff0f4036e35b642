"""How a hold-out's budget burnt down, use by use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.running import running_budget

#: So many states are computed along the way; fewer of many models.
POINTS, FEWER_POINTS, MANY_MODELS = 24, 10, 200


@dataclass(frozen=True)
class Burning:
    """The state of a hold-out after some of its uses; every list has an entry for each of `used`.

    Parameters
    ----------
    title
        Name and size of the hold-out.
    used
        Models used.
    left, union_left
        Share of delta that is left, by the hold-out's bound and by the plain union bound, in [0, 1]; empty where no
        epsilon is declared.
    guaranteed, union_guaranteed
        Epsilon that still held, by the two bounds.
    epsilon
        As declared; None if not.
    bound
        The hold-out's bound.
    """

    title: str
    used: tuple[int, ...]
    left: tuple[float, ...]
    union_left: tuple[float, ...]
    guaranteed: tuple[float, ...]
    union_guaranteed: tuple[float, ...]
    epsilon: float | None
    bound: str


def burn_down(budget: Budget, points: int | None = None) -> Burning:
    """Return the state after up to `points` numbers of uses, the first and the last among them.

    Uses of other hold-outs that share examples come last, and after them those refused, whenever they were.
    """
    uses = budget.uses
    points = points or (POINTS if len(uses) <= MANY_MODELS else FEWER_POINTS)
    counts = np.unique(np.linspace(1, len(uses), min(points, len(uses))).round().astype(int)).tolist()

    plain_budget = running_budget(replace(budget.terms, bound="union"), budget.own, budget.elsewhere, budget.refused)
    own, plain = ([one.until(k) for k in counts] for one in (budget, plain_budget))
    known = budget.terms.epsilon is not None

    def left(state: Budget) -> float:
        return max(0.0, 1 - state.committed / state.terms.delta)

    return Burning(
        title=f"hold-out '{budget.terms.name}', {budget.n:,} examples",
        used=tuple(counts),
        left=tuple(left(state) for state in own) if known else (),
        union_left=tuple(left(state) for state in plain) if known else (),
        guaranteed=tuple(state.tolerance for state in own),
        union_guaranteed=tuple(state.tolerance for state in plain),
        epsilon=budget.terms.epsilon,
        bound=budget.terms.bound,
    )
