"""What ends a budget, in the sentence that the gate and the command share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.ledger import HoldoutIdentity, Use
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import sentence

N = 400
HARD = np.random.default_rng(0).random(N) < 0.2
HOLDOUT = HoldoutIdentity.of(np.arange(N), np.arange(N) % 3, name="h")
TERMS = Terms("h", epsilon=0.09, known=True)


def uses(models: int, verdict: str = "exact; accuracy shown") -> tuple[Use, ...]:
    """Models that are wrong on much the same examples."""
    rng = np.random.default_rng(1)
    rows = HARD ^ (rng.random((models, N)) < 0.02)
    return tuple(replace(Use.of(HOLDOUT, row, model=str(i)), verdict=verdict) for i, row in enumerate(rows))


def more(models: int, **terms: Any) -> str:
    """What the sentence says of the models to come."""
    said = sentence(Budget(replace(TERMS, **terms), uses(models)), "h")
    assert said.startswith(f"hold-out 'h': {models} models used (")
    return said.partition("), ")[2].partition("; ")[0]


def test_the_bound_ends_it_first() -> None:
    for most in (None, 10**6):
        assert more(6, epsilon=0.07, max_uses=most).endswith(" more at this similarity before +-7 % no longer holds")


@pytest.mark.parametrize(
    ("used", "said"), [(4, "2 more before max_uses = 6 is reached"), (5, "1 more before max_uses")]
)
def test_max_uses_ends_it_first(used: int, said: str) -> None:
    assert more(used, max_uses=6).startswith(said)


@pytest.mark.parametrize(("used", "said"), [(6, "reached"), (7, "exceeded")])
def test_max_uses_has_ended_it(used: int, said: str) -> None:
    assert more(used, max_uses=6) == f"no more: max_uses = 6 is {said}"


def test_max_uses_ends_what_has_no_other_end() -> None:
    assert more(4, max_uses=6, epsilon=0.95) == "2 more before max_uses = 6 is reached"
    assert more(4, epsilon=0.95).startswith("any number more at this similarity before +-95 %")


def test_it_is_the_bound_where_both_end_at_once() -> None:
    left = Budget(replace(TERMS, epsilon=0.07), uses(6)).remaining
    assert left
    assert f"{left:,} more at this similarity before +-7 %" in more(6, epsilon=0.07, max_uses=6 + left)
    assert more(6, epsilon=0.07, max_uses=5 + left) == f"{left - 1:,} more before max_uses = {5 + left:,} is reached"


@pytest.mark.parametrize(
    ("terms", "verdict"),
    [
        ({"bound": "union"}, "exact; x"),
        ({"mode": "adaptive", "feedback": "pass-fail"}, "pass-fail; x"),
        ({"mode": "adaptive", "feedback": "ladder", "epsilon": 0.3}, "ladder; x"),
        ({}, "pass-fail; x"),
    ],
)
def test_similarity_is_not_spoken_of_where_it_plays_no_part(terms: dict[str, Any], verdict: str) -> None:
    said = sentence(Budget(replace(TERMS, **terms), uses(3, verdict)), "h")
    assert "at this similarity" not in said
    assert " more before +-" in said


def test_nor_after_a_single_model_of_its_own() -> None:
    part = HoldoutIdentity.of(np.arange(N // 2), np.arange(N // 2) % 3)
    elsewhere = Use.of(part, HARD[: N // 2], model="other")
    assert "at this similarity" not in sentence(Budget(TERMS, uses(1), (elsewhere,)), "h")
    assert "at this similarity" in sentence(Budget(TERMS, uses(2), (elsewhere,)), "h")
