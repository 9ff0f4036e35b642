"""docs/holdout-commands.md is run: what it shows is what happens."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from pytest_dscore.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "holdout-commands.md"
# Differ from run to run: when something was recorded, and so the names of records.
_VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d)?"), "DATE"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "RECORD"),
]


def blocks(language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_the_page_shows_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(blocks("toml")[0], encoding="utf-8")
    exec(compile(blocks("python")[0], PAGE.name, "exec"), {})
    run = []
    for block in blocks("console"):
        shown = []
        for command in re.findall(r"^\$ dscore (.*)$", block, flags=re.MULTILINE):
            assert main(shlex.split(command)) == 0
            printed = capsys.readouterr()
            assert printed.err == ""
            shown.append(f"$ dscore {command}\n{printed.out}")
        run.append("".join(shown))
    if os.environ.get("DSCORE_WRITE_PAGE"):  # to bring the page up to date
        _write(run)
    assert [_same(text) for text in run] == [_same(block) for block in blocks("console")]


def _same(text: str) -> str:
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return text


def _write(run: list[str]) -> None:
    ready = iter(run)
    page = re.sub(
        r"^(```console\n)(.*?)^```",
        lambda match: f"{match[1]}{next(ready)}```",
        PAGE.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    PAGE.write_text(page, encoding="utf-8")
