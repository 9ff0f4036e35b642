"""The intervals: against SciPy's bootstrap, and by how often they hold the truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pytest_dscore.score.bootstrap import hit_patterns
from tests.score.hitting import correlated_hits, result_of

CLASSES = 10


def figures(accuracy: Any) -> dict[str, Any]:
    """The score's figures at n = 2 and 10 classes, written out once more; accuracy (9, ...) pass by pass."""
    clean, f, a = accuracy[0], accuracy[1:5], accuracy[5:9]
    drops = np.clip(clean - f, 0, None)
    f_tilde = np.where(drops.sum(0) > 0, drops / np.where(drops.sum(0) > 0, drops.sum(0), 1), 0.25)
    a_tilde = a / a.sum(0)
    terms = [((f_tilde - 0.25) ** 2).sum(0), ((a_tilde - 0.25) ** 2).sum(0), ((a - clean) ** 2).sum(0)]
    v_robust = sum(term**0.5 for term in terms)
    v_fitness = clean * (1 - ((f_tilde - a_tilde) ** 2).sum(0) / 2)
    score = v_fitness * (1 - v_robust / 3.5320508076)
    return {"accuracy": clean, "v_robust": v_robust, "v_fitness": v_fitness, "score": score}


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize("name", ["accuracy", "v_robust", "v_fitness", "score"])
def test_intervals_agree_with_scipys(name: str, confidence: float) -> None:
    hits = correlated_hits(80, 9, seed=1)

    def statistic(index: Any, axis: int = -1) -> Any:
        return figures(hits[:, index].mean(axis=-1))[name]

    theirs = stats.bootstrap(
        (np.arange(80),),
        statistic,
        n_resamples=8000,
        confidence_level=confidence,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(3),
    ).confidence_interval
    figure = getattr(result_of(hits, CLASSES, replicates=8000, confidence=confidence), name)
    assert figure.value == pytest.approx(float(figures(hits.mean(axis=1))[name]))
    # Both have a Monte Carlo error: about 0.06 standard errors, or one step of 1/80 for an accuracy.
    allowed = 0.06 * (theirs.high - theirs.low) + (1 / 80 if name == "accuracy" else 0)
    assert figure.lower == pytest.approx(theirs.low, abs=allowed)
    assert figure.upper == pytest.approx(theirs.high, abs=allowed)
    assert figure.confidence == confidence


def test_intervals_of_each_regions_accuracy_agree_with_scipys() -> None:
    hits = correlated_hits(80, 9, seed=1)
    result = result_of(hits, CLASSES, replicates=8000)
    ends = np.stack([result.f_lower, result.f_upper]).reshape(2, 4), np.stack([result.a_lower, result.a_upper])
    ours = np.concatenate([ends[0], ends[1].reshape(2, 4)], axis=1)
    for row in range(8):
        theirs = stats.bootstrap(
            (hits[row + 1].astype(float),), np.mean, n_resamples=4000, rng=np.random.default_rng(row)
        ).confidence_interval
        assert ours[:, row] == pytest.approx(np.array([theirs.low, theirs.high]), abs=1.01 / 80)


@pytest.mark.parametrize(("passes", "count"), [(9, 50), (19, 200), (33, 7), (9, 1)])
def test_patterns_are_the_distinct_columns_with_their_counts(passes: int, count: int) -> None:
    hits = correlated_hits(count, passes, seed=passes)
    expected = Counter(tuple(bool(hit) for hit in hits[:, example]) for example in range(count))
    patterns, counts = hit_patterns(hits)
    got = {tuple(bool(hit) for hit in pattern): int(times) for pattern, times in zip(patterns, counts, strict=True)}
    assert len(got) == len(patterns)
    assert got == expected


def test_no_resamples_give_no_interval() -> None:
    result = result_of(correlated_hits(20, 9, seed=0), replicates=0)
    for figure in (result.accuracy, result.v_robust, result.v_fitness, result.score):
        assert math.isfinite(figure.value)
        assert math.isnan(figure.lower)
        assert math.isnan(figure.upper)
    assert np.isnan(result.f_lower).all()
    assert np.isnan(result.a_upper).all()


