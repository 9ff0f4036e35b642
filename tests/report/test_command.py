"""Where the report goes: standard output, a file, the step's summary; and that nothing is lost on the way."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_dscore.cli import main
from pytest_dscore.report.machine import SCHEMA
from tests.report import junit
from tests.report.conftest import Command
from tests.report.junit import Case


@pytest.fixture
def report(command: Command) -> Command:
    """The command, with a report of one failed gate beside it."""
    junit.write(Path("report.xml"), [junit.failing()])
    return command


@pytest.mark.parametrize("form", ["markdown", "html", "json", "github"])
def test_a_file_has_what_would_be_printed(form: str, report: Command) -> None:
    printed = report("report.xml", "--format", form)
    Path("out").write_text("old")
    result = report("report.xml", "--format", form, "--output", "out")
    assert (result.code, result.out, result.err) == (1, "", "")
    assert Path("out").read_text(encoding="utf-8") == printed.out
    assert sorted(os.listdir()) == ["out", "report.xml"]


def test_a_file_that_is_read_is_not_replaced(report: Command) -> None:
    content = Path("report.xml").read_bytes()
    assert "would replace a file that is read" in report("report.xml", "--output", "./report.xml").sentence
    assert Path("report.xml").read_bytes() == content


@pytest.mark.parametrize(("name", "why"), [("none/out.md", "its directory does not exist"), (".", "it is a directory")])
def test_where_nothing_can_be_written(name: str, why: str, report: Command) -> None:
    assert why in report("report.xml", "--output", name).sentence


def test_what_is_no_file_is_written_to_and_not_replaced(report: Command) -> None:
    """A pipe stands for /dev/null and /dev/stdout, which root could replace."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert report("report.xml", "--output", "pipe").code == 1
        assert Path("pipe").is_fifo()
        assert os.read(reader, 100).startswith(b"<!-- dscore-report -->")
    finally:
        os.close(reader)


def test_a_link_stays_a_link(report: Command) -> None:
    Path("real.md").write_text("old")
    Path("link.md").symlink_to("real.md")
    report("report.xml", "--output", "link.md")
    assert Path("link.md").is_symlink()
    assert Path("real.md").read_text().startswith("<!-- dscore-report -->")


@pytest.mark.parametrize("form", ["markdown", "html", "json", "github"])
def test_on_github_the_summary_gets_the_markdown_unasked(
    form: str, report: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = report("report.xml").out
    Path("summary.md").write_text("a step before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(Path("summary.md").absolute()))
    result = report("report.xml", "--format", form)
    assert (result.code, result.err) == (1, "")
    assert Path("summary.md").read_text(encoding="utf-8") == f"a step before\n{markdown}"


def test_a_summary_that_cannot_be_written_hides_no_failure(report: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "none/summary.md")
    result = report("report.xml")
    assert result.code == 1
    assert result.out.startswith("<!-- dscore-report -->")
    assert (
        result.err == "dscore: the step summary cannot be written to $GITHUB_STEP_SUMMARY (No such file or directory)\n"
    )


def test_bad_input_leaves_the_summary_alone(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("report.xml").write_text("")
    assert "is empty" in command("report.xml").sentence
    assert not Path("summary.md").exists()


@pytest.mark.parametrize("form", ["markdown", "html", "json", "github"])
def test_a_terminal_that_knows_only_ascii(form: str, report: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    junit.write(Path("report.xml"), [junit.failing(model="größe-模型")])
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["report", "report.xml", "--format", form]) == 1
    assert b"gr" in raw.getvalue()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: REPORT.xml"),
        (["report.xml", "--format", "pdf"], "invalid choice: 'pdf'"),
        (["report.xml", "--fmt", "html"], "unrecognized arguments"),
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str], said: str, report: Command) -> None:
    assert said in report(*arguments).sentence


def test_a_report_loads_nothing_heavy(report: Command) -> None:
    code = (
        "import sys; from pytest_dscore.cli import main; code = main(sys.argv[1:]); "
        "print({'torch', 'matplotlib', 'sklearn', 'pytest'} & set(sys.modules), code, file=sys.stderr)"
    )
    for form in ("markdown", "html", "json", "github"):
        command = [sys.executable, "-W", "error", "-c", code, "report", "report.xml", "--format", form]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == "set() 1\n"


def _json(command: Command, *arguments: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found: dict[str, Any] = json.loads(command(*arguments, "--format", "json").out, parse_constant=refuse)
    return found


def test_json_is_versioned_and_whole(report: Command) -> None:
    cases = [junit.failing(), Case(properties=junit.holdout()), Case(properties=junit.protocol())]
    junit.write(Path("report.xml"), cases)
    junit.write(Path("base.xml"), [Case(properties=junit.model(score=0.5))], timestamp="2026-11-29T10:00:00")
    found = _json(report, "report.xml", "--baseline", "base.xml")
    assert found["schema"] == SCHEMA == "dscore-report/1"
    assert found["failed"] is True
    [model] = found["models"]
    assert model["figures"]["score"] == {"value": 0.4, "lower": 0.3375, "upper": 0.4625}
    assert model["gates"] == [
        {
            "name": "min_score",
            "outcome": "fail",
            "failed": True,
            "threshold": 0.5,
            "reason": "D-Score 0.400 [0.338, 0.463] < 0.500 for model 'digits' (n=2): accuracy falls most lower right",
            "test": "pyproject.toml::dscore[digits-min_score]",
            "file": "pyproject.toml",
            "line": 4,
        }
    ]
    assert model["facts"]["a"] == [[0.75, 0.75], [0.75, 0.25]]
    assert model["before"]["change"]["score"]["value"] == pytest.approx(-0.1)
    assert model["before"]["paired"] is False
    assert found["holdouts"][0]["uses"] == [{"models_used": 3, "share_used": 0.25}]
    assert found["protocols"][0]["figures"]["error"]["value"] == 0.125


def test_json_has_null_for_what_is_no_number(report: Command) -> None:
    odd = {"score": "nan", "score.lower": "nan", "score.upper": "inf", "something": "[NaN]"}
    junit.write(Path("report.xml"), [Case(properties=junit.model() | odd)])
    [model] = _json(report, "report.xml")["models"]
    assert model["figures"]["score"] == {"value": None, "lower": None, "upper": None}
    assert model["facts"]["something"] == [None]
