"""Joint tails of two models against the 2 x 2 table itself, convolved in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_dscore.holdout.coupling import JointTail, Side, couple
from tests.holdout.truth import pair_counts

SIDES: tuple[Side, ...] = ("upper", "lower", "equal")


def inside(side: Side, x: int, count: int) -> bool:
    return {"upper": x >= count, "lower": x <= count, "equal": x == count}[side]


@pytest.mark.parametrize(
    ("p1", "p2", "s"),
    [
        ("0.3", "0.3", "0.8"),
        ("0.3", "0.4", "0.85"),
        ("0.3", "0.3", "1"),
        ("0.2", "0.5", "0.7"),  # as alike as these rates allow
        ("0.2", "0.5", "0.9"),  # more than they allow: taken as 0.7
        ("0.5", "0.5", "0.5"),  # independent
        ("1", "0.4", "0.4"),
        ("1", "1", "1"),
        ("0.05", "0.05", "0.93"),
    ],
)
def test_joint_probabilities_are_those_of_the_table(p1: str, p2: str, s: str) -> None:
    n, first, second = 11, Fraction(p1), Fraction(p2)
    exact = pair_counts(n, first, second, min(Fraction(s), 1 - abs(first - second)))
    coupling = couple(first, second, Fraction(s))
    assert coupling is not None
    joint = JointTail(n, coupling)
    for side1 in SIDES:
        for side2 in SIDES:
            for c1 in range(-1, n + 2, 2):
                for c2 in range(-1, n + 2):
                    want = sum(w for (x, y), w in exact.items() if inside(side1, x, c1) and inside(side2, y, c2))
                    got = math.exp(joint.log_probability(side1, c1, side2, c2))
                    assert got == pytest.approx(float(want), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("p1", "p2", "s"), [("0.3", "0.3", "0.57"), ("0", "0.3", "0.7"), ("0.3", "0", "0.7")])
def test_no_coupling_below_independence_or_for_a_perfect_model(p1: str, p2: str, s: str) -> None:
    assert couple(Fraction(p1), Fraction(p2), Fraction(s)) is None


def test_independence_itself_is_exact() -> None:
    assert couple(0.3, 0.3, 0.58) is not None  # 0.09 + 0.49, not 0.5800000000000001
    assert couple(0.3, 0.3, 0.5799999) is None


@pytest.mark.parametrize(("n", "s"), [(2_000, 0.85), (50_000, 0.85), (50_000, 0.999), (50_000, 0.64)])
def test_long_sums_against_the_whole_sum(n: int, s: float) -> None:
    coupling = couple(0.244, 0.26, s if s < 0.99 else 0.984)
    assert coupling is not None
    j = np.arange(n + 1)
    weights = stats.binom.pmf(j, n, coupling.shared)
    for shift in (0, 100, 400):
        a, c = round(0.27 * n), round(0.254 * n) - shift
        want = (weights * stats.binom.cdf(c, j, coupling.first) * stats.binom.sf(a - 1, j, coupling.second)).sum()
        got = math.exp(JointTail(n, coupling).log_probability("lower", c, "upper", a))
        assert got == pytest.approx(want, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    p1=st.integers(1, 19),
    p2=st.integers(1, 19),
    s=st.integers(0, 100),
    c=st.integers(-1, 41),
    d=st.integers(-1, 41),
)
def test_the_four_corners_make_up_the_whole(n: int, p1: int, p2: int, s: int, c: int, d: int) -> None:
    coupling = couple(Fraction(p1, 20), Fraction(p2, 20), Fraction(s, 100))
    if coupling is None:
        return
    joint = JointTail(n, coupling)
    parts = [
        math.exp(joint.log_probability(a, c + (a == "upper"), b, d + (b == "upper")))
        for a in SIDES[:2]
        for b in SIDES[:2]
    ]
    assert sum(parts) == pytest.approx(1.0, rel=1e-11)


def test_far_from_the_mean_it_is_still_positive_and_right() -> None:
    # both models wrong on every example: P11^n, far below the smallest double
    coupling = couple(0.3, 0.3, 0.9)
    assert coupling is not None
    got = JointTail(5_000, coupling).log_probability("equal", 5_000, "upper", 5_000)
    assert got == pytest.approx(5_000 * math.log(0.25), rel=1e-12)
