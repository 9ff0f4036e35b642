"""Paired changes: against SciPy's bootstrap, by how often they raise a false alarm, and how often they see a drop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.gates.baseline import drop_of
from pytest_dscore.score.change import CHANGES, changes, examples_to_settle
from pytest_dscore.score.result import Recipe
from tests.score.hitting import correlated_hits
from tests.score.test_bootstrap import figures

CLASSES = 10
RUNS = 200
NOMINAL = 0.05 * RUNS


def recipe(replicates: int = 300, seed: int = 0) -> Recipe:
    return Recipe(2, "delete", "bounded", (0, 0), (0.0,), False, replicates, 0.95, seed)


def naive(accuracy: Any, name: str) -> Any:
    """A figure of one model, written out once more; accuracy (9, ...)."""
    return accuracy[5:9].min(0) if name == "worst_region" else figures(accuracy)[name]


@pytest.mark.parametrize("name", CHANGES)
def test_changes_agree_with_scipys_paired_bootstrap(name: str) -> None:
    both = correlated_hits(120, 18, seed=4)

    def statistic(index: Any, axis: int = -1) -> Any:
        drawn = both[:, index].mean(axis=-1)
        return naive(drawn[:9], name) - naive(drawn[9:], name)

    theirs = stats.bootstrap(
        (np.arange(120),),
        statistic,
        n_resamples=8000,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(3),
    ).confidence_interval
    found = changes(both[:9], both[9:], recipe(8000), CLASSES, CLASSES)[name]
    assert found.value == pytest.approx(float(statistic(np.arange(120))))
    allowed = 0.08 * (theirs.high - theirs.low) + (1 / 120 if name in ("accuracy", "worst_region") else 0)
    assert found.lower == pytest.approx(theirs.low, abs=allowed)
    assert found.upper == pytest.approx(theirs.high, abs=allowed)


def test_a_model_compared_with_itself_has_not_changed() -> None:
    hits = correlated_hits(60, 9, seed=2)
    for change in changes(hits, hits, recipe(), CLASSES, CLASSES).values():
        assert (change.value, change.lower, change.upper) == (0.0, 0.0, 0.0)


def test_other_examples_are_refused() -> None:
    with pytest.raises(DScoreError, match="cannot be compared"):
        changes(correlated_hits(60, 9, seed=2), correlated_hits(61, 9, seed=2), recipe(), CLASSES, CLASSES)


# Accuracies of the 9 passes (clean, four mutants, four shifts) of a model and of a worse one.
GOOD = np.array([0.93, 0.85, 0.80, 0.82, 0.76, 0.88, 0.84, 0.86, 0.80])
WORSE = np.array([0.90, 0.80, 0.76, 0.80, 0.70, 0.82, 0.78, 0.84, 0.68])


def draw(rng: np.random.Generator, examples: int, then: NDArray[Any], now: NDArray[Any]) -> NDArray[np.bool_]:
    """Hits of both models, the earlier one last: hard examples are hard in all passes and for both."""
    marginal = np.concatenate([now, then])
    hardness = rng.standard_normal(examples)
    of_pass = np.tile(rng.standard_normal((9, examples)), (2, 1))
    own = rng.standard_normal((18, examples))
    latent = math.sqrt(0.5) * hardness + math.sqrt(0.3) * of_pass + math.sqrt(0.2) * own
    return np.asarray(latent < stats.norm.ppf(marginal)[:, None])


def true_drops(then: NDArray[Any], now: NDArray[Any]) -> dict[str, float]:
    return {
        name: drop_of(Figure(float(naive(now, name) - naive(then, name)), 0, 0, CHANGES[name])).value
        for name in CHANGES
    }


def simulate(then: NDArray[Any], now: NDArray[Any], examples: int, limits: dict[str, float]) -> dict[str, int]:
    """In how many runs each figure's drop is said to exceed its limit."""
    rng = np.random.default_rng(7)
    alarms = dict.fromkeys(CHANGES, 0)
    for run in range(RUNS):
        both = draw(rng, examples, then, now)
        found = changes(both[:9], both[9:], recipe(300, run), CLASSES, CLASSES)
        for name, change in found.items():
            alarms[name] += drop_of(change).lower > limits[name]
    return alarms


def test_false_alarms_are_no_more_than_nominal() -> None:
    # The true drop is the limit itself, the hardest case; the nominal level of a 95 % interval is 5 %.
    limits = true_drops(GOOD, WORSE)
    alarms = simulate(GOOD, WORSE, 500, limits)
    print(f"false alarms of {RUNS} at a true drop equal to the limit: {alarms}")
    assert max(alarms.values()) <= NOMINAL
    assert min(alarms.values()) > 0


def test_no_drop_at_all_hardly_ever_exceeds_a_small_tolerance() -> None:
    alarms = simulate(GOOD, GOOD, 500, dict.fromkeys(CHANGES, 0.02))
    print(f"alarms of {RUNS} without any drop, tolerance 0.02: {alarms}")
    assert max(alarms.values()) <= NOMINAL


def test_a_real_drop_is_seen() -> None:
    limits = {name: drop - 0.06 for name, drop in true_drops(GOOD, WORSE).items()}
    alarms = simulate(GOOD, WORSE, 1000, limits)
    print(f"alarms of {RUNS} with 1,000 examples at a drop 0.06 above the limit: {alarms}")
    assert min(alarms[name] for name in ("score", "v_fitness", "accuracy", "worst_region")) > 0.8 * RUNS


def test_pairing_is_what_makes_the_interval_narrow() -> None:
    both = draw(np.random.default_rng(1), 1000, GOOD, WORSE)
    paired = changes(both[:9], both[9:], recipe(1000), CLASSES, CLASSES)["accuracy"]
    mixed = np.random.default_rng(2).permutation(1000)
    unpaired = changes(both[:9], both[9:][:, mixed], recipe(1000), CLASSES, CLASSES)["accuracy"]
    assert paired.upper - paired.lower < 0.85 * (unpaired.upper - unpaired.lower)


@pytest.mark.parametrize(
    ("figure", "limit", "expected"),
    [
        # Half a width of 0.04 must become 0.01: four times as narrow, 16 times the 100 examples.
        (Figure(0.71, 0.67, 0.75), 0.70, 1500),
        (Figure(0.69, 0.65, 0.73), 0.70, 1500),
        (Figure(0.71, 0.69, 0.95), 0.70, 300),
        (Figure(0.70, 0.65, 0.75), 0.70, None),
        (Figure(math.inf, 0.65, math.inf), 0.70, None),
    ],
)
def test_how_many_more_examples_would_settle_it(figure: Figure, limit: float, expected: int | None) -> None:
    assert examples_to_settle(figure, limit, 100) == (None if expected is None else pytest.approx(expected, abs=1))
