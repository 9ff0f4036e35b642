"""Binomial tails against exact fractions, to the last digits that doubles have."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dscore.holdout import tails
from tests.holdout.truth import binomial


def log_of(value: Fraction) -> float:
    """Natural log of a fraction of any size."""
    if value == 0:
        return -math.inf
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log(value / Fraction(2) ** shift) + shift * math.log(2)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 151])
@pytest.mark.parametrize("p", ["0", "0.001", "0.244", "0.5", "0.97", "1"])
def test_tails_and_probabilities_are_those_of_exact_fractions(n: int, p: str) -> None:
    rate = Fraction(p)
    exact = binomial(n, rate)
    x = np.arange(-1, n + 2)
    upper = tails.log_upper(x, n, float(rate), float(1 - rate))
    lower = tails.log_lower(x, n, float(rate), float(1 - rate))
    single = tails.log_pmf(x, n, float(rate), float(1 - rate))
    for i, count in enumerate(range(-1, n + 2)):
        inside = exact[count] if 0 <= count <= n else Fraction(0)
        for got, want in (
            (upper[i], sum(exact[max(count, 0) :], Fraction(0))),
            (lower[i], sum(exact[: max(count + 1, 0)], Fraction(0))),
            (single[i], inside),
        ):
            assert got == pytest.approx(log_of(want), rel=1e-12, abs=1e-12)


def exact_log_tail(a: int, n: int, p: Fraction) -> float:
    """``log P(Bin(n, p) >= a)`` far in the tail: log of the first probability, and the sum of the ratios after it."""
    log = log_of(Fraction(math.comb(n, a))) + a * log_of(p) + (n - a) * log_of(1 - p)
    total, term, x = 1.0, 1.0, a
    while term > 1e-18 * total:
        term *= (n - x) / (x + 1) * float(p / (1 - p))
        total, x = total + term, x + 1
    return log + math.log(total)


@pytest.mark.parametrize(
    ("a", "n", "p"),
    [(12_700, 50_000, "0.244"), (15_500, 50_000, "0.244"), (25_000, 50_000, "0.244"), (300, 100_000, "0.0001")],
)
def test_deep_tails_do_not_underflow(a: int, n: int, p: str) -> None:
    rate = Fraction(p)
    want = exact_log_tail(a, n, rate)
    got = float(tails.log_upper(a, n, float(rate), float(1 - rate)))
    assert got == pytest.approx(want, rel=2e-14, abs=1e-11)
    assert float(tails.log_lower(n - a, n, float(1 - rate), float(rate))) == got


def test_ten_million_examples() -> None:
    # 60-digit arithmetic (mpmath): P(Bin(10^7, 0.244) >= 2,450,000) and P(>= 3,445,000)
    got = tails.log_upper([2_450_000, 3_445_000], 10**7, 0.244, 0.756)
    assert math.exp(got[0]) == pytest.approx(9.2566e-14, rel=1e-4)
    assert got[1] / math.log(10) == pytest.approx(math.log10(1.7863) - 109_986, abs=1e-4)


@given(n=st.integers(32, 10**7), p=st.floats(1e-3, 1 - 1e-3), z=st.floats(-30, 30))
def test_the_scalar_probability_is_the_array_s(n: int, p: float, z: float) -> None:
    x = min(max(round(n * p + z * math.sqrt(n * p * (1 - p))), 0), n)
    one = tails.scalar_log_pmf(x, n, p, 1 - p)
    assert one == pytest.approx(float(tails.log_pmf(x, n, p, 1 - p)), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "p", "eps", "want"),
    [
        (50_000, 0.244, 0.01, (12_700, 11_700)),  # 0.244 - 0.01 is 0.23399999999999999 in doubles
        (10, 0.3, 0.1, (4, 2)),  # 0.3 - 0.1 is 0.19999999999999998, 0.3 + 0.1 is 0.4
        (100, 0.29, 0.0, (29, 29)),  # 100 * 0.29 is 28.999999999999996
        (3, 1 / 3, 1 / 3, (2, 0)),  # no decimal says a third: within 1e-15 it is one
        (1, 0.0, 0.5, (1, -1)),
        (1, 1.0, 0.5, (2, 0)),
        (10**7, 0.244, 0.01, (2_540_000, 2_340_000)),
        (7, 0.5, 0.9, (10, -3)),
    ],
)
def test_boundaries_are_whole_where_they_are_whole(n: int, p: float, eps: float, want: tuple[int, int]) -> None:
    assert tails.boundaries(n, p, eps) == want


def test_boundaries_of_fractions_are_exact() -> None:
    assert tails.boundaries(7, Fraction(2, 7), Fraction(1, 7)) == (3, 1)
    assert tails.boundaries(7, Fraction(2, 7), Fraction(1, 7) + Fraction(1, 10**30)) == (4, 0)


def test_single_precision_means_what_it_shows() -> None:
    p: Any = np.float32(0.244)
    eps: Any = np.float32(0.01)
    assert tails.fraction(p) == Fraction("0.244")
    assert tails.boundaries(1000, p, eps) == (254, 234)


def test_rounding_is_up_and_never_turns_a_possible_event_into_an_impossible_one() -> None:
    assert tails.round_up(-1.0) > -1.0
    assert tails.round_up(0.0) == 0.0
    assert tails.probability(-math.inf) == 0.0
    assert tails.probability(-1e6) > 0.0
