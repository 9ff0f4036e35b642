"""Figures of the study: the library's own on the same hits, hand numbers, weightings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.study import scores
from benchmarks.study.scores import DEFAULT, DEFAULT_NAME, Accuracies, Passes, Setting
from tests.benchmarks.populations import TRANSFORMS, network
from tests.score.hitting import result_of

NETWORK = network(4, 0.9, 0.7, 0.5, examples=300)
NAMED = {variant.name: variant for variant in scores.registered()}


@pytest.mark.parametrize(
    "setting", [Setting(2, "delete", 1.0), DEFAULT, Setting(4, "shuffle", 1.0), Setting(3, "noise", 1.5)]
)
def test_figures_are_the_librarys(setting: Setting) -> None:
    n = setting.n
    shifts = NETWORK.shifts[n, round(setting.pad * round(32 / n))]
    hits = np.concatenate([NETWORK.clean[None], NETWORK.mutants[n, setting.operator, 0], shifts])
    passes = scores.accuracies(NETWORK).at(setting)
    assert scores.ratio(passes) == pytest.approx(result_of(hits, 10, "ratio").score.value, abs=1e-12)
    theirs = result_of(hits, 10)
    assert scores.bounded(passes) == pytest.approx(theirs.score.value, abs=1e-12)
    assert scores.robust(passes) == pytest.approx(-theirs.v_robust.value, abs=1e-12)
    assert scores.robust_relative(passes) == pytest.approx(-theirs.v_robust_relative.value, abs=1e-12)
    assert scores.fitness(passes) == pytest.approx(theirs.v_fitness.value, abs=1e-12)
    assert scores.accuracy(passes) == pytest.approx(theirs.accuracy.value, abs=1e-12)


def test_a_weighting_is_a_test_set_with_repeated_examples() -> None:
    counts = np.random.default_rng(0).multinomial(250, np.full(300, 1 / 300), size=4)
    weighted = scores.accuracies(NETWORK, counts)
    for row in range(4):
        chosen = np.repeat(np.arange(300), counts[row])
        smaller = dataclasses.replace(
            NETWORK,
            labels=NETWORK.labels[chosen],
            clean=NETWORK.clean[chosen],
            mutants={key: hits[:, chosen] for key, hits in NETWORK.mutants.items()},
            shifts={key: hits[:, chosen] for key, hits in NETWORK.shifts.items()},
            unseen={key: hits[chosen] for key, hits in NETWORK.unseen.items()},
        )
        once = scores.accuracies(smaller)
        for variant in scores.registered():
            assert variant(weighted)[row] == pytest.approx(float(variant(once)), abs=1e-12), variant.name
        assert scores.target(weighted)[row] == pytest.approx(float(scores.target(once)), abs=1e-12)


def test_the_registered_variants_are_finite_named_and_explained() -> None:
    assert len(NAMED) == len(scores.registered())
    assert 80 <= len(NAMED) <= 150
    assert {DEFAULT_NAME, scores.ACCURACY_NAME} <= set(NAMED)
    assert all(variant.principle.endswith((".", "?")) and "|" not in variant.principle for variant in NAMED.values())
    assert scores.common([NETWORK]) == scores.registered()


def test_candidates_lie_between_0_and_1_and_rest_on_both_experiments() -> None:
    rng = np.random.default_rng(3)
    passes = {n: Passes(rng.random(200), rng.random((200, n * n)), rng.random((200, n * n)), n, 10) for n in (2, 3, 4)}
    for variant in NAMED.values():
        p = passes[variant.settings[0].n]
        value = variant.form(p)
        others = (p._replace(f=rng.random(p.f.shape)), p._replace(a=rng.random(p.a.shape)))
        rests_on = [bool(np.any(variant.form(other) != value)) for other in others]
        if variant.candidate:
            assert value.min() >= 0, variant.name
            assert value.max() <= 1, variant.name
            assert all(rests_on), variant.name
        elif variant.form not in (scores.ratio, scores.ratio_relative, scores.robust, scores.robust_relative):
            assert not all(rests_on), variant.name


def made_of(clean: float, f: list[float], a: list[float]) -> Passes:
    return Passes(np.array(clean), np.array(f), np.array(a), 2, 10)


def test_hand_numbers_of_some_forms() -> None:
    # Drops 0.4, 0, 0, 0: all features in one region; shares of a are even.
    p = made_of(0.8, [0.4, 0.8, 0.8, 0.8], [0.6, 0.6, 0.6, 0.6])
    uneven = np.sqrt(0.75)
    assert scores.terms(p) == pytest.approx((uneven, 0.0, 0.4))
    assert scores.terms(p, relative=True).drop == pytest.approx(0.5)
    assert scores.worst(p) == pytest.approx((uneven, uneven, 1.8))
    fitness = 0.8 * (1 - 0.5 * (0.75**2 + 3 * 0.25**2))
    assert scores.bounded(p) == pytest.approx(fitness * (1 - (uneven + 0.4) / (2 * uneven + 1.8)))
    assert scores.features_only(p) == pytest.approx(0.0)
    assert scores.attention_only(p) == pytest.approx(fitness)
    assert scores.drop_only(p) == pytest.approx(fitness * (1 - 0.4 / 1.8))
    assert scores.without_features(p) == pytest.approx(fitness * (1 - 0.4 / (uneven + 1.8)))
    assert scores.weighted(0.25, 0.5, 0.25)(p) == pytest.approx(0.8 * (1 - 0.25 - 0.25 * 0.5 / 1.8))
    assert scores.mean_hit(p) == pytest.approx((0.7 + 0.6) / 2)
    assert scores.worst_hit(p) == pytest.approx((0.4 + 0.6) / 2)
    assert scores.rms_a(p) == pytest.approx(0.8 - 0.2)
    assert scores.geometric(p) == pytest.approx(0.0)
    # The entropy of one share of 1 is 0, its unevenness 1; that of even shares 0.
    assert scores.entropy(p) == pytest.approx(fitness * (1 - (1 + 0 + 0.5 / 1.8) / 3))


def test_a_network_that_nothing_changes_has_its_accuracy_for_a_score() -> None:
    p = made_of(0.9, [0.9] * 4, [0.9] * 4)
    for form in scores.FORMS:
        if form not in (scores.robust, scores.robust_relative, scores.ratio, scores.ratio_relative, scores.geometric):
            assert form(p) == pytest.approx(0.9), form
    assert scores.robust(p) == 0.0


def test_a_network_that_is_never_right_is_no_error() -> None:
    p = made_of(0.0, [0.0] * 4, [0.0] * 4)
    for form in (*scores.FORMS, scores.weighted(0.5, 0.25, 0.25)):
        if form not in (scores.robust, scores.robust_relative):
            assert form(p) == pytest.approx(0.0), form


def test_a_mean_over_settings_is_the_mean() -> None:
    figures = scores.accuracies(NETWORK)
    single = [NAMED[f"bounded; {Setting(n, 'delete', 1.0)}"](figures) for n in (2, 3, 4)]
    assert NAMED["bounded; mean over all n"](figures) == pytest.approx(np.mean(single))


@pytest.mark.parametrize(("size", "n", "pads"), [(28, 3, (4, 9, 14)), (32, 3, (6, 11, 16)), (28, 4, (4, 7, 10))])
def test_pads_are_found_however_half_a_pixel_was_rounded(size: int, n: int, pads: tuple[int, ...]) -> None:
    empty = np.zeros(n * n)
    figures = Accuracies(10, size, np.zeros(()), {}, {(n, pad): empty for pad in pads}, {})
    assert tuple(scores.pixels(figures, n, pad) for pad in (0.5, 1.0, 1.5)) == pads
    with pytest.raises(KeyError, match="no such shifts"):
        scores.pixels(figures, n, 3.0)


def test_what_was_not_measured_is_left_out() -> None:
    less = network(5, 0.9, 0.7, 0.5, grids=(3,), operators=("delete",), examples=20)
    names = {variant.name for variant in scores.common([NETWORK, less])}
    assert DEFAULT_NAME in names
    assert f"bounded; {Setting(2, 'delete', 1.0)}" not in names
    assert f"bounded; {Setting(3, 'noise', 1.0)}" not in names
    with pytest.raises(KeyError, match="no such mutants"):
        scores.accuracies(less).at(Setting(3, "noise", 1.0))


def test_families_count_alike_however_many_transforms_they_have() -> None:
    values = {name: np.array(value) for name, value in zip(TRANSFORMS, (0.1, 0.2, 0.3, 0.5, 0.8), strict=True)}
    figures = Accuracies(10, 32, np.zeros(()), {}, {}, values)
    assert scores.families(figures) == pytest.approx({"crop": 0.1, "rescale": 0.2, "rotate": 0.4, "translate": 0.8})
    assert scores.target(figures) == pytest.approx(1.5 / 4)
