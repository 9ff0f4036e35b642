"""docs/pull-requests.md is run: what it shows is what happens, and what it says of the action is so."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from pytest_dscore.project import walking
from pytest_dscore.report.markdown import MARKER
from tests.cli.conftest import Run

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/pull-requests.md"
TEXT = PAGE.read_text(encoding="utf-8")
ACTION = yaml.safe_load((REPOSITORY / ".github/actions/gate/action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((REPOSITORY / ".github/workflows/dscore.yml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def shown(command: str, output: str) -> str:
    """A console block: of the doctor only what does not depend on the machine."""
    start = output.index("settings\n") if command == "doctor" else 0
    return f"$ dscore {command}\n{output[start:]}"


def test_the_page_shows_what_the_commands_print(root: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "shapes.py").write_text(blocks("python")[0], encoding="utf-8")
    for name in ("PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    printed = [shown(name, cli(name).out) for name in ("init", "doctor")]
    if os.environ.get("DSCORE_WRITE_PAGE"):  # to bring the page up to date
        text = TEXT
        for old, new in zip(blocks("console"), printed, strict=False):
            text = text.replace(f"```console\n{old}```", f"```console\n{new}```")
        PAGE.write_text(text, encoding="utf-8")
        return
    assert printed == blocks("console")[:2]


def test_the_page_lists_every_input_and_its_default() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|", TEXT, flags=re.MULTILINE))
    assert rows.keys() == ACTION["inputs"].keys()
    for name, default in rows.items():
        if default.startswith("`"):
            assert ACTION["inputs"][name]["default"] == default.strip("`")
    for name in ACTION["outputs"]:
        assert f"`{name}`" in TEXT


def test_the_page_s_workflow_is_that_of_this_repository() -> None:
    example = yaml.safe_load(blocks("yaml")[0])
    assert example["permissions"] == WORKFLOW["permissions"]
    assert example[True] == WORKFLOW[True]
    used = {step["uses"].partition("@")[0]: step for step in example["jobs"]["gate"]["steps"] if "uses" in step}
    ours = [step for step in WORKFLOW["jobs"]["gate"]["steps"] if "uses" in step]
    for step in ours[:-1]:
        assert used[step["uses"].partition("@")[0]]["uses"] == step["uses"]
    (gate,) = [step for name, step in used.items() if name.endswith("/.github/actions/gate")]
    assert gate["with"].keys() <= ACTION["inputs"].keys()


def test_the_page_s_figures_are_those_of_the_code() -> None:
    assert f"`{MARKER}`" in TEXT
    assert f"{walking.MOST_SOURCES:,} Python\nfiles" in TEXT
