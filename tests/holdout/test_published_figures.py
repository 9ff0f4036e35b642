"""The figures of the paper and of its recomputation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

from pytest_dscore.holdout import failure_probability, max_models, required_examples, tails, tolerance

N, P, EPS, DELTA = 50_000, 0.244, 0.01, 0.05


def budget(bound: str, **more: float) -> int:
    return max_models(n=N, error=P, epsilon=EPS, delta=DELTA, bound=bound, **more)  # type: ignore[arg-type]


def test_union_with_both_tails_closed() -> None:
    assert budget("union") == 251_165
    # the same by scipy's distribution, boundaries written out
    tail = stats.binom.sf(12_699, N, P) + stats.binom.cdf(11_700, N, P)
    assert math.floor(DELTA / tail) == 251_165


def test_the_paper_s_figure_is_that_of_the_open_lower_tail() -> None:
    upper = float(tails.log_upper(12_700, N, P, 1 - P))
    open_lower = float(tails.log_lower(11_699, N, P, 1 - P))  # n (p - eps) is 11,700 exactly
    assert math.floor(DELTA / (math.exp(upper) + math.exp(open_lower))) == 257_397
    assert math.floor(DELTA / (stats.binom.sf(12_699, N, P) + stats.binom.cdf(11_699, N, P))) == 257_397


def test_similarity_gives_about_four_times_the_union_budget() -> None:
    k = budget("similarity", similarity=0.85)
    assert k == pytest.approx(1.062e6, rel=1e-3)
    assert k / 251_165 == pytest.approx(4.23, abs=0.005)


def test_naive_bayes_gives_about_a_hundred_million() -> None:
    assert budget("naive-bayes", similarity=0.85) == pytest.approx(1.29e8, rel=2e-3)


def test_naive_bayes_by_a_plain_sum() -> None:
    k, n = 10**8, N
    p11 = P - 0.15 / 2
    shared, own = P * P / p11, p11 / P
    total = 0.0
    for j in range(math.floor(n * shared) - 900, math.floor(n * shared) + 900):
        tail = stats.binom.sf(12_699, j, own) + stats.binom.cdf(11_700, j, own)
        total += stats.binom.pmf(j, n, shared) * -math.expm1(k * math.log1p(-tail))
    got = failure_probability(k=k, n=n, error=P, epsilon=EPS, bound="naive-bayes", similarity=0.85)
    assert got == pytest.approx(total, rel=1e-8)


def test_best_is_similarity_here() -> None:
    assert budget("best", similarity=0.85) == budget("similarity", similarity=0.85)
    assert budget("best") == budget("union")


@pytest.mark.parametrize("bound", ["union", "similarity", "naive-bayes", "best"])
def test_a_budget_is_the_last_that_holds(bound: str) -> None:
    k = budget(bound, similarity=0.85)

    def at(models: int) -> float:
        return failure_probability(k=models, n=N, error=P, epsilon=EPS, bound=bound, similarity=0.85)

    assert at(k) <= DELTA < at(k + 1)


@pytest.mark.parametrize("bound", ["union", "similarity", "naive-bayes", "theorem-2", "best"])
def test_the_four_questions_agree(bound: str) -> None:
    common = {"k": 300, "error": 0.1, "bound": bound, "similarity": 0.95}
    eps = tolerance(n=4_000, delta=0.05, **common)  # type: ignore[arg-type]
    assert failure_probability(n=4_000, epsilon=eps, **common) <= 0.05  # type: ignore[arg-type]
    assert failure_probability(n=4_000, epsilon=eps - 1.1e-12, **common) > 0.05  # type: ignore[arg-type]
    n = required_examples(epsilon=0.04, delta=0.05, **common)  # type: ignore[arg-type]
    assert failure_probability(n=n, epsilon=0.04, **common) <= 0.05  # type: ignore[arg-type]
    assert failure_probability(n=n - 1, epsilon=0.04, **common) > 0.05  # type: ignore[arg-type]


def test_required_examples_holds_for_every_greater_number() -> None:
    common = {"k": 20, "error": 0.13, "epsilon": 0.05, "bound": "union"}
    n = required_examples(delta=0.05, **common)  # type: ignore[arg-type]
    worse = [m for m in range(n, n + 400) if failure_probability(n=m, **common) > 0.05]  # type: ignore[arg-type]
    assert worse == []


@pytest.mark.parametrize("n", [1, 2, 10**7])
@pytest.mark.parametrize("error", [0.0, 1.0])
def test_models_that_never_or_always_fail_cannot_overfit(n: int, error: float) -> None:
    for bound in ("union", "similarity", "naive-bayes", "best"):
        common = {"n": n, "error": error, "epsilon": 0.01, "bound": bound, "similarity": 1.0}
        assert failure_probability(k=10**9, **common) == 0.0  # type: ignore[arg-type]
        assert max_models(delta=0.05, **common) == 10**300  # type: ignore[arg-type]


def test_one_example() -> None:
    # one example and error rate 0.3: the error is off by 0.3 or by 0.7
    for eps, want in ((0.2, 1.0), (0.3, 1.0), (0.31, 0.3), (0.7, 0.3), (0.71, 0.0)):
        got = failure_probability(k=1, n=1, error=0.3, epsilon=eps, bound="union")
        assert got == pytest.approx(want, rel=1e-10)


def test_epsilon_above_the_error_rate_leaves_one_tail() -> None:
    want = sum(math.comb(30, x) * Fraction(1, 10) ** x * Fraction(9, 10) ** (30 - x) for x in range(9, 31))
    got = failure_probability(k=1, n=30, error=0.1, epsilon=0.2, bound="union")
    assert got == pytest.approx(float(want), rel=1e-10)


def test_budgets_of_three_hundred_digits() -> None:
    k = max_models(n=2 * 10**6, error=0.244, epsilon=0.0102, delta=0.05, bound="union")
    assert len(str(k)) > 200
    assert failure_probability(k=k, n=2 * 10**6, error=0.244, epsilon=0.0102, bound="union") <= 0.05
    assert failure_probability(k=k + k // 10**9, n=2 * 10**6, error=0.244, epsilon=0.0102, bound="union") > 0.05


def test_similarity_keeps_gaining_when_budgets_are_huge() -> None:
    common = {"n": 10**7, "error": 0.244, "epsilon": 0.003, "delta": 0.05, "similarity": 0.85}
    union, similar = (max_models(bound=b, **common) for b in ("union", "similarity"))  # type: ignore[arg-type]
    assert similar > union * 10**40


@pytest.mark.parametrize("bound", ["union", "similarity", "naive-bayes", "theorem-2", "best"])
@pytest.mark.parametrize("feedback", ["exact", "pass-fail", "ladder"])
@pytest.mark.parametrize("similarity", [0.9, 1.0])
def test_numbers_of_rounds_without_end(bound: str, feedback: str, similarity: float) -> None:
    common = {"n": 1_000, "epsilon": 0.05, "bound": bound, "similarity": similarity, "error": 0.2}
    at = [
        failure_probability(k=k, mode="adaptive", feedback=feedback, **common)  # type: ignore[arg-type]
        for k in (2, 40, 10**6, 10**300, 10**308)
    ]
    assert at == sorted(at)
    assert 0.0 < at[0] <= at[-1] <= 1.0
    assert at[-1] == 1.0 or similarity == 1.0
