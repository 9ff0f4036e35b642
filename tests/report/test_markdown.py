"""The comment on a pull request: whole, escaped, and within GitHub's length."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pytest_dscore.report.contents import Report
from pytest_dscore.report.escaping import markdown as safe
from pytest_dscore.report.markdown import LARGEST, MARKER, render
from tests.report import junit
from tests.report.conftest import Command, Gathered
from tests.report.junit import Case

GOLDEN = Path(__file__).parent / "golden"
GAP = "\u200b"


def passing(gathered: Gathered) -> Report:
    """One model, nothing to compare with."""
    return gathered([Case(properties=junit.model())])


def failing(gathered: Gathered) -> Report:
    """A failure beside a pass, unpaired changes, a hold-out and a protocol."""
    now = [
        Case(name="dscore[robust-min_score]", properties=junit.model("robust", score=0.875)),
        junit.failing(),
        Case(name="dscore[digits-test-budget]", properties=junit.holdout()),
        Case(
            name="dscore[ridge-max_error]",
            properties=junit.protocol() | {"protocol.verdict.max_error": "fail", "protocol.threshold.max_error": 0.1},
            failure="protocol 'ridge': error 0.125 [0.062, 0.188] exceeds max_error = 0.1\npyproject.toml:9",
        ),
    ]
    before = [
        Case(name="dscore[robust-min_score]", properties=junit.model("robust", score=0.875)),
        Case(properties=junit.model(score=0.75, model_fingerprint="c3" * 32)),
    ]
    return gathered(now, before)


def inconclusive(gathered: Gathered) -> Report:
    """A paired change from the gate itself, too small a test set, and a remark."""
    changes = {
        "threshold.max_drop.score": 0.0625,
        "verdict.max_drop.score": "inconclusive",
        **junit.figure("drop.score", 0.0625),
        "baseline": {
            "commit": "0123456789abcdef0123",
            "recorded": "2026-11-29T08:15:30Z",
            "figures": {"score": 0.8625, "accuracy": 0.9},
            "a": [[0.75, 0.75], [0.75, 0.5]],
        },
        "change": {"score": {"value": -0.0625, "lower": -0.125, "upper": 0.0}},
        "more_examples": {"max_drop.score": 4100},
        "remarks": ["pixels go down to -2.12 but fill is not set: is 0 really black?"],
    }
    return gathered([Case(properties=junit.model() | changes)])


@pytest.mark.parametrize("make", [passing, failing, inconclusive], ids=lambda make: make.__name__)
def test_golden(make: Callable[[Gathered], Report], gathered: Gathered) -> None:
    text = render(make(gathered))
    path = GOLDEN / f"{make.__name__}.md"
    if os.environ.get("DSCORE_WRITE_GOLDEN"):  # to bring them up to date; then read every line of the difference
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_it_begins_with_the_marker_by_which_a_bot_finds_it(gathered: Gathered) -> None:
    assert MARKER == "<!-- dscore-report -->"
    assert render(passing(gathered)).startswith(f"{MARKER}\n")


def test_failures_come_before_the_table(gathered: Gathered) -> None:
    text = render(failing(gathered))
    assert text.index("**FAIL** D-Score 0.400") < text.index("| Model |") < text.index("<details>")


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b || c",
    "@everyone and @torvalds",
    "]]>",
    "::error::owned",
    "`code` ```fence```",
    "**bold** _under_ ~~gone~~",
    "[click](javascript:alert(1))",
    "![img](https://evil.example/x.png)",
    "https://evil.example/ www.evil.example",
    "owner/repo#12 #34 GH-56",
    ":white_check_mark: :+1:",
    "$x^2$ $$y$$",
    "&lt;b&gt; &#64;everyone &amp;",
    "<!-- dscore-report -->",
    "--> </details> </summary>",
    "line\nbreak\r\n# heading\n\n| x |",
    "\\| \\\\| \\`",
    "right\u202eto left\u2066",
    "\x1b[31mred\x1b[0m\x00"[:9],
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_of_strangers_is_shown_as_it_is(attack: str) -> None:
    """Rendered by a CommonMark parser with GitHub's tables and strikethrough, it is one cell of plain text."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = parser.render(f"| head | next |\n| --- | --- |\n| {safe(attack)} | end |\n")
    [row] = re.findall(r"<tbody>\n<tr>(.*?)</tr>", page, flags=re.DOTALL)
    cell, end = re.findall(r"<td>(.*?)</td>", row, flags=re.DOTALL)
    assert end == "end"
    assert "<" not in cell, "markup survived"
    shown = html.unescape(cell)
    plain = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in " ".join(attack.split())
    )
    assert shown.replace(GAP, "") == plain
    # What GitHub looks for in the text that is left.
    assert not re.search(r"@\w", shown)
    assert not re.search(r"#\d|GH-\d", shown)
    assert not re.search(r"https?://|www\.|javascript:\w+\(.*\)\]", shown.replace("javascript", ""))
    assert not re.search(r":[\w+-]+:", shown)