def ends(hits: NDArray[Any], **settings: Any) -> list[float]:
    result = result_of(hits, **settings)
    return [result.score.lower, result.score.upper, result.v_robust.lower, result.v_robust.upper]


def test_the_seed_decides() -> None:
    hits = correlated_hits(60, 9, seed=2)
    assert ends(hits, replicates=200, seed=4) == ends(hits, replicates=200, seed=4)
    assert ends(hits, replicates=200, seed=4) != ends(hits, replicates=200, seed=5)


def test_less_confidence_is_a_narrower_interval() -> None:
    hits = correlated_hits(200, 9, seed=2)
    wide = result_of(hits, replicates=2000, confidence=0.99).score
    narrow = result_of(hits, replicates=2000, confidence=0.5).score
    assert wide.lower < narrow.lower < narrow.value < narrow.upper < wide.upper


def test_four_times_the_examples_halve_the_interval() -> None:
    hits = correlated_hits(100, 9, seed=5)
    small, large = (result_of(np.tile(hits, times), replicates=4000).accuracy for times in (1, 4))
    assert (large.upper - large.lower) / (small.upper - small.lower) == pytest.approx(0.5, abs=0.07)


def test_chunks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hits = correlated_hits(60, 9, seed=2)
    whole = ends(hits, replicates=200)
    monkeypatch.setattr("pytest_dscore.score.bootstrap._CHUNK_CELLS", 500)
    assert ends(hits, replicates=200) == whole


@pytest.mark.parametrize("make", [np.ones, np.zeros])
def test_a_model_always_right_or_always_wrong_is_known_to_a_margin(make: Callable[..., Any]) -> None:
    result = result_of(make((9, 30)), replicates=100)
    exact = stats.binomtest(int(make(30).sum()), 30).proportion_ci(0.95, "exact")
    for lower, upper in ((result.accuracy.lower, result.accuracy.upper), (result.a_lower[0, 0], result.a_upper[0, 0])):
        assert (lower, upper) == pytest.approx((exact.low, exact.high))
    for figure in (result.v_robust, result.v_fitness, result.score):
        assert figure.lower == figure.value == figure.upper


def test_the_ratio_of_a_model_that_nothing_hurts_is_infinite() -> None:
    result = result_of(np.ones((9, 30)), form="ratio", replicates=100)
    assert result.score.value == math.inf
    assert (result.accuracy.value, result.accuracy.upper) == (1.0, 1.0)


def test_the_ratio_has_an_interval_where_some_resamples_are_infinite() -> None:
    # One example of six is lost when moved: a resample without it has v_robust = 0.
    hits = np.ones((9, 6), dtype=bool)
    hits[5:, 0] = False
    result = result_of(hits, form="ratio", replicates=300)
    assert math.isfinite(result.score.value)
    assert result.score.lower <= result.score.value


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    population = correlated_hits(20_000, 9, seed=7)
    truth = {name: float(value) for name, value in figures(population.mean(axis=1)).items()}
    rng = np.random.default_rng(0)
    held: Counter[str] = Counter()
    draws = 200
    for draw in range(draws):
        sample = population[:, rng.integers(0, population.shape[1], size=500)]
        result = result_of(sample, CLASSES, replicates=300, seed=draw)
        for name, value in truth.items():
            figure = getattr(result, name)
            held[name] += figure.lower <= value <= figure.upper
    for name in truth:
        assert 0.88 <= held[name] / draws <= 0.995, name


def test_an_interval_never_leaves_its_estimate_out() -> None:
    for seed in range(60):
        hits = np.random.default_rng(seed).random((9, 20)) < 0.97
        result = result_of(hits, replicates=100)
        for figure in (result.accuracy, result.v_robust, result.v_fitness, result.score, result.v_robust_relative):
            assert figure.lower <= figure.value <= figure.upper
        assert (result.f_lower <= result.f).all()
        assert (result.a <= result.a_upper).all()
