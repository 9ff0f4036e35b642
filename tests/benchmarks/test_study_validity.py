"""Rank correlations against SciPy; made-up populations whose truth is known; the honesty of the choice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.study import prediction, ranks, scores, validity
from benchmarks.study.prediction import GAIN, LEAD, PARTIAL, RHO, Choice, Estimates, Judged, Population, Sample
from benchmarks.study.scores import ACCURACY_NAME, DEFAULT_NAME, Array, Variant
from pytest_dscore.figure import Figure
from tests.benchmarks.populations import network, told, unrelated

FEW = tuple(
    variant
    for variant in scores.registered()
    if variant.name in (ACCURACY_NAME, DEFAULT_NAME, f"mean a; {scores.DEFAULT}", f"robust; {scores.DEFAULT}")
)


@pytest.mark.parametrize("levels", [3, 1000])
def test_spearman_is_scipys(levels: int) -> None:
    rng = np.random.default_rng(levels)
    x, y = rng.integers(levels, size=(2, 20, 17)).astype(float)
    ours = ranks.spearman(x, y)
    assert ours == pytest.approx([stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize("levels", [6, 10**6])
def test_weights_count_as_repetitions(levels: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(levels, size=(2, 12)).astype(float)
    weights = rng.integers(4, size=(30, 12)).astype(float)
    ours = ranks.spearman(x, y, weights)
    for row, found in zip(weights.astype(int), ours, strict=True):
        assert found == pytest.approx(stats.spearmanr(np.repeat(x, row), np.repeat(y, row)).statistic)


def test_infinite_scores_are_ranked_and_constant_ones_predict_nothing() -> None:
    y = np.arange(5.0)
    assert ranks.spearman(np.array([1.0, 2.0, 3.0, np.inf, np.inf]), y) == pytest.approx(
        stats.spearmanr([1, 2, 3, 4, 4], y).statistic
    )
    assert ranks.spearman(np.full(5, 0.3), y) == 0.0


def test_partial_correlation_is_that_of_residuals() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=40)
    x, y = z + rng.normal(size=40), z + rng.normal(size=40)
    ranked = [stats.rankdata(values) for values in (x, y, z)]
    left = [values - np.polyval(np.polyfit(ranked[2], values, 1), ranked[2]) for values in ranked[:2]]
    ours = ranks.partial(*(np.asarray(ranks.spearman(*pair)) for pair in ((x, y), (x, z), (y, z))))
    assert ours == pytest.approx(stats.pearsonr(*left).statistic)
    assert ranks.partial(np.array(1.0), np.array(1.0), np.array(1.0)) == 0.0


def test_halves_cut_every_stratum_and_keep_groups_together() -> None:
    strata = ["a"] * 10 + ["b"] * 6 + ["c"] * 4
    groups = [i // 2 for i in range(20)]
    seen = set()
    for seed in range(50):
        first = ranks.halves(strata, groups, np.random.default_rng(seed))
        assert (first[::2] == first[1::2]).all()
        assert abs(int(first.sum()) - 10) <= 2
        assert [int(first[:10].sum()) in (4, 6), int(first[10:16].sum()) in (2, 4), first[16:].sum()] == [True, True, 2]
        seen.add(tuple(first))
    assert len(seen) > 20


def test_the_bootstrap_draws_groups_whole_and_only_among_those_allowed() -> None:
    groups = ["a", "a", "b", "c", "c", "c"]
    among = np.array([True, True, True, True, True, False])
    weights = ranks.draw(groups, 4000, np.random.default_rng(0), among)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 4]).all()
    assert (weights[:, 5] == 0).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert weights[:, [0, 2, 3]].mean(axis=0) == pytest.approx([1, 1, 1], abs=0.05)


def test_halves_of_examples_are_disjoint() -> None:
    weights = prediction.example_halves(101)
    assert weights.sum(axis=1).tolist() == [50, 50]
    assert (weights.sum(axis=0) <= 1).all()


def test_a_score_that_sees_what_counts_predicts_and_accuracy_does_not() -> None:
    (population,) = prediction.prepare({"told": told(24, 600)})
    population = dataclasses.replace(population, variants=FEW, apart=prediction.sample(population.networks, FEW))
    population = dataclasses.replace(population, shared=population.apart)
    found = prediction.estimate(population, 200)
    v, clean = population.index(DEFAULT_NAME), population.index(ACCURACY_NAME)
    assert found.value[RHO, v] > 0.95
    assert found.lower[LEAD, v] > 0.5
    assert found.lower[PARTIAL, v] > 0.9
    assert found.lower[RHO, clean] < 0 < found.upper[RHO, clean]
    assert found.value[LEAD, clean] == found.value[GAIN, v] == 0


def test_a_score_that_sees_nothing_adds_nothing_to_accuracy() -> None:
    (population,) = prediction.prepare({"unrelated": unrelated(24, 400)})
    population = dataclasses.replace(population, variants=FEW, apart=prediction.sample(population.networks, FEW))
    population = dataclasses.replace(population, shared=population.apart)
    found = prediction.estimate(population, 200)
    v = population.index(DEFAULT_NAME)
    assert found.lower[PARTIAL, v] < 0.1
    assert found.lower[LEAD, v] < 0


def test_examples_in_common_inflate_and_disjoint_ones_do_not() -> None:
    # Networks that differ by luck alone, the same luck in every pass: all the correlation is that of examples.
    alike = []
    for i in range(40):
        lucky = network(i, 0.5, 0.0, 0.0, examples=200, grids=(3,), operators=("delete",))
        hits = np.random.default_rng([3, i]).random(200) < 0.7
        again = {key: np.tile(hits, (9, 1)) for key in lucky.shifts}
        unseen = dict.fromkeys(lucky.unseen, hits)
        alike.append(dataclasses.replace(lucky, clean=hits, shifts=again, unseen=unseen))
    rho = [
        prediction.sample(alike, FEW, apart=apart).correlations(np.ones((1, 40)))[RHO, 0, 0] for apart in (False, True)
    ]
    assert rho[0] == pytest.approx(1.0)
    assert abs(rho[1]) < 0.35


def made(values: Array, target: Array, name: str = "made") -> Population:
    """A population of given scores (V, m); the first is accuracy, the second the default."""
    sample = Sample(values[None, :, None], target[None, None], 0, 1)
    names = [ACCURACY_NAME, DEFAULT_NAME, *(f"variant {i}" for i in range(len(values) - 2))]
    variants = tuple(Variant(each, "form", scores.bounded, candidate=each != ACCURACY_NAME) for each in names)
    networks = [network(i, 0.5, 0.1, 0.1, examples=2, grids=(), operators=()) for i in range(len(target))]
    return Population(name, networks, variants, sample, sample)


def test_choosing_among_noise_gains_nothing_on_the_other_half() -> None:
    rng = np.random.default_rng(5)
    inside, held_out = [], []
    for _ in range(20):
        both = [made(rng.normal(size=(60, 30)), rng.normal(size=30), name) for name in ("one", "two")]
        splits = prediction.many_splits(both, 10)
        inside.append(splits.inside.mean())
        held_out.append(splits.held_out[:, 0].mean())
    assert np.mean(inside) > 0.35
    # 40 populations of 15 held-out networks each: a standard error of about 0.27 / sqrt(40).
    assert abs(np.mean(held_out)) < 0.12


def better(rng: np.random.Generator, name: str) -> Population:
    """The fifth variant follows the target, the default hardly."""
    target = rng.normal(size=40)
    values = rng.normal(size=(8, 40))
    values[1] += 0.3 * target
    values[5] = target + rng.normal(scale=0.1, size=40)
    return made(values, target, name)


def test_a_better_variant_is_chosen_and_beats_the_default() -> None:
    rng = np.random.default_rng(6)
    both = [better(rng, "one"), better(rng, "two")]
    choice = prediction.chosen_on_halves(both, 300)
    elsewhere = prediction.chosen_elsewhere(both, 300)
    assert choice.name == "variant 3"
    assert [other.name for other in elsewhere] == ["variant 3"] * 2
    assert all(judged.gain.lower > 0 and judged.rho.value > 0.9 for judged in choice.held_out.values())
    assert validity.beaten(choice)
    assert choice.together.value == pytest.approx(np.mean([each.gain.value for each in choice.held_out.values()]))
    widths = [figure.upper - figure.lower for figure in (choice.together, *(j.gain for j in choice.held_out.values()))]
    assert widths[0] < min(widths[1:])
    assert set(prediction.many_splits(both, 20).names) == {"variant 3"}


def test_the_chosen_one_is_judged_on_networks_that_had_no_say() -> None:
    rng = np.random.default_rng(10)
    target = rng.normal(size=60)
    first = made(np.zeros((2, 60)), target).half(np.random.default_rng(prediction.SEED))
    values = rng.normal(size=(3, 60))
    values[2, first] = target[first]
    choice = prediction.chosen_on_halves([made(values, target)], 50)
    assert choice.name == "variant 0"
    assert choice.inside == pytest.approx(1.0)
    assert abs(choice.held_out["made"].rho.value) < 0.5


def test_correlations_are_corrected_for_noise() -> None:
    # Score and target are the same but for noise, reliability 1 / (1 + 0.5) each: attenuated to that, corrected to 1.
    rng = np.random.default_rng(12)
    truth = rng.normal(size=4000)
    noisy = truth + np.sqrt(0.5) * rng.normal(size=(6, 4000))
    scores_ = np.stack([np.stack([noisy[k], noisy[k], noisy[2 + k]])[:, None] for k in range(2)])
    sample = Sample(scores_, noisy[4:, None], 0, 1)
    population = dataclasses.replace(made(np.zeros((3, 4000)), truth), apart=sample)
    repeatable = ranks.spearman(sample.scores[0, :, 0], sample.scores[1, :, 0])
    value = sample.correlations(population.everyone[None])[..., 0]
    ceiling = float(ranks.spearman(noisy[4], noisy[5]))
    found = Estimates(value, value, value, value, value, value, ceiling, repeatable)
    assert found.value[RHO, 2] == pytest.approx(0.65, abs=0.03)
    assert found.without_noise(2) == pytest.approx(1.0, abs=0.04)
    hopeless = dataclasses.replace(found, repeatable=-repeatable)
    assert np.isnan(hopeless.without_noise(2))


def test_networks_without_the_default_are_refused() -> None:
    with pytest.raises(ValueError, match="must be measured at n 3, delete, pad 1"):
        prediction.prepare({"one": [network(0, 0.5, 0.1, 0.1, examples=4, grids=(2,))]})


def test_beaten_means_in_every_population() -> None:
    up, open_ = Figure(0.2, 0.1, 0.3), Figure(0.2, -0.1, 0.3)
    judged = {gain: Judged(up, gain, up, up, up, up) for gain in (up, open_)}
    assert validity.beaten(Choice("new", 0.9, {"one": judged[up], "two": judged[up]}, up))
    assert not validity.beaten(Choice("new", 0.9, {"one": judged[up], "two": judged[open_]}, up))
    assert not validity.beaten(Choice(DEFAULT_NAME, 0.9, {"one": judged[up]}, up))


def test_a_default_that_is_best_or_only_once_beaten_stays() -> None:
    rng = np.random.default_rng(7)
    one = better(rng, "one")
    target = rng.normal(size=40)
    two = made(np.concatenate([rng.normal(size=(1, 40)), target[None], rng.normal(size=(6, 40))]), target, "two")
    assert not validity.beaten(prediction.chosen_on_halves([two], 200))
    assert prediction.chosen_on_halves([two], 200).name == DEFAULT_NAME
    assert not validity.beaten(prediction.chosen_on_halves([one, two], 200))


def test_only_candidates_are_chosen_unless_any_may_be() -> None:
    rng = np.random.default_rng(8)
    target = rng.normal(size=30)
    values = rng.normal(size=(6, 30))
    values[0] = target
    population = made(values, target)
    assert prediction.chosen_on_halves([population], 50).name != ACCURACY_NAME
    assert prediction.chosen_on_halves([population], 50, candidates=False).name == ACCURACY_NAME
    assert ACCURACY_NAME not in prediction.many_splits([population], 5).names
    assert set(prediction.many_splits([population], 5, candidates=False).names) == {ACCURACY_NAME}


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(9)
    many = rng.normal(size=(3, 200_000))
    noise = np.array([1.0, 0.5])
    truth = [stats.spearmanr(many[0], many[0] + s * many[1 + i]).statistic for i, s in enumerate(noise)]
    held = np.zeros(3)
    trials = 150
    for _ in range(trials):
        target, *luck = rng.normal(size=(3, 30))
        population = made(target + noise[:, None] * np.array(luck), target)
        lower, upper = prediction.percentiles(
            population.apart.correlations(population.draw(200, int(rng.integers(2**32))))
        )
        for i, (row, v, value) in enumerate(((RHO, 0, truth[0]), (RHO, 1, truth[1]), (LEAD, 1, truth[1] - truth[0]))):
            held[i] += lower[row, v] <= value <= upper[row, v]
    assert (held / trials >= 0.88).all()
    assert (held / trials <= 1.0).all()


def test_the_page_says_what_the_figures_say_and_is_the_same_every_time(tmp_path: Path) -> None:
    networks = {"told": told(10, 100)}
    first = validity.report(networks, tmp_path / "one" / "plots", draws=20, splits=3)
    again = validity.report(networks, tmp_path / "two" / "plots", draws=20, splits=3)
    assert first == again
    assert "(plots/validity-told.svg)" in first
    pictures = [(tmp_path / folder / "plots" / "validity-told.svg").read_bytes() for folder in ("one", "two")]
    assert pictures[0] == pictures[1]
    words = " ".join(first.split("## The networks")[0].split())
    assert "**told**: the spec's D (`bounded`) predicts the target with a rank correlation of" in words
    assert "it says more than accuracy, clearly. The goal of 0.9 is met" in words
    assert "v_robust alone, its sign turned, points the right way" in words
    rows = [line for line in first.splitlines() if line.startswith("| told | **bounded** (the spec's D) |")]
    assert len(rows) == 1