def test_math_and_mentions_are_broken_in_the_source_too() -> None:
    assert "$" not in safe("$x$")
    assert "@everyone" not in safe("@everyone")


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_in_a_file_do_not_get_out_of_their_places(attack: str, gathered: Gathered) -> None:
    name = "".join(c for c in attack if c >= " " or c in "\n\r")
    nasty = junit.model(name, operator=name, remarks=[name], helpful_regions=[name], holdout_charges=[name])
    nasty |= {f"threshold.{name}": 1.0, f"verdict.{name}": "fail"}
    cases = [
        Case(name=name, classname=name, properties=nasty, failure=f"{name}\n{name}.py:3"),
        Case(name=name, properties=junit.holdout(name, sentence=name, assumption=name, models_remaining=name)),
        Case(name=name, properties=junit.protocol(name, selected=[{name: name}], leaks=[{"line": name}])),
    ]
    text = render(gathered(cases, [Case(properties=junit.model(name))]))
    assert text.count("<!--") == 1
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>") == 3
    assert not re.search(r"<(?!/?(details|summary|sub)>|!-- dscore-report -->)", text)
    assert not re.search(r"@[a-z]", text)
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    assert "<a " not in page
    assert "<img" not in page
    assert page.count("<h") == 1
    columns = {len(re.findall(r"<t[dh]>", row)) for row in re.findall(r"<tr>(.*?)</tr>", page, flags=re.DOTALL)}
    assert columns <= {2, 4, 5}


def test_what_is_too_long_is_cut_and_said(gathered: Gathered) -> None:
    cases = [Case(name=f"t{i}", properties=junit.model(f"model-{i}")) for i in range(120)]
    text = render(gathered([*cases, junit.failing(model="the failing one")]))
    assert len(text) <= LARGEST
    assert "**FAIL** D-Score 0.400" in text
    assert text.count("\n| model-") == 120
    [note] = re.findall(r"\*\*Cut to 65,536 characters; missing here: (.*?)\.\*\*", text)
    cut = re.fullmatch(r"(\d+) models' details", note)
    assert cut is not None
    assert int(cut[1]) + text.count("<details>") == 121
    assert text.count("<details>") == text.count("</details>")


def test_failures_stay_longest(gathered: Gathered) -> None:
    cases = [junit.failing(model=f"model-{i}") for i in range(2000)]
    text = render(gathered(cases))
    assert len(text) <= LARGEST
    assert text.startswith(f"{MARKER}\n### D-Score report: 2000 of 2000 gates failed\n")
    assert "<details>" not in text
    assert "\n| model-" not in text
    assert re.search(r"missing here: .*\d+ failures", text)


def test_what_just_fits_is_not_cut(gathered: Gathered) -> None:
    report = passing(gathered)
    whole = render(report)
    assert render(report, len(whole)) == whole
    assert "Cut to" in render(report, len(whole) - 1)


def test_the_command_prints_the_same(command: Command, gathered: Gathered) -> None:
    text = render(passing(gathered))
    assert command("report.xml").out == text
    assert command("report.xml", "--format", "markdown").out == text
