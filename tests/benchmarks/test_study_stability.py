"""Spread, sizes and coverage: hand numbers, the laws they must follow, and the library's own intervals."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.study import stability
from benchmarks.study.measured import Measured
from benchmarks.study.stability import Stability, Trial
from tests.benchmarks.populations import network
from tests.score.hitting import result_of


def some(number: int = 5, examples: int = 1500) -> list[Measured]:
    """Fragile networks, so that nothing hangs on the kink of max(0, drop)."""
    return [
        network(i, 0.9, 0.4 + 0.3 * i, 0.5, mutated=0.8, examples=examples, grids=(3,), operators=("delete",))
        for i in range(number)
    ]


def test_the_truth_is_the_librarys_score() -> None:
    one = some(1)[0]
    theirs = result_of(stability.score_hits(one), 10, form="mean").score.value
    assert stability.truth(one) == pytest.approx(theirs, abs=1e-12)


def test_spread_follows_the_root_of_the_size_and_the_librarys_interval() -> None:
    one = some(1)[0]
    drawn = {size: stability.draws_of_d([one], size, 600)[0] for size in (500, 1500, 2000)}
    assert drawn[500].std() / drawn[2000].std() == pytest.approx(2, rel=0.15)
    theirs = result_of(stability.score_hits(one), 10, replicates=600).score
    assert drawn[1500].std() == pytest.approx((theirs.upper - theirs.lower) / 2 / 1.96, rel=0.15)
    assert drawn[2000].mean() == pytest.approx(stability.truth(one), abs=3e-3)


def test_networks_are_drawn_on_the_same_examples() -> None:
    one = some(1)[0]
    first, second = stability.draws_of_d([one, one], 300, 20)
    assert (first == second).all()
    assert first.std() > 0


def test_the_librarys_interval_holds_the_truth_and_narrows() -> None:
    one = some(1)[0]
    small, large = (stability.trial(one, size, 60, 200) for size in (200, 800))
    d = stability.truth(one)
    assert small.covers(d) >= 0.85
    assert large.covers(d) >= 0.85
    assert small.half_width / large.half_width == pytest.approx(2, rel=0.15)
    assert large.decides(d - 0.5) == 1
    assert large.decides(d + 0.1) == 0


def test_crossing_by_hand() -> None:
    widths = 2 / np.sqrt(np.array([100, 400, 900]))
    assert stability.crossing((100, 400, 900), widths, 0.1) == pytest.approx(400)
    assert stability.crossing((100, 400, 900), widths, 0.125) == pytest.approx(256)
    assert stability.crossing((100, 400, 900), widths, 0.02) == pytest.approx(10_000)
    assert stability.crossing((100, 400, 900), widths, 0.3) == 100


def test_examples_for_a_change_by_hand() -> None:
    # (1.959964 + 1.281552)^2 = 10.5074
    assert stability.for_a_change(1.0, 1.0) == pytest.approx(10.5074, abs=1e-4)
    assert stability.for_a_change(0.02, 0.05, 500) == pytest.approx(500 * 10.5074 * 0.16, rel=1e-4)


def test_pairs_in_the_right_order() -> None:
    drawn = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    # Pairs (0,1): right, wrong; (0,2): right, tied; (1,2): right, right.
    assert stability.rightly_ranked(drawn, np.array([0.0, 1.0, 2.0])) == pytest.approx(4.5 / 6)
    assert stability.rightly_ranked(drawn[:2], np.array([1.0, 1.0])) != 0


def made(lower: list[list[float]]) -> Stability:
    """Trials of one draw each with given lower ends; D is 0.5, the upper end 0.6."""
    trials = [[Trial(np.array([0.5]), np.array([end]), np.array([0.6])) for end in row] for row in lower]
    size, sizes = len(lower), len(stability.SIZES)
    d, sd, ranked = np.full(size, 0.5), np.ones((size, sizes)), np.ones(sizes)
    return Stability(d, sd, 0 * sd, ranked, (100, 200, 400), list(range(size)), trials, np.ones((size, size)))


def test_a_threshold_counts_as_decided_from_where_it_stays_so() -> None:
    found = made([[0.45, 0.3, 0.45], [0.45, 0.45, 0.45], [0.3, 0.3, 0.3], [0.3, 0.45, 0.45]])
    assert found.decision_needed().tolist() == [400, 100, np.inf, 200]
    assert found.coverage.tolist() == [[1, 1, 1]] * 4


def test_the_minimum_meets_every_reason() -> None:
    narrow = made([[0.45, 0.52, 0.45]])
    # Half-widths 0.075, 0.04, 0.075: by the first crossing; the interval misses the truth at 200.
    assert [reason.examples for reason in stability.reasons(narrow)] == [200, 100, 400]
    assert stability.minimum(narrow) == 400
    assert stability.minimum(made([[0.3, 0.3, 0.3]])) == np.inf


def test_only_pairs_about_the_gap_apart_count_for_changes() -> None:
    found = dataclasses.replace(made([[0.4] * 3] * 3), d=np.array([0.5, 0.55, 0.9]))
    assert found.change_needed() == pytest.approx([10.5074 / 0.05**2], rel=1e-4)


def test_the_library_finds_a_difference_as_often_as_foretold() -> None:
    networks = some(2)
    found = stability.examine(networks, tried=(100,), most=1, repeats=2, replicates=50)
    trial = stability.pair_trials(networks, found, 1, 60)[0]
    assert trial.gap == pytest.approx(found.d[0] - found.d[1])
    assert 0.75 <= trial.found <= 1.0


def test_pairs_too_near_or_too_far_are_not_tried() -> None:
    networks = some(2, 100)
    found = made([[0.4] * 3] * 2)
    assert stability.pair_trials(networks, found, 3, 1) == []
    assert len(stability.pair_trials(networks, dataclasses.replace(found, d=np.array([0.5, 0.55])), 3, 1)) == 1


def test_networks_tried_are_spread_over_d() -> None:
    d = np.array([0.5, 0.1, 0.9, 0.3, 0.7])
    assert stability.spread_evenly(d, 3) == [1, 0, 2]
    assert sorted(stability.spread_evenly(d, 9)) == [0, 1, 2, 3, 4]


def test_seeds_are_compared_where_there_are_several() -> None:
    several = [network(i, 0.9, 0.5, 0.5, grids=(3,), operators=("noise",), seeds=4, mutated=0.8) for i in range(3)]
    (spread,) = stability.over_seeds([*several, network(3, 0.9, 0.5, 0.5, grids=(3,), operators=("noise",))])
    assert (spread.operator, spread.seeds, len(spread.sd)) == ("noise", 4, 3)
    assert (spread.sd > 0).all()
    assert stability.over_seeds(some(2, 50)) == []


def test_figures_are_compared_by_their_noise() -> None:
    networks = some(4, 400)
    names = ("accuracy", "bounded; n 3, delete, pad 1")
    compared = {each.name: each for each in stability.compare(networks, (*names, "of no meaning"))}
    assert set(compared) == set(names)
    clean = [float(one.clean.mean()) for one in networks]
    assert compared["accuracy"].between == pytest.approx(np.std(clean, ddof=1))
    binomial = np.median([np.sqrt(p * (1 - p) / 1000) for p in clean])
    assert compared["accuracy"].within == pytest.approx(binomial, rel=0.1)
    assert 0.5 < compared[names[1]].ranked <= 1


def test_a_forecast_settles_about_every_second_threshold() -> None:
    asked, settled, median = stability.forecasts(some(2), [0, 1], 150, 15)
    assert asked >= 10
    assert 0.25 <= settled / asked <= 0.9
    assert median > 150


def test_the_page_is_whole(tmp_path: Path) -> None:
    networks = some(3, 300)
    text = stability.report(networks, tmp_path / "plots", repeats=2, tried=(100, 200), replicates=30)
    for heading in ("## Stability: how many examples", "## The spread of D", "## Examples needed"):
        assert heading in text
    assert "## Seeds" not in text
    assert (tmp_path / "plots" / "stability.svg").exists()
    assert "nan" not in text
