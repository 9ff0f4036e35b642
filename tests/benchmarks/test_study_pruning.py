"""Regions whose deletion helps: hand numbers, corrections, chance."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from benchmarks.study import pruning
from benchmarks.study.measured import Measured, Recipe
from benchmarks.study.pruning import Region
from tests.benchmarks.populations import network

RECIPE = Recipe("digits", "plain", "none", 1, 0, 100)


def region(mended: int, broken: int, examples: int = 100, halves: tuple[float, float] = (0.0, 0.0)) -> Region:
    return Region(RECIPE, 3, 0, 0, mended, broken, examples, halves)


def test_mcnemar_by_hand() -> None:
    # Of 12 changed examples 10 mended: (66 + 12 + 1) / 4096.
    assert region(10, 2).p_value == pytest.approx(79 / 4096)
    assert region(2, 10).p_value == pytest.approx(1 - 13 / 4096)
    assert region(0, 0).p_value == 1.0
    assert region(10, 2).p_value == pytest.approx(stats.binomtest(10, 12, alternative="greater").pvalue)


def test_interval_by_hand() -> None:
    figure = region(10, 2, 200).interval()
    assert figure.value == pytest.approx(0.04)
    # Clopper and Pearson for 10 of 12: 0.51586 to 0.97914.
    assert figure.lower == pytest.approx((2 * 0.51586 - 1) * 12 / 200, abs=1e-6)
    assert figure.upper == pytest.approx((2 * 0.97914 - 1) * 12 / 200, abs=1e-6)
    empty = region(0, 0).interval()
    assert (empty.value, empty.lower, empty.upper) == (0.0, 0.0, 0.0)


def test_the_interval_and_the_test_agree() -> None:
    for mended in range(31):
        one = region(mended, 30 - mended)
        # Both ends leave out 2.5 %, so the lower one is above 0 where the one-sided p-value is below that.
        assert (one.interval().lower > 0) == (one.p_value < 0.025)


def test_adjusted_p_values_by_hand() -> None:
    p = np.array([0.04, 0.01, 0.03, 0.5])
    assert pruning.holm(p) == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert pruning.benjamini_hochberg(p) == pytest.approx([0.04 * 4 / 3, 0.04, 0.04 * 4 / 3, 0.5])
    assert pruning.holm(np.array([0.6, 0.7])) == pytest.approx([1.0, 1.0])


def test_what_chance_gives_is_what_simulation_gives() -> None:
    rng = np.random.default_rng(0)
    changed = rng.integers(0, 40, size=300)
    found = [region(int(n), 0) for n in changed]
    helpful, below = pruning.by_chance(found)
    counts = []
    for _ in range(40):
        drawn = [region(int(rng.binomial(n, 0.5)), 0) for n in changed]
        drawn = [dataclasses.replace(one, broken=int(n) - one.mended) for one, n in zip(drawn, changed, strict=True)]
        counts.append([sum(one.gain > 0 for one in drawn), sum(one.p_value <= 0.05 for one in drawn)])
    assert np.mean(counts, axis=0) == pytest.approx([helpful, below], abs=4)
    assert below < 0.05 * 300


def with_region(change: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], examples: int = 1000) -> Measured:
    """A network whose deletions do nothing, but for region (1, 2) of n = 3."""
    one = network(0, 0.3, 0.3, 0.3, examples=examples, grids=(3,), operators=("delete",))
    mutants = np.tile(one.clean, (9, 1))
    mutants[5] = change
    return dataclasses.replace(one, mutants={(3, "delete", 0): mutants})


def test_regions_are_counted_and_named() -> None:
    one = network(0, 0.3, 0.3, 0.3, examples=1000, grids=(3,), operators=("delete",))
    change = one.clean.copy()
    change[np.flatnonzero(~change)[:30]] = True
    change[np.flatnonzero(one.clean)[:4]] = False
    found = pruning.regions([with_region(change)])
    assert len(found) == 9
    helped = found[5]
    assert (helped.n, helped.row, helped.column, helped.mended, helped.broken) == (3, 1, 2, 30, 4)
    assert helped.gain == pytest.approx(0.026)
    assert sum(helped.halves) / 2 == pytest.approx(0.026)
    assert all(other.gain == 0 for i, other in enumerate(found) if i != 5)


def test_a_true_gain_is_found_and_said() -> None:
    one = network(0, 0.3, 0.3, 0.3, examples=1000, grids=(3,), operators=("delete",))
    better = one.clean.copy()
    better[np.flatnonzero(~better)[:40]] = True
    text = " ".join(pruning.report([with_region(better)]).split())
    # Clopper and Pearson for 40 of 40: from 0.025 ** (1 / 40) = 0.9119.
    assert "1 is left with a rate of false discoveries of 5%" in text
    assert "1 by Holm's stricter count" in text
    assert "| digits plain, none, 0 epochs, seed 0 | 3 | (1, 2) | 40 | 0 | +4.00 [+3.30, +4.00] |" in text


def test_luck_is_called_luck() -> None:
    networks = [
        network(i, 0.8, 0.5, 0.5, mutated=0.0, examples=500, grids=(2, 3), operators=("delete",)) for i in range(8)
    ]
    text = " ".join(pruning.report(networks).split())
    assert "none is left" in text
    assert "8 networks have 104 regions" in text


def test_nothing_to_say_without_mutants() -> None:
    assert pruning.report([network(0, 0.3, 0.3, 0.3, examples=10, grids=(), operators=())]) == ""


def test_a_gain_on_one_half_is_judged_on_the_other() -> None:
    found = [region(1, 0, halves=(0.02, -0.01)), region(1, 0, halves=(-0.01, 0.04)), region(0, 1, halves=(-0.1, -0.2))]
    words = " ".join(pruning._other_half(found).split())
    assert "(3.00 points on average)" in words
    assert "lose 1.00 points on the other half, where 0% of them still gain" in words
