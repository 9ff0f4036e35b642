"""Adaptive use: the counts against trees that are grown node by node; the Ladder."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import Ladder, evaluate, max_models, suggested_step
from pytest_dscore.holdout.checks import Feedback
from pytest_dscore.holdout.queries import Queries, count_queries, ladder_values


def total(k: int, n: int, feedback: Feedback, step: float = 0.3) -> float:
    return math.exp(count_queries(k, n, "adaptive", feedback, step).log)


def nodes(k: int, n: int, step: Fraction) -> int:
    """Number of different histories a Ladder can have shown before one of k rounds, by trying all score sequences."""
    seen = set()
    for scores in itertools.product(range(n + 1), repeat=k - 1):
        ladder = Ladder(n, step)
        shown: list[float] = []
        seen.add(tuple(shown))
        for score in scores:
            shown.append(ladder.submit_count(score).error)
            seen.add(tuple(shown))
    return len(seen)


@pytest.mark.parametrize(
    ("k", "n", "step"), [(1, 6, "0.3"), (3, 6, "0.3"), (4, 6, "0.3"), (4, 5, "0.5"), (5, 5, "0.25")]
)
def test_the_ladder_s_tree_is_never_larger_than_counted(k: int, n: int, step: str) -> None:
    m = ladder_values(Fraction(step))
    counted = sum(math.comb(t, i) * math.comb(m, i) for t in range(k) for i in range(t + 1))  # subsets x falling values
    assert total(k, n, "ladder", float(step)) == pytest.approx(counted if k > 1 else 1, rel=1e-9)
    assert nodes(k, n, Fraction(step)) <= counted


def test_exact_feedback_covers_every_question_that_can_follow_an_answer_that_does_not_overfit() -> None:
    n = 6
    for k in range(1, 6):
        assert sum(n**i for i in range(k)) <= total(k, n, "exact") * (1 + 1e-12)
        assert total(k, n, "exact") == pytest.approx((n + 1) ** (k - 1))


def test_pass_fail_covers_all_nodes_of_a_binary_tree() -> None:
    for k in (1, 2, 5, 40):
        assert total(k, 10, "pass-fail") == pytest.approx(sum(2**i for i in range(k)))
    assert count_queries(5_000, 10, "adaptive", "pass-fail").log == pytest.approx(5_000 * math.log(2))


def test_counts_stay_finite_where_numbers_do_not() -> None:
    for k in (10**6, 10**12, 10**300):
        for feedback in ("exact", "ladder", "pass-fail"):
            queries = count_queries(k, 10**7, "adaptive", feedback, 1e-6)
            assert 0 < queries.log_rest <= queries.log < math.inf
    assert Queries.of(10**400).log == pytest.approx(400 * math.log(10))
    # log-gamma branch against a sum of logs
    want = math.fsum(math.log(5_000 + 10_001 - i) - math.log(i + 1) for i in range(5_000 - 1))
    got = count_queries(5_000, 10, "adaptive", "ladder", 1e-4).log
    assert got == pytest.approx(want, rel=1e-9)
    assert got >= want - 1e-9


def test_what_is_shown_decides_how_many_rounds_there_are() -> None:
    common = {"n": 50_000, "error": 0.244, "epsilon": 0.02, "delta": 0.05, "bound": "union", "mode": "adaptive"}
    exact = max_models(feedback="exact", **common)  # type: ignore[arg-type]
    ladder = max_models(feedback="ladder", ladder_step=0.05, **common)  # type: ignore[arg-type]
    bit = max_models(feedback="pass-fail", **common)  # type: ignore[arg-type]
    fixed = max_models(**{**common, "mode": "non-adaptive"})  # type: ignore[arg-type]
    assert exact < min(ladder, bit)
    # the last round at which the tree is no larger than the number of models fixed in advance
    assert (exact, bit) == (1 + int(math.log(fixed, 50_001)), int(math.log2(fixed + 1)))
    assert math.comb(ladder + 21, 22) <= fixed < math.comb(ladder + 22, 22)


def test_the_mode_is_said_in_words() -> None:
    common = {"k": 3, "n": 100, "error": 0.2, "epsilon": 0.1, "bound": "union"}
    assert "fixed before anyone saw a result" in evaluate(**common).mode_statement  # type: ignore[arg-type]
    said = evaluate(mode="adaptive", feedback="pass-fail", **common).mode_statement  # type: ignore[arg-type]
    assert "only whether each model passed" in said


def test_a_ladder_by_hand() -> None:
    ladder = Ladder(100, 0.1)
    assert ladder.best == math.inf
    answers = [ladder.submit_count(wrong) for wrong in (34, 25, 20, 19, 5, 0, 40)]
    # 34 -> 0.3; 25 and 20 are not below 0.2; 19 is -> 0.2; 5 -> 0.05, a tie, shown as 0.1; 0 is not below 0
    assert [a.error for a in answers] == [0.3, 0.3, 0.3, 0.2, 0.1, 0.1, 0.1]
    assert [a.improved for a in answers] == [True, False, False, True, True, False, False]
    assert [a.round for a in answers] == [1, 2, 3, 4, 5, 6, 7]
    assert ladder.rounds == 7


def test_a_ladder_takes_outcome_vectors() -> None:
    wrong = np.zeros(50, dtype=bool)
    wrong[:20] = True
    assert Ladder(50, 0.1).submit(wrong).error == 0.4
    with pytest.raises(DScoreError, match="one outcome for each of the 50 examples"):
        Ladder(50, 0.1).submit(wrong[:49])
    with pytest.raises(DScoreError, match="wrong must lie between 0 and 50"):
        Ladder(50, 0.1).submit_count(51)


def test_the_best_error_shown_by_a_ladder_is_about_right_whatever_an_analyst_does() -> None:
    # an analyst who keeps every coin flip that helped, and votes with them: exact scores would mislead him
    rng = np.random.default_rng(3)
    n, rounds = 1_000, 300
    labels = rng.random(n) < 0.5
    step = suggested_step(rounds, n)
    ladder, kept = Ladder(n, step), []
    for _ in range(rounds):
        guess = rng.random(n) < 0.5
        if ladder.submit(guess != labels).improved:
            kept.append(guess)
    vote = np.mean(kept, axis=0) > 0.5
    assert ladder.submit(vote != labels).error >= 0.5 - step
    exact = [g for g in (rng.random((rounds, n)) < 0.5) if (g != labels).mean() < 0.5]
    assert ((np.mean(exact, axis=0) > 0.5) != labels).mean() < 0.45  # true error of every one of them: 0.5
