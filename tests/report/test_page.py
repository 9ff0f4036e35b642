"""docs/report.md: run as it stands, the page shows what happens."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from pytest_dscore.cli import main
from pytest_dscore.report.machine import SCHEMA

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/report.md"
TEXT = PAGE.read_text(encoding="utf-8")
_FROM = "&lt; 0.700"


def blocks(language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_example(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    shutil.copytree(ROOT / "fixtures", pytester.path / "fixtures", ignore=shutil.ignore_patterns("test_*", "__pyc*"))
    settings = blocks("toml")[0]
    for name, text in (
        ("main.xml", settings),
        ("report.xml", settings.replace("build_model", "build_plain_model").replace("digits.sa", "digits_plain.sa")),
    ):
        (pytester.path / "pyproject.toml").write_text(text, encoding="utf-8")
        pytester.runpytest_subprocess("--dscore", "pyproject.toml", f"--junitxml={name}")
    ran = []
    for block in blocks("console")[1:]:
        command = block.splitlines()[0].removeprefix("$ dscore ")
        capsys.readouterr()
        assert main(shlex.split(command)) == 1
        printed = capsys.readouterr().out.splitlines()
        shown = block.splitlines()[1:]
        ran.append("\n".join([block.splitlines()[0], *(printed[: len(shown)] if shown else printed)]) + "\n")
    if os.environ.get("DSCORE_WRITE_PAGE"):  # to bring the page up to date
        ready = iter(["", *ran])
        PAGE.write_text(
            re.sub(
                r"^(```console\n)(.*?)^```",
                lambda match: f"{match[1]}{next(ready) or match[2]}```",
                TEXT,
                flags=re.MULTILINE | re.DOTALL,
            ),
            encoding="utf-8",
        )
    assert ran == blocks("console")[1:]


def test_every_command_of_the_overview_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / "tests")
        for line in blocks("console")[0].splitlines():
            assert main(shlex.split(line.partition("#")[0])[1:]) == 2
            assert "report.xml: No such file" in " ".join(capsys.readouterr().err.split())


def test_the_schema_is_described() -> None:
    assert f'`"schema": "{SCHEMA}"`' in TEXT
