"""Before and now: paired where the gate paired them, else two independent scores, and never apples with pears."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_dscore.figure import Figure
from pytest_dscore.report.comparing import compare, difference
from pytest_dscore.report.gathering import gather
from tests.report import junit
from tests.report.conftest import Command, Gathered
from tests.report.junit import Case


def test_a_difference_of_independent_figures_covers_as_it_says() -> None:
    """Two binomial shares, each with its 95 % Wald interval: the difference is covered about 95 % of the time."""
    rng = np.random.default_rng(0)
    n, covered, rounds = 400, 0, 4000
    for first, second in zip(rng.binomial(n, 0.8, rounds) / n, rng.binomial(n, 0.7, rounds) / n, strict=True):
        halves = [1.96 * math.sqrt(share * (1 - share) / n) for share in (first, second)]
        found = difference(
            Figure(first, first - halves[0], first + halves[0]), Figure(second, second - halves[1], second + halves[1])
        )
        covered += found.lower <= 0.1 <= found.upper
    assert 0.94 < covered / rounds < 0.96


def test_lopsided_intervals_give_a_lopsided_difference() -> None:
    found = difference(Figure(0.5, 0.47, 0.6), Figure(0.4, 0.36, 0.7))
    assert found.value == pytest.approx(0.1)
    assert found.lower == pytest.approx(0.1 - math.hypot(0.03, 0.3))
    assert found.upper == pytest.approx(0.1 + math.hypot(0.1, 0.04))


def test_intervals_of_two_confidences_are_not_mixed() -> None:
    found = difference(Figure(0.5, 0.4, 0.6), Figure(0.4, 0.3, 0.5, confidence=0.9))
    assert found.value == pytest.approx(0.1)
    assert math.isnan(found.lower)
    assert math.isnan(found.upper)


def test_the_gate_s_own_comparison_comes_first(gathered: Gathered) -> None:
    recorded = {"baseline": {"figures": {"score": 0.7}}, "change": {"score": {"value": 0.1, "lower": 0, "upper": 0.2}}}
    report = gathered([Case(properties=junit.model() | recorded)], [Case(properties=junit.model(score=0.5))])
    before = report.scores[0].before
    assert before is not None
    assert before.paired
    assert before.figures["score"].value == 0.7
    assert before.changes["score"] == Figure(0.1, 0.0, 0.2)


@pytest.mark.parametrize(
    "other", [{"n": 3}, {"operator": "noise"}, {"form": "ratio"}, {"pad": [1, 1]}, {"fill": [0.5]}], ids=str
)
def test_other_settings_are_not_compared(other: dict[str, Any], gathered: Gathered) -> None:
    n = other.get("n", 2)
    report = gathered([Case(properties=junit.model())], [Case(properties=junit.model(**{"n": n, **other}))])
    before = report.scores[0].before
    assert before is not None
    assert before.changes == {}
    assert "other settings" in before.remark
    assert report.scores[0].history == ()


def test_another_way_to_resize_is_not_compared(gathered: Gathered) -> None:
    then = junit.model(versions={"interpolation": "nearest"})
    before = gathered([Case(properties=junit.model())], [Case(properties=then)]).scores[0].before
    assert before is not None
    assert before.changes == {}
    assert "resized by another method" in before.remark


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "the model is the very same as then"),
        ({"model_fingerprint": "c3" * 32}, ""),
        ({"model_fingerprint": "c3" * 32, "data_fingerprint": "d4" * 32}, "the data are others than then"),
    ],
)
def test_what_was_compared_is_said(changes: dict[str, Any], said: str, gathered: Gathered) -> None:
    before = gathered([Case(properties=junit.model())], [Case(properties=junit.model(**changes))]).scores[0].before
    assert before is not None
    assert before.remark == said
    assert set(before.changes) == {"score", "v_robust", "v_fitness", "accuracy"}


def test_a_baseline_with_two_scores_of_a_model_is_not_guessed_at(gathered: Gathered) -> None:
    two = [Case(properties=junit.model()), Case(properties=junit.model(model_fingerprint="c3" * 32))]
    before = gathered([Case(properties=junit.model())], two).scores[0].before
    assert before is not None
    assert before.changes == {}
    assert "2 scores of this model" in before.remark


def test_a_matrix_is_compared_job_by_job(tmp_path: Path) -> None:
    def files(scores: dict[str, float], day: int) -> list[Path]:
        return [
            junit.write(
                tmp_path / f"{day}-{suite}.xml",
                [Case(properties=junit.model(score=score))],
                suite=suite,
                timestamp=f"2026-11-{day}T10:00:00",
            )
            for suite, score in scores.items()
        ]

    report = compare(gather(files({"a": 0.8, "b": 0.6}, 30)), gather(files({"a": 0.7, "b": 0.65}, 29)))
    changes = [score.before.changes["score"].value for score in report.scores if score.before is not None]
    assert changes == pytest.approx([0.1, -0.05])


def test_a_new_model_has_no_before(gathered: Gathered) -> None:
    assert gathered([Case(properties=junit.model("new"))], [Case(properties=junit.model())]).scores[0].before is None


def test_history_is_in_the_order_of_the_runs(tmp_path: Path) -> None:
    days = {30: 0.8, 27: 0.5, 29: 0.7}
    paths = [
        junit.write(tmp_path / f"{day}.xml", [Case(properties=junit.model(score=s))], timestamp=f"2026-11-{day}T10:00")
        for day, s in days.items()
    ]
    base = [Case(properties=junit.model(score=0.6))]
    baseline = junit.write(tmp_path / "base.xml", base, timestamp="2026-11-28T10:00")
    report = compare(gather(paths), gather([baseline]))
    histories = {s.figures["score"].value: [p.figures["score"].value for p in s.history] for s in report.scores}
    assert histories == {0.8: [0.5, 0.6, 0.7], 0.5: [], 0.7: [0.5, 0.6]}


def test_uses_of_a_holdout_in_the_baseline_are_part_of_its_history(gathered: Gathered) -> None:
    now, then = (Case(properties=junit.holdout(used=used, share=used / 10)) for used in (5, 3))
    assert gathered([now], [then]).holdouts[0].uses == ((3, 0.3), (5, 0.5))


def test_a_report_is_not_its_own_baseline(command: Command) -> None:
    junit.write(Path("a.xml"), [Case(properties=junit.model())])
    assert "its own baseline" in command("a.xml", "--baseline", "./a.xml").sentence


def test_a_baseline_without_gates_is_an_error(command: Command) -> None:
    junit.write(Path("a.xml"), [Case(properties=junit.model())])
    Path("b.xml").write_text("<testsuites/>")
    assert "b.xml holds no gate" in command("a.xml", "--baseline", "b.xml").sentence
    assert "c.xml: No such file" in command("a.xml", "--baseline", "c.xml").sentence
