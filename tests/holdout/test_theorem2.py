"""Theorem 2, Lemma 4 and Corollary 5: the algebra of the proof, and exact probabilities behind it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import (
    corollary5_epsilon,
    corollary5_eta,
    failure_probability,
    theorem2_deviation,
    theorem2_epsilon,
    theorem2_largest_eta,
    theorem2_probability,
    theorem2_required_eta,
)


def right_hand_side(k: float, n: int, eps: float, eta: float, cover: float) -> float:
    """(4), written out."""
    return 2 * cover * math.exp(-n * eps**2 / 2) + 2 * k * math.exp(-n * eps / 4 * math.log(1 + eps / (4 * (1 - eta))))


@pytest.mark.parametrize(("p1", "p_1"), [(0.1, 0.0), (0.1, 0.1), (0.05, 0.02), (0.3, 0.2), (0.01, 0.01), (0.5, 0.5)])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_lemma_4_holds_for_exact_probabilities(p1: float, p_1: float, n: int) -> None:
    law = np.array([1.0])
    for _ in range(n):
        law = np.convolve(law, [p_1, 1 - p1 - p_1, p1])
    mean = np.arange(-n, n + 1) / n
    for t in (0.0, 0.01, 0.05, 0.2, 0.5, 0.9):
        if p1 - p_1 + t / 2 >= 0:
            truth = law[mean > p1 - p_1 + t + 1e-12].sum()
            assert truth <= math.exp(-n * t / 2 * math.log(1 + t / (2 * p1))) + 1e-12


def test_equation_4() -> None:
    got = theorem2_probability(k=1000, n=20_000, epsilon=0.05, eta=0.999, cover_size=3)
    assert got == pytest.approx(right_hand_side(1000, 20_000, 0.05, 0.999, 3), rel=1e-9)
    assert got == failure_probability(k=1000, n=20_000, epsilon=0.05, similarity=0.999, cover_size=3, bound="theorem-2")
    assert theorem2_probability(k=1000, n=10, epsilon=0.05, eta=0.5) == 1.0
    # at eta = 1 only the cover is left
    assert theorem2_probability(k=10**300, n=20_000, epsilon=0.05, eta=1) == pytest.approx(2 * math.exp(-25), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "delta", "cover"), [(100, 5_000, 0.05, 1), (10**6, 50_000, 0.01, 40), (5, 400, 0.3, 2)]
)
def test_equation_5_brings_4_down_to_delta(k: int, n: int, delta: float, cover: int) -> None:
    largest = theorem2_largest_eta(k=k, n=n, delta=delta, cover_size=cover)
    for eta in np.linspace(0, largest, 7):
        deviation = theorem2_deviation(k=k, n=n, delta=delta, eta=float(eta), cover_size=cover)
        assert right_hand_side(k, n, deviation, float(eta), cover) <= delta * (1 + 1e-9)
    with pytest.raises(DScoreError, match=r"holds for eta up to 0\.\d+ here"):
        theorem2_deviation(k=k, n=n, delta=delta, eta=min(1.0, largest + 1e-3), cover_size=cover)


@pytest.mark.parametrize(
    ("k", "n", "delta", "cover"), [(100, 5_000, 0.05, 1), (10**6, 50_000, 0.01, 40), (5, 400, 0.3, 2)]
)
def test_equations_6_and_7_bring_4_down_to_delta_exactly(k: int, n: int, delta: float, cover: int) -> None:
    eps = theorem2_epsilon(n=n, delta=delta, cover_size=cover)
    eta = theorem2_required_eta(k=k, n=n, epsilon=eps)
    assert right_hand_side(k, n, eps, eta, cover) == pytest.approx(delta, rel=1e-9)


def test_the_factor_two_of_equation_6_is_needed() -> None:
    k, n, delta, cover = 100, 5_000, 0.05, 1
    printed = math.sqrt(math.log((2 * cover + 1) / delta) / n)
    eta = theorem2_required_eta(k=k, n=n, epsilon=printed)
    bound = right_hand_side(k, n, printed, eta, cover)
    assert bound == pytest.approx(math.sqrt((2 * cover + 1) * delta), rel=1e-9)  # 0.39, not 0.05
    assert bound > delta
    assert theorem2_epsilon(n=n, delta=delta, cover_size=cover) == pytest.approx(math.sqrt(2) * printed)


@pytest.mark.parametrize(
    ("k", "n", "delta", "alpha"), list(itertools.product([1, 2, 30], [10, 1000], [0.05, 0.5], [0, 0.5, 1]))
)
def test_corollary_5_brings_4_down_to_delta(k: int, n: int, delta: float, alpha: float) -> None:
    eps = corollary5_epsilon(k=k, n=n, delta=delta, alpha=alpha)
    eta = corollary5_eta(k=k, n=n, delta=delta, alpha=alpha)
    growth = math.log1p(eps / (4 * (1 - eta))) if eta < 1 else math.inf
    assert growth >= eps * k**alpha * (1 - 1e-9)
    cover = math.log(2) + k ** (1 - alpha) * math.log(n + 1) - n * eps**2 / 2
    rest = math.log(2) + (k - 1) * math.log(n + 1) - n * eps / 4 * growth
    assert math.exp(cover) + math.exp(rest) <= delta


def test_corollary_5_at_alpha_0_is_the_square_root_of_k() -> None:
    got = corollary5_epsilon(k=10, n=1000, delta=0.05)
    assert got == pytest.approx(math.sqrt(4 * (10 * math.log(1001) + math.log(40)) / 1000))
    assert corollary5_epsilon(k=10, n=1000, delta=0.05, alpha=0.5) < got


def test_huge_arguments_do_not_overflow() -> None:
    assert theorem2_required_eta(k=10**300, n=10, epsilon=0.01) == pytest.approx(1.0)
    assert corollary5_eta(k=10**9, n=10, delta=0.05, alpha=1.0) == pytest.approx(1.0)
