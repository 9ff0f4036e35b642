"""Everything that can be given wrongly, and the sentence that says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout import (
    Ladder,
    analyse,
    corollary5_epsilon,
    disagreements,
    evaluate,
    failure_probability,
    max_models,
    pack,
    required_examples,
    similarity_cover,
    theorem2_epsilon,
    theorem2_required_eta,
    tolerance,
)

GOOD: dict[str, Any] = {"n": 100, "error": 0.2, "epsilon": 0.1, "similarity": 0.9}
MATRIX = np.random.default_rng(0).random((3, 20)) < 0.3


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, float("nan"), float("inf"), None, "0.1", True])
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_epsilon_and_delta_lie_between_0_and_1(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"^{name} must (lie strictly between 0 and 1|be a number), not "):
        max_models(**{**GOOD, "delta": 0.05, name: value})
    with pytest.raises(SettingsError, match=f"^{name} must (lie strictly between 0 and 1|be a number), not "):
        analyse(MATRIX, **{"epsilon": 0.1, "delta": 0.05, name: value})


@pytest.mark.parametrize("value", [0, -5, 2.5, float("nan"), float("inf"), "many", True, [3]])
@pytest.mark.parametrize("name", ["n", "k", "cover_size"])
def test_counts_are_whole_and_positive(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"^{name} must be a (whole number of at least 1|number), not "):
        failure_probability(**{**GOOD, "k": 3, name: value})


def test_counts_have_an_end() -> None:
    with pytest.raises(SettingsError, match=r"^k must be at most 1e308, not a number of 401 digits"):
        failure_probability(**GOOD, k=10**400)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "x"])
@pytest.mark.parametrize("name", ["error", "similarity"])
def test_rates_lie_in_the_unit_interval(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"^{name} must (lie between 0 and 1|be a number), not "):
        tolerance(**{"n": 100, "k": 3, "error": 0.2, "similarity": 0.9, "delta": 0.05, name: value})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bound": "unoin"}, "bound must be one of union, similarity, naive-bayes, theorem-2, best, empirical"),
        ({"bound": "empirical"}, r"needs the models' outcomes: call analyse\(outcomes"),
        ({"bound": "bootstrap"}, r"needs the models' outcomes: call analyse\(outcomes"),
        ({"mode": "sequential"}, "mode must be one of non-adaptive, adaptive, not 'sequential'"),
        ({"mode": "adaptive", "feedback": "all"}, "feedback must be one of exact, pass-fail, ladder, not 'all'"),
        ({"mode": "adaptive", "feedback": "ladder", "ladder_step": 2}, "ladder_step must lie strictly between 0 and 1"),
        ({"bound": "similarity", "similarity": None}, "bound 'similarity' needs similarity="),
        ({"bound": "naive-bayes", "similarity": None}, "bound 'naive-bayes' needs similarity="),
        ({"bound": "theorem-2", "similarity": None}, "bound 'theorem-2' needs similarity="),
        ({"bound": "union", "error": None}, "bound 'union' needs error="),
        ({"bound": "best", "error": None}, "bound 'union' needs error="),
    ],
)
def test_choices(arguments: dict[str, Any], words: str) -> None:
    for ask in (failure_probability, evaluate):
        with pytest.raises(SettingsError, match=words):
            ask(**{**GOOD, "k": 3, **arguments})
    with pytest.raises(SettingsError, match=words):
        max_models(**{**GOOD, "delta": 0.05, **arguments})
    with pytest.raises(SettingsError, match=words):
        required_examples(**{"k": 3, "error": 0.2, "epsilon": 0.1, "similarity": 0.9, "delta": 0.05, **arguments})


def test_a_ladder_s_tolerance_needs_a_step() -> None:
    with pytest.raises(SettingsError, match="ladder_step must lie strictly between 0 and 1"):
        tolerance(k=3, n=100, error=0.2, delta=0.05, mode="adaptive", feedback="ladder")


def test_more_examples_than_anyone_has() -> None:
    with pytest.raises(DScoreError, match="More than 1,000,000,000 examples would be needed; use a larger epsilon"):
        required_examples(k=10, error=0.5, epsilon=1e-6, delta=0.05, bound="union")


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (np.zeros(5, dtype=bool), r"shape \(models, examples\), not \(5,\)"),
        (np.zeros((2, 0), dtype=bool), r"shape \(2, 0\) is empty"),
        (np.zeros((0, 5), dtype=bool), r"shape \(0, 5\) is empty"),
        ([[0, 1], [0]], "the rows differ in length"),
        ([[0, None], [0, 1]], "rows differ in length or are not numbers"),
        ([[0, 1, 2]], "only 0 .right. and 1 .wrong., but model 0, example 2 is 2"),
        ([[0.0, 1.0], [1.0, float("nan")]], "but model 1, example 1 is nan"),
        ([[0.0, 0.5]], "but model 0, example 1 is 0.5"),
        ([[0, -1]], "but model 0, example 1 is -1"),
        ([["right", "wrong"]], "not values of type"),
    ],
)
def test_outcomes(outcomes: Any, words: str) -> None:
    with pytest.raises(DScoreError, match=words):
        analyse(outcomes, epsilon=0.1, delta=0.05)


def test_a_vector_of_another_length() -> None:
    packed = pack(MATRIX)
    with pytest.raises(DScoreError, match=r"one outcome for each of the 20 examples, not shape \(19,\)"):
        disagreements(packed, MATRIX[0, :19])
    with pytest.raises(DScoreError, match="but example 3 is 7"):
        disagreements(packed, [0, 1, 0, 7] * 5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bound": "Best"}, "bound must be one of"),
        ({"similarity_estimate": "guess"}, "similarity_estimate must be one of plug-in, lower-confidence"),
        ({"mode": "adaptive", "bound": "empirical"}, "knows only the models that were scored"),
        ({"mode": "adaptive", "bound": "bootstrap"}, "knows only the models that were scored"),
        ({"similarity_estimate": "lower-confidence", "bound": "naive-bayes"}, "goes with mode = 'non-adaptive'"),
        ({"similarity_estimate": "lower-confidence", "mode": "adaptive"}, "goes with mode = 'non-adaptive'"),
        ({"confidence_share": 1.0, "similarity_estimate": "lower-confidence"}, "confidence_share must lie strictly"),
        ({"bound": "bootstrap", "draws": 0}, "draws must be a whole number of at least 1"),
    ],
)
def test_what_does_not_go_together(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        analyse(MATRIX, **{"epsilon": 0.1, "delta": 0.05, **arguments})


def test_closed_forms_and_the_ladder_check_too() -> None:
    with pytest.raises(SettingsError, match="alpha must lie between 0 and 1"):
        corollary5_epsilon(k=3, n=10, delta=0.05, alpha=1.5)
    with pytest.raises(SettingsError, match="delta must lie strictly between 0 and 1"):
        theorem2_epsilon(n=10, delta=0.0)
    with pytest.raises(SettingsError, match="epsilon must lie strictly between 0 and 1"):
        theorem2_required_eta(k=3, n=10, epsilon=-1.0)
    with pytest.raises(SettingsError, match="eta must lie between 0 and 1"):
        similarity_cover(np.eye(2), [0.1, 0.2], 1.2)
    with pytest.raises(SettingsError, match="ladder_step must lie strictly between 0 and 1"):
        Ladder(10, 0)
    with pytest.raises(SettingsError, match="n must be a whole number of at least 1"):
        Ladder(0, 0.1)
