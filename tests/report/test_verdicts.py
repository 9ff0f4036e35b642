"""What is a failure: nothing that was not judged passes, and each failed gate gets its own reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dscore.report.contents import Place
from tests.report import junit
from tests.report.conftest import Command, Gathered
from tests.report.junit import Case

KNOWN = {"model": "digits", "threshold.min_score": 0.5}


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (Case(properties=junit.model()), 0),
        (junit.failing(), 1),
        (Case(properties=junit.model() | {"verdict.min_score": "inconclusive"}), 0),
        (Case(properties=junit.model() | {"verdict.min_score": "inconclusive"}, failure="not sure\nx.py:1"), 1),
        (Case(properties=KNOWN | {"verdict.min_score": "error"}, failure="cannot be scored"), 1),
        (Case(properties=KNOWN, failure="worker 'gw0' crashed", kind="error"), 1),
        (Case(properties=KNOWN, failure="not today", kind="skipped"), 1),
        (Case(properties=KNOWN), 1),
        (Case(properties=junit.model() | {"verdict.min_score": "fail"}), 1),
        (Case(properties=junit.model(), failure="AssertionError: assert 1 == 2"), 1),
        (Case(properties=junit.model(), failure="teardown broke", kind="error"), 1),
        (Case(properties={"model": "digits"}), 0),
        (Case(properties={"model": "digits"}, failure="assert 0"), 1),
        (Case(properties=junit.holdout()), 0),
        (Case(properties=junit.holdout() | {"holdout.verdict.budget": "fail"}, failure="spent"), 1),
        (Case(properties=junit.protocol()), 0),
        (Case(properties=junit.protocol() | {"protocol.verdict.leaks": "fail"}, failure="leaks"), 1),
    ],
)
def test_exit_codes(case: Case, code: int, command: Command) -> None:
    junit.write(Path("report.xml"), [case])
    for form in ("markdown", "github", "json", "html"):
        result = command("report.xml", "--format", form)
        assert (result.code, result.err) == (code, "")


def test_one_failure_among_many_files_fails(command: Command) -> None:
    junit.write(Path("a.xml"), [Case(properties=junit.model())])
    junit.write(Path("b.xml"), [junit.failing()])
    assert command("a.xml").code == 0
    assert command("a.xml", "b.xml").code == 1


def test_a_failed_baseline_fails_nothing(command: Command) -> None:
    junit.write(Path("a.xml"), [Case(properties=junit.model())])
    junit.write(Path("b.xml"), [junit.failing()])
    assert command("a.xml", "--baseline", "b.xml").code == 0


def test_each_failed_gate_has_its_own_line(gathered: Gathered) -> None:
    changes = {
        "verdict.min_score": "fail",
        "threshold.max_v_robust": 0.1,
        "verdict.max_v_robust": "fail",
        "threshold.min_accuracy": 0.1,
        "verdict.min_accuracy": "pass",
    }
    text = "D-Score too low\nv_robust too high\nfigures with 95 % intervals:\n  x\ntests/test_a.py:7"
    report = gathered([Case(properties=junit.model() | changes, failure=text)])
    assert [(gate.name, gate.failed, gate.reason) for _, gate in report.gates] == [
        ("min_score", True, "D-Score too low"),
        ("max_v_robust", True, "v_robust too high"),
        ("min_accuracy", False, ""),
    ]
    assert {gate.place for _, gate in report.gates} == {Place("tests/test_a.py", 7)}


def test_one_line_for_all_gates_of_a_model_that_cannot_be_scored(gathered: Gathered) -> None:
    both = {"threshold.max_v_robust": 1.0, "verdict.max_v_robust": "error", "verdict.min_score": "error"}
    report = gathered([Case(properties=KNOWN | both, failure="model 'digits' cannot be scored: no weights\nx.py:3")])
    assert [gate.reason for _, gate in report.gates] == ["model 'digits' cannot be scored: no weights"] * 2


def test_an_undecided_gate_beside_a_failed_one_is_not_given_its_reason(gathered: Gathered) -> None:
    changes = {
        "threshold.max_drop.score": 0.05,
        "verdict.max_drop.score": "inconclusive",
        "verdict.min_score": "fail",
        **junit.figure("drop.score", 0.0625),
        "more_examples": {"max_drop.score": 4100},
    }
    report = gathered([Case(properties=junit.model() | changes, failure="D-Score too low\nx.py:3")])
    gates = {gate.name: gate for _, gate in report.gates}
    assert (gates["min_score"].reason, gates["min_score"].failed) == ("D-Score too low", True)
    assert (gates["max_drop.score"].reason, gates["max_drop.score"].failed) == ("", False)


def test_a_test_that_failed_by_itself_is_a_gate_of_its_own(gathered: Gathered) -> None:
    text = "assert 0.5 > 0.9\n\ntests/test_a.py:7: AssertionError"
    report = gathered([Case(name="test_a", classname="tests.test_a", properties=junit.model(), failure=text)])
    assert [(gate.name, gate.outcome) for _, gate in report.gates] == [("min_score", "pass"), ("", "fail")]
    assert report.failures[0][1].reason == "assert 0.5 > 0.9"
    assert report.failures[0][1].place == Place("tests/test_a.py", 7)


@pytest.mark.parametrize(
    ("last", "attributes", "place"),
    [
        ("pyproject.toml:4", {}, Place("pyproject.toml", 4)),
        ("my tests/test_a.py:12: AssertionError", {}, Place("my tests/test_a.py", 12)),
        (r"C:\repo\test_a.py:12", {}, Place(r"C:\repo\test_a.py", 12)),
        ("nothing here", {"file": "tests/test_a.py", "line": "0"}, Place("tests/test_a.py", 1)),
        ("nothing here", {"file": "tests/test_a.py", "line": "41"}, Place("tests/test_a.py", 42)),
        ("nothing here", {"file": "tests/test_a.py"}, Place("tests/test_a.py")),
        ("nothing here", {"file": "tests/test_a.py", "line": "x"}, Place("tests/test_a.py")),
        ("the ratio is 1:2", {}, None),
        ("x.py:0", {}, None),
    ],
)
def test_the_place_of_a_failure(last: str, attributes: dict[str, str], place: Place | None, gathered: Gathered) -> None:
    case = Case(properties=junit.model() | {"verdict.min_score": "fail"}, failure=f"low\n{last}", attributes=attributes)
    assert gathered([case]).failures[0][1].place == place


def test_the_state_of_a_holdout_is_its_last(gathered: Gathered) -> None:
    cases = [Case(name=f"t{used}", properties=junit.holdout(used=used, share=used / 10)) for used in (5, 9, 7)]
    [state] = gathered(cases).holdouts
    assert state.facts["models_used"] == 9
    assert state.uses == ((5, 0.5), (7, 0.7), (9, 0.9))
    assert len(state.gates) == 3
