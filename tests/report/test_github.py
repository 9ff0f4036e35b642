"""Annotations: at the threshold's file and line, and nothing in them can start a command."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from pytest_dscore.report.github import render
from tests.report import junit
from tests.report.conftest import Command, Gathered
from tests.report.junit import Case
from tests.report.test_markdown import ATTACKS

COMMAND = re.compile(r"::(error|warning|notice)( [a-z]+=[^,:\n\r]*(,[a-z]+=[^,:\n\r]*)*)?::([^\n\r]*)")


def test_a_failure_is_an_error_at_its_threshold(gathered: Gathered) -> None:
    assert render(gathered([junit.failing()])).splitlines() == [
        "::error file=pyproject.toml,line=4,title=digits%3A min_score::D-Score 0.400 [0.338, 0.463] < 0.500 for model "
        "'digits' (n=2): accuracy falls most lower right",
        "::notice title=dscore report::1 of 1 gate failed",
    ]


def test_xunit1_counts_lines_from_0(gathered: Gathered) -> None:
    case = Case(
        name="test_a",
        properties=junit.model() | {"verdict.min_score": "inconclusive"},
        attributes={"file": "tests/test_a.py", "line": "6"},
    )
    [first, _] = render(gathered([case])).splitlines()
    assert first == (
        "::warning file=tests/test_a.py,line=7,title=digits%3A min_score::D-Score 0.800 [0.738, 0.863] of 'digits' is "
        "inconclusive against min_score >= 0.5"
    )


def test_warnings_follow_the_errors(gathered: Gathered) -> None:
    report = gathered([Case(properties=junit.model("other", remarks=["is 0 really black?"])), junit.failing()])
    words = [line.partition(" ")[0] for line in render(report).splitlines()]
    assert words == ["::error", "::warning", "::warning", "::notice"]  # the second: a test's name stands twice


def test_a_gate_that_cannot_fail_is_a_warning(gathered: Gathered) -> None:
    vacuous = {"threshold.max_v_robust": 4.0, "verdict.max_v_robust": "pass"}
    text = render(gathered([Case(properties=junit.model() | vacuous)]))
    assert "::max_v_robust = 4 cannot fail: v_robust stays below g(n, c) = 3.532" in text


def test_everything_is_escaped(gathered: Gathered) -> None:
    case = junit.failing(model="a,b:c%d")
    case.failure = "100 % wrong, 50%0A\nsrc/a,b%.py:3"
    [error, _] = render(gathered([case])).splitlines()
    assert error == "::error file=src/a%2Cb%25.py,line=3,title=a%2Cb%3Ac%25d%3A min_score::100 %25 wrong, 50%250A"


@pytest.mark.parametrize("attack", [*ATTACKS, "x\n::error::owned", "x\r::add-mask::y", "%0A::error::z", "a,line=9"])
def test_no_name_starts_a_command_of_its_own(attack: str, gathered: Gathered) -> None:
    name = "".join(c for c in attack if c >= " " or c in "\n\r")
    cases = [
        Case(name=name, properties=junit.model(name, remarks=[name]) | {f"verdict.{name}": "fail"}, failure=name),
        Case(name=name, properties=junit.holdout(name, remarks=[name]), attributes={"file": name, "line": "3"}),
    ]
    lines = re.split(r"[\n\r]", render(gathered(cases)).removesuffix("\n"))
    assert len(lines) == 5
    for line in lines:
        assert COMMAND.fullmatch(line), line
        assert line.isprintable(), "such as a character that turns the direction of what follows"
    [title] = re.findall(r"title=(.*?)::", lines[0])
    # Percent-escapes are undone by the runner once; what comes out must be the text itself, on one line.
    assert "\n" not in unquote(title)
    assert unquote(title).startswith(" ".join(name.split())[:1].strip())


def test_the_command(command: Command) -> None:
    junit.write(Path("report.xml"), [junit.failing()])
    result = command("report.xml", "--format", "github")
    assert result.code == 1
    assert result.out.startswith("::error file=pyproject.toml,line=4,")
