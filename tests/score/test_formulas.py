"""The arithmetic of the score: numbers worked out by hand, and what must hold for all numbers."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pytest_dscore.score import DScore, formulas
from tests.score.hitting import correlated_hits, hits_for, result_of

close = pytest.approx

# n = 2, c = 5. Accuracy 8/10; f = .8 .6 .7 .9: drops 0 .2 .1 0, f~ = 0 2/3 1/3 0; a = .8 .4 .4 .4: a~ = .4 .2 .2 .2.
# Every number below comes from these fractions, worked out apart from the code.
#   |f~ - 1/4|^2 = (9 + 25 + 1 + 9) / 144 = 11/36       -> 0.552771
#   |a~ - 1/4|^2 = 0.0225 + 3 * 0.0025 = 0.03           -> 0.173205
#   |a - 0.8|^2  = 3 * 0.16 = 0.48                      -> 0.692820
#   |f~ - a~|^2  = 0.16 + 49/225 + 4/225 + 0.04 = 98/225, so v_fitness = 0.8 (1 - 49/225) = 0.8 * 176/225
#   g = 2 sqrt(3/4) + 2 * 4/5                           -> 3.332051
HAND = [8, 8, 6, 7, 9, 8, 4, 4, 4]


def test_by_hand_with_two_regions_that_matter() -> None:
    result = result_of(hits_for(HAND))
    assert result.accuracy.value == close(0.8)
    assert result.f_tilde == close(np.array([[0, 2 / 3], [1 / 3, 0]]))
    assert result.a_tilde == close(np.array([[0.4, 0.2], [0.2, 0.2]]))
    assert result.v_robust.value == close(1.4187962024)
    assert result.v_fitness.value == close(0.6257777778)
    assert result.g == close(3.3320508076)
    assert result.score.value == close(0.3593199157)
    assert result.augmentation_probability == close(1.4187962024 / 3.3320508076)
    # The kept shares are 1 .5 .5 .5: sqrt(3/4) instead of sqrt(0.48).
    assert result.v_robust_relative.value == close(1.5920012824)


def test_by_hand_the_ratio() -> None:
    assert result_of(hits_for(HAND), form="ratio").score.value == close(0.4410624803)


def test_by_hand_the_mean() -> None:
    # f adds up to 3.0 and a to 2.0, over eight passes.
    assert result_of(hits_for(HAND), form="mean").score.value == close(0.625)
    # Nothing hurts but one mutant and one shift, which get nothing right.
    assert result_of(hits_for([10, 0, 10, 10, 10, 10, 10, 10, 0]), form="mean").score.value == close(0.75)


@settings(max_examples=100)
@given(hits=hnp.arrays(bool, st.tuples(st.sampled_from([9, 19]), st.integers(1, 12))))
def test_the_mean_is_the_share_of_right_answers_in_all_changed_passes(hits: NDArray[Any]) -> None:
    score = result_of(hits, form="mean").score
    assert score.value == close(sum(map(sum, hits[1:].tolist())) / hits[1:].size)
    assert 0 <= score.value <= 1
    assert score.larger_is_better


def test_the_interval_of_the_mean_is_that_of_a_mean_of_examples() -> None:
    # Every example has a share of right answers of its own, and the score is their mean.
    hits = correlated_hits(400, 19, seed=5)
    score, shares = result_of(hits, form="mean", replicates=4000).score, hits[1:].mean(axis=0)
    half = 1.959964 * shares.std(ddof=1) / math.sqrt(400)
    assert score.lower == close(score.value - half, abs=0.1 * half)
    assert score.upper == close(score.value + half, abs=0.1 * half)


def test_by_hand_the_rest() -> None:
    result = result_of(hits_for(HAND))
    assert result.f.tolist() == [[0.8, 0.6], [0.7, 0.9]]
    assert result.a.tolist() == [[0.8, 0.4], [0.4, 0.4]]
    assert result.helpful_regions == ((1, 1),)
    assert result.worst_region == (0, 1)
    assert not result.no_deletion_hurts
    assert result.examples == 10


def test_by_hand_one_region_holds_everything() -> None:
    # n = 3, c = 10, accuracy 0.5: only the lower left region hurts, f~ = 1 there; a is 0.5 everywhere.
    # v_robust = sqrt(1 - 1/9) = 0.942809; |f~ - a~|^2 = 64/81 + 8/81 = 8/9; v_fitness = 0.5 * 5/9.
    result = result_of(hits_for([5, *[5, 5, 5, 5, 5, 5, 2, 5, 5], *[5] * 9]), classes=10)
    assert result.f_tilde.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert result.v_robust.value == close(0.9428090416)
    assert result.v_fitness.value == close(0.2777777778)
    assert result.score.value == close(0.2206663054)


@pytest.mark.parametrize(("n", "expected"), [(2, 3.532051), (3, 4.585618), (4, 5.536492)])
def test_worst_case_for_ten_classes(n: int, expected: float) -> None:
    assert round(formulas.g(n, 10), 6) == expected


def test_worst_case_for_two_classes() -> None:
    assert formulas.g(3, 2) == close(2 * math.sqrt(8 / 9) + 1.5)


def test_uniform_and_flagged_where_no_deletion_hurts() -> None:
    result = result_of(hits_for([5, *[5, 7, 5, 9], *[5, 5, 3, 5]]))
    assert result.no_deletion_hurts
    assert result.f_tilde.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert result.helpful_regions == ((0, 1), (1, 1))
    assert not result_of(hits_for([5, *[5, 7, 4, 9], *[5] * 4])).no_deletion_hurts


def test_uniform_attention_where_nothing_is_right_when_moved() -> None:
    result = result_of(hits_for([5, *[4] * 4, *[0] * 4]))
    assert result.a_tilde.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    # Only the third term is left: sqrt(4 * 0.25).
    assert result.v_robust.value == close(1.0)
    assert result.worst_region == (0, 0)


def test_a_model_that_is_never_right_scores_zero() -> None:
    result = result_of(np.zeros((9, 10)))
    assert (result.accuracy.value, result.v_fitness.value, result.score.value) == (0.0, 0.0, 0.0)
    assert math.isfinite(result.v_robust_relative.value)
    assert result_of(np.zeros((9, 10)), form="ratio").score.value == 0.0


def test_a_model_that_is_always_right_scores_one() -> None:
    result = result_of(np.ones((9, 10)))
    assert (result.score.value, result.v_robust.value, result.v_fitness.value) == (1.0, 0.0, 1.0)
    assert result.augmentation_probability == 0.0


def test_fitness_is_zero_where_attention_and_features_never_meet() -> None:
    f_tilde, a_tilde = np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])
    assert formulas.v_fitness(f_tilde, a_tilde, np.array(0.9)) == close(0.0)


def test_a_model_worse_than_chance_is_clipped_at_the_worst_case() -> None:
    # f~ and a~ are 1 in the upper left; v_robust = 2 sqrt(3/4) + sqrt(0.9^2 + 3) = 3.683973 > g(2, 2) = 2.732051.
    result = result_of(hits_for([10, *[0, 10, 10, 10], *[1, 0, 0, 0]]), classes=2)
    assert result.v_robust.value == close(3.6839729)
    assert result.v_fitness.value == close(1.0)
    assert result.score.value == 0.0
    assert result.augmentation_probability == 1.0


def test_only_v_robust_is_better_when_smaller() -> None:
    result = result_of(hits_for(HAND))
    better = {name: getattr(result, name).larger_is_better for name in ("accuracy", "score", "v_fitness", "v_robust")}
    assert better == {"accuracy": True, "score": True, "v_fitness": True, "v_robust": False}
    assert not result.v_robust_relative.larger_is_better


def hit_matrices() -> st.SearchStrategy[NDArray[Any]]:
    shapes = st.tuples(st.integers(2, 4), st.integers(2, 12)).map(lambda pair: (2 * pair[0] ** 2 + 1, pair[1]))
    return shapes.flatmap(lambda shape: hnp.arrays(bool, shape))


def accuracies() -> st.SearchStrategy[tuple[int, int, NDArray[Any]]]:
    """A grid, a number of classes, and accuracies that are no worse than chance."""

    def of(pair: tuple[int, int]) -> st.SearchStrategy[tuple[int, int, NDArray[Any]]]:
        n, classes = pair
        values = hnp.arrays(float, 2 * n * n + 1, elements=st.floats(1 / classes, 1))
        return values.map(lambda array: (n, classes, array))

    return st.tuples(st.integers(2, 5), st.integers(2, 1000)).flatmap(of)


many = settings(max_examples=150, deadline=None, database=None)


@many
@given(hit_matrices(), st.integers(2, 20))
def test_bounds(hits: NDArray[Any], classes: int) -> None:
    result = result_of(hits, classes)
    assert 0 <= result.score.value <= 1
    assert 0 <= result.v_fitness.value <= result.accuracy.value
    assert result.v_robust.value >= 0
    assert result.f_tilde.sum() == close(1)
    assert result.a_tilde.sum() == close(1)
    assert result.f_tilde.min() >= 0
    assert result.a_tilde.min() >= 0
    assert 0 <= result.augmentation_probability <= 1
    assert result.score.value <= result.accuracy.value


@many
@given(accuracies())
def test_v_robust_stays_below_g_where_no_accuracy_is_below_chance(given_: tuple[int, int, NDArray[Any]]) -> None:
    n, classes, values = given_
    clean, f, a = values[0], values[1 : n * n + 1], values[n * n + 1 :]
    f_tilde = formulas.feature_distribution(f, np.array(clean))
    robust = formulas.v_robust(f_tilde, formulas.attention_distribution(a), a, np.array(clean))
    assert robust <= formulas.g(n, classes) + 1e-9


def everything(result: DScore) -> dict[str, Any]:
    """All of a result but the hits, comparable."""
    return {name: np.asarray(value).tolist() for name, value in asdict(result).items() if name not in ("hits", "seed")}


@many
@given(hit_matrices(), st.randoms(use_true_random=False))
def test_the_order_of_examples_changes_nothing_at_all(hits: NDArray[Any], random: Any) -> None:
    order = list(range(hits.shape[1]))
    random.shuffle(order)
    before, after = result_of(hits, replicates=40), result_of(hits[:, order], replicates=40)
    assert everything(after) == everything(before)


@many
@given(hit_matrices(), st.integers(2, 4))
def test_giving_every_example_several_times_changes_no_point_estimate(hits: NDArray[Any], times: int) -> None:
    before, after = result_of(hits), result_of(np.tile(hits, times))
    for name in ("accuracy", "v_robust", "v_fitness", "score", "v_robust_relative"):
        assert getattr(after, name).value == close(getattr(before, name).value, abs=1e-12)
    for name in ("f", "a", "f_tilde", "a_tilde"):
        assert getattr(after, name) == close(getattr(before, name), abs=1e-12)


@many
@given(hit_matrices())
def test_renaming_the_regions_changes_no_figure(hits: NDArray[Any]) -> None:
    count = (len(hits) - 1) // 2
    turned = np.concatenate([hits[:1], hits[1 : count + 1][::-1], hits[count + 1 :][::-1]])
    before, after = result_of(hits), result_of(turned)
    for name in ("v_robust", "v_fitness", "score"):
        assert getattr(after, name).value == close(getattr(before, name).value, abs=1e-12)
    assert np.array_equal(after.f, before.f[::-1, ::-1])
