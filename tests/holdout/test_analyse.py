"""`analyse` as a user calls it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from pytest_dscore.holdout import analyse, failure_probability, pack, theorem2_probability, tolerance
from tests.holdout.truth import imagenet, matrices, single

EXACT = ("union", "similarity", "empirical", "best")


@pytest.mark.parametrize("estimate", ["plug-in", "lower-confidence"])
def test_never_looser_than_union_and_tolerance_is_the_first_that_holds(estimate: str) -> None:
    for matrix in matrices(np.random.default_rng(3)):
        common = {"delta": 0.1, "similarity_estimate": estimate}
        union = analyse(matrix, epsilon=0.15, bound="union", **common)  # type: ignore[arg-type]
        for bound in EXACT:
            result = analyse(matrix, epsilon=0.15, bound=bound, **common)  # type: ignore[arg-type]
            assert result.failure_probability <= union.failure_probability
            assert result.tolerance <= result.union_tolerance == union.tolerance
            if result.tolerance < 1:
                at = analyse(matrix, epsilon=result.tolerance, bound=bound, **common)  # type: ignore[arg-type]
                assert at.failure_probability <= 0.1
                assert at.holds
            if result.tolerance > 2e-12:
                eps = result.tolerance - 1.1e-12
                below = analyse(matrix, epsilon=eps, bound=bound, **common)  # type: ignore[arg-type]
                assert below.failure_probability > 0.1


def test_one_model_is_its_two_tails() -> None:
    matrix = np.arange(25)[None, :] < 8
    want = float(single(25, Fraction(8, 25), Fraction("0.15")))
    for bound in (*EXACT, "naive-bayes"):
        got = analyse(matrix, epsilon=0.15, delta=0.05, bound=bound).failure_probability
        assert got == pytest.approx(want, rel=1e-9), bound


def test_copies_of_one_model_cost_nothing_beyond_the_first() -> None:
    row = np.arange(25) < 8
    one = analyse(row[None], epsilon=0.15, delta=0.05).failure_probability
    many = analyse(np.stack([row] * 9), epsilon=0.15, delta=0.05)
    assert many.failure_probability == pytest.approx(one, rel=1e-9)
    assert many.method == "anchor"


def test_equal_models_give_the_planning_figures() -> None:
    # three models of the same error rate, every pair alike on 26 of 30 examples
    matrix = np.zeros((3, 30), dtype=bool)
    matrix[:, :10] = True
    for i in range(3):
        matrix[i, [2 * i, 2 * i + 1]] = False
        matrix[i, [20 + 2 * i, 21 + 2 * i]] = True
    alike = Fraction(22, 30)
    result = analyse(matrix, epsilon=0.2, delta=0.05, bound="union")
    assert (result.k, result.n) == (3, 30)
    np.testing.assert_allclose(result.errors, 1 / 3)
    np.testing.assert_allclose(result.similarity[0, 1], float(alike))
    common = {"k": 3, "n": 30, "error": Fraction(1, 3)}
    assert result.failure_probability == failure_probability(bound="union", epsilon=0.2, **common)  # type: ignore[arg-type]
    assert result.tolerance == tolerance(bound="union", delta=0.05, **common)  # type: ignore[arg-type]
    similar = analyse(matrix, epsilon=0.2, delta=0.05, bound="similarity").failure_probability
    want = failure_probability(bound="similarity", epsilon=0.2, similarity=alike, **common)  # type: ignore[arg-type]
    assert want <= similar <= want * 1.05  # t is chosen by a normal approximation here, exactly there
    bayes = analyse(matrix, epsilon=0.2, delta=0.05, bound="naive-bayes")
    want = failure_probability(bound="naive-bayes", epsilon=0.2, similarity=alike, **common)  # type: ignore[arg-type]
    assert bayes.failure_probability == pytest.approx(want, rel=1e-9)
    assert "assumption" in bayes.note
    closed = analyse(matrix, epsilon=0.9, delta=0.05, bound="theorem-2").failure_probability
    assert closed == min(
        theorem2_probability(k=3, n=30, epsilon=0.9, eta=eta, cover_size=size)
        for eta, size in ((float(alike), 1), (1.0, 3))
    )


def test_adaptive_use_counts_what_could_have_been_asked() -> None:
    matrix = np.random.default_rng(0).random((6, 400)) < 0.2
    fixed = analyse(matrix, epsilon=0.1, delta=0.05, bound="union")
    adaptive = analyse(matrix, epsilon=0.1, delta=0.05, bound="union", mode="adaptive", feedback="pass-fail")
    worst = Fraction(int(matrix.sum(axis=1).max()), 400)
    want = failure_probability(k=63, n=400, error=worst, epsilon=0.1, bound="union")
    assert adaptive.failure_probability == pytest.approx(want, rel=1e-9)
    assert adaptive.failure_probability > fixed.failure_probability
    assert adaptive.tolerance > fixed.tolerance
    assert "Adaptive" in adaptive.mode_statement
    assert "could have been asked" in adaptive.note
    assert "Non-adaptive" in fixed.mode_statement


def test_results_are_frozen_and_packed_outcomes_are_taken() -> None:
    matrix = np.random.default_rng(1).random((3, 33)) < 0.2
    result = analyse(pack(matrix), epsilon=0.2, delta=0.05)
    assert result.failure_probability == analyse(matrix.astype(float), epsilon=0.2, delta=0.05).failure_probability
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.delta = 0.5  # type: ignore[misc]


def test_models_that_never_fail_need_no_tolerance() -> None:
    result = analyse(np.zeros((4, 20), dtype=bool), epsilon=0.2, delta=0.05)
    assert result.failure_probability == 0.0
    assert result.tolerance == 1e-12


def test_too_few_examples_promise_nothing() -> None:
    matrix = np.array([[True, False]] * 40)
    assert analyse(matrix, epsilon=0.2, delta=0.01, bound="theorem-2").tolerance == 1.0
    assert analyse(matrix, epsilon=0.2, delta=0.01, similarity_estimate="lower-confidence").tolerance == 1.0


def test_the_real_matrix() -> None:
    everything = imagenet(without=None)
    whole = analyse(everything, epsilon=0.01, delta=0.05, bound="union")
    upper = np.triu_indices(67, 1)
    assert 1 - whole.errors.mean() == pytest.approx(0.7344, abs=5e-5)
    assert whole.similarity[upper].mean() == pytest.approx(0.8241, abs=5e-5)
    p = whole.errors
    independent = (p[:, None] * p + np.outer(1 - p, 1 - p))[upper].mean()
    assert independent == pytest.approx(0.6095, abs=5e-5)
    assert everything.all(axis=0).mean() == pytest.approx(0.0477, abs=5e-5)

    result = analyse(imagenet(), epsilon=0.01, delta=0.05)
    assert result.similarity[np.triu_indices(66, 1)].mean() == pytest.approx(0.834, abs=5e-4)
    assert result.method == "spanning-tree"
    assert result.failure_probability == pytest.approx(3.7138e-5, rel=1e-3)
    assert result.union_tolerance == pytest.approx(0.00654, abs=1e-9)
    assert result.tolerance == pytest.approx(0.00646, abs=1e-9)
    assert result.effective_models == pytest.approx(29.7, rel=0.02)


def test_the_real_matrix_against_test_sets_drawn_from_it() -> None:
    matrix = imagenet()
    result = analyse(matrix, epsilon=0.006, delta=0.05)
    rng = np.random.default_rng(0)
    factor = matrix.astype(np.float32)
    draws = rng.poisson(1.0, size=(150, 50_000)).astype(np.float32)
    draws /= draws.mean(axis=1, keepdims=True)
    off = np.abs(draws @ factor.T / 50_000 - matrix.mean(axis=1)).max(axis=1)
    truth = float((off >= 0.006).mean())
    assert result.failure_probability >= truth - 3 * (truth / 150) ** 0.5
    assert np.quantile(off, 0.95) <= result.tolerance
