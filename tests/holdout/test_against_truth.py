"""Every bound against the true event probability: exact where that can be enumerated, simulated where not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pytest_dscore.holdout import failure_probability, theorem2_probability
from tests.holdout.truth import (
    event_rate,
    naive_bayes,
    overfits,
    pair_counts,
    simulate_a1,
    simulate_star,
    single,
)

GRID = [(n, p, s, k) for n in (30, 400) for p in (0.1, 0.3, 0.5) for s in (0.86, 0.97) for k in (2, 20, 200)]


@pytest.mark.parametrize(("n", "p", "s", "k"), GRID)
def test_no_bound_is_below_a_simulated_truth(n: int, p: float, s: float, k: int) -> None:
    rng = np.random.default_rng([n, round(100 * p), round(100 * s), k])
    for simulate in (simulate_a1, simulate_star):
        counts = simulate(rng, n, p, s, k, 4_000)
        for sd in (1.5, 2.5):
            eps = round(sd * (p * (1 - p) / n) ** 0.5, 4)
            truth, error = event_rate(counts, n, np.full(k, p), eps)
            for bound in ("union", "similarity", "theorem-2", "best"):
                value = failure_probability(k=k, n=n, error=p, epsilon=eps, bound=bound, similarity=s)
                assert value >= truth - error, (bound, eps)
            if simulate is simulate_a1:  # exact, so neither below nor above
                value = failure_probability(k=k, n=n, error=p, epsilon=eps, bound="naive-bayes", similarity=s)
                assert value == pytest.approx(truth, abs=error + 1e-3)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize(("p", "s"), [("0.3", "0.8"), ("0.5", "0.5"), ("0.25", "1"), ("0.1", "0.9")])
@pytest.mark.parametrize("eps", ["0.05", "0.2", "0.25", "0.5"])
def test_two_models_against_enumeration(n: int, p: str, s: str, eps: str) -> None:
    rate, alike, tol = Fraction(p), Fraction(s), Fraction(eps)
    exact = pair_counts(n, rate, rate, alike)
    truth = sum(w for (x, y), w in exact.items() if overfits(x, n, rate, tol) or overfits(y, n, rate, tol))
    # the two tails are bounded apart: with two models and t = 0 each is exact, and so is their sum
    apart = sum(
        w
        for sign in (1, -1)
        for (x, y), w in exact.items()
        if any(sign * (Fraction(c, n) - rate) >= tol for c in (x, y))
    )
    got = failure_probability(k=2, n=n, error=float(rate), epsilon=float(tol), bound="similarity", similarity=float(s))
    assert float(truth) * (1 - 1e-12) <= got <= min(1.0, float(apart)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "p", "s", "k", "eps"),
    [
        (6, "0.3", "0.8", 3, "0.2"),
        (12, "0.25", "0.9", 40, "0.25"),
        (12, "0.25", "0.9", 900, "0.5"),
        (9, "0.5", "0.5", 7, "0.3"),
        (5, "0.4", "1", 9, "0.2"),
        (1, "0.3", "0.9", 2, "0.7"),
    ],
)
def test_naive_bayes_is_exact(n: int, p: str, s: str, k: int, eps: str) -> None:
    want = naive_bayes(n, Fraction(p), Fraction(s), k, Fraction(eps))
    got = failure_probability(k=k, n=n, error=float(p), epsilon=float(eps), bound="naive-bayes", similarity=float(s))
    assert got == pytest.approx(float(want), rel=1e-9)
    assert got >= float(want)


@pytest.mark.parametrize("n", [1, 4, 25])
@pytest.mark.parametrize("p", ["0.2", "0.5", "0.9"])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_similarity_one_is_one_model(n: int, p: str, k: int) -> None:
    want = min(1.0, float(single(n, Fraction(p), Fraction("0.1"))))
    for bound in ("similarity", "naive-bayes", "best"):
        got = failure_probability(k=k, n=n, error=float(p), epsilon=0.1, bound=bound, similarity=1.0)
        assert got == pytest.approx(want, rel=1e-9), bound


def test_similarity_is_the_least_over_every_t() -> None:
    n, k, rate, eps = 40, 30, Fraction("0.3"), Fraction("0.15")
    exact = pair_counts(n, rate, rate, Fraction("0.9"))
    total = Fraction(0)
    for sign in (1, -1):
        far = {pair: w for pair, w in exact.items() if sign * (Fraction(pair[1], n) - rate) >= eps}
        values = []
        for t in range(0, round(n * float(eps)) + 13):
            level = eps - Fraction(t, n)
            first = sum(w for (x, _), w in exact.items() if sign * (Fraction(x, n) - rate) >= level)
            rest = sum(w for (x, _), w in far.items() if sign * (Fraction(x, n) - rate) < level)
            values.append(first + (k - 1) * rest)
        total += min(values)
    got = failure_probability(k=k, n=n, error=0.3, epsilon=0.15, bound="similarity", similarity=0.9)
    assert got == pytest.approx(float(total), rel=1e-9)


def test_union_where_the_coupling_does_not_exist() -> None:
    common = {"k": 10, "n": 100, "error": 0.3, "epsilon": 0.15}
    union = failure_probability(bound="union", **common)  # type: ignore[arg-type]
    for bound in ("similarity", "naive-bayes"):
        with pytest.warns(UserWarning, match="below that of independent models"):
            assert failure_probability(bound=bound, similarity=0.5, **common) == union  # type: ignore[arg-type]
    assert failure_probability(bound="best", similarity=0.5, **common) == union  # type: ignore[arg-type]


def test_theorem_2_is_far_above_a_simulated_truth() -> None:
    rng = np.random.default_rng(5)
    counts = simulate_star(rng, 400, 0.3, 0.99, 50, 4_000)
    for eps in (0.06, 0.1, 0.15):
        truth, error = event_rate(counts, 400, np.full(50, 0.3), eps)
        assert theorem2_probability(k=50, n=400, epsilon=eps, eta=0.99) >= truth - error
