"""Joint tails of many pairs at once, against one pair at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from pytest_dscore.holdout import pack
from pytest_dscore.holdout.coupling import JointTail, couple
from pytest_dscore.holdout.pairs import exclusive_logs
from pytest_dscore.holdout.search import first_between
from pytest_dscore.holdout.similarity import agreements
from pytest_dscore.holdout.tails import log_lower, log_lower_each, log_upper, log_upper_each

SIDES: tuple[Literal["upper"], Literal["lower"]] = ("upper", "lower")


def one_by_one(n: int, wrong: int, other: int, agree: int, side: str, m: int, offset: int) -> float:
    coupling = couple(Fraction(other, n), Fraction(wrong, n), Fraction(agree, n))
    if coupling is None:
        return 0.0
    joint = JointTail(n, coupling)
    if side == "upper":
        return joint.log_probability("lower", other + offset - 1, "upper", wrong + m)
    return joint.log_probability("upper", other - offset + 1, "lower", wrong - m)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("least", [0.0, 0.8, 0.99, 1.0])
@pytest.mark.parametrize("n", [1, 8, 90, 2_000, 50_000, 300_000])
def test_it_is_what_one_pair_at_a_time_gives(n: int, least: float, side: Literal["upper", "lower"]) -> None:
    rng = np.random.default_rng(n)
    wrong, other = np.clip(np.rint(n * 0.25 + 2 * math.sqrt(n) * rng.normal(size=(2, 40))), 0, n).astype(np.int64)
    most = n - np.abs(wrong - other)
    agree = np.rint(most * (least + (1 - least) * rng.random(40))).astype(np.int64)
    m = np.ceil(math.sqrt(n) * rng.uniform(0.01, 6, 40)).astype(np.int64)
    offset = np.maximum(1, m * rng.uniform(0.2, 1, 40)).astype(np.int64)
    got = exclusive_logs(n, wrong, other, agree, side, m, offset)
    for row, value in enumerate(got):
        pair = int(wrong[row]), int(other[row]), int(agree[row])
        want = one_by_one(n, *pair, side, int(m[row]), int(offset[row]))
        assert value == want or abs(value - want) < 4e-12 * max(1.0, abs(want))


def test_shapes_broadcast() -> None:
    grid = exclusive_logs(1000, np.array([[200], [210]]), 205, 900, "upper", 40, np.array([20, 30, 40]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == pytest.approx(one_by_one(1000, 210, 205, 900, "upper", 40, 40), abs=1e-12)
    assert bool((np.diff(grid, axis=1) > 0).all())  # the smaller the relaxed event, the more lies outside


@pytest.mark.parametrize("n", [1, 30, 5_000, 10_000_000])
def test_tails_at_many_rates(n: int) -> None:
    counts = np.unique(np.linspace(0, n, 23).astype(np.int64))
    for m in (0, 1, max(1, n // 50), n):
        p, q = counts / n, (n - counts) / n
        upper, lower = log_upper_each(counts + m, n, p, q), log_lower_each(counts - m, n, p, q)
        for i in range(len(counts)):
            want = float(log_upper(counts[i] + m, n, p[i], q[i])), float(log_lower(counts[i] - m, n, p[i], q[i]))
            assert (float(upper[i]), float(lower[i])) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 5), (0, 60), (20, 60), (59, 60)])
def test_agreements_are_counted_exactly(start: int, stop: int) -> None:
    matrix = np.random.default_rng(1).random((60, 9_001)) < 0.3
    want = [[int((a == b).sum()) for b in matrix[:stop]] for a in matrix[start:stop]]
    assert agreements(pack(matrix), start, stop).tolist() == want


def test_a_search_that_guesses_finds_what_a_plain_one_does() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        falls = -np.cumsum(rng.exponential(size=40))
        falls[rng.integers(1, 41) :] = -math.inf
        target, low = float(falls[rng.integers(0, 39)] - rng.choice([0.0, 0.1])), int(rng.integers(0, 10))
        high = next((m for m in range(low + 1, 40) if falls[m] <= target), None)
        if high is not None:
            asked: list[int] = []

            def value(m: int, values: np.typing.NDArray[np.float64] = falls, asked: list[int] = asked) -> float:
                asked.append(m)
                return float(values[m])

            assert first_between(value, target, low, 39, int(rng.integers(0, 60))) == high
            assert len(asked) == len(set(asked)) <= 12
    squares = [0.0]

    def tail(m: int) -> float:
        squares.append(m)
        return -0.5 * (m / 100) ** 2

    assert first_between(tail, -12.5, 0, 100_000, 900) == 500
    assert len(squares) < 12


def test_a_similarity_above_the_largest_possible_is_lowered_to_it() -> None:
    for side in SIDES:
        most, above = (float(exclusive_logs(1000, 200, 220, agree, side, 30, 25)) for agree in (980, 1000))
        assert above == most == pytest.approx(one_by_one(1000, 200, 220, 980, side, 30, 25), rel=1e-12)
