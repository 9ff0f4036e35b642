"""The GitHub workflow that a project begins with."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

from pytest_dscore.project.pyproject import document

PATH = ".github/workflows/dscore.yml"

_TEXT = """\
# Written by `dscore init`: the gate on every pull request. The report is in the run's summary and its artifact.
name: D-Score

on:
  push:
    branches: [main]
  pull_request:

permissions:
  contents: read

jobs:
  gate:
    runs-on: ubuntu-24.04
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
        with:
          persist-credentials: false
      - uses: actions/setup-python@ece7cb06caefa5fff74198d8649806c4678c61a1 # v6.3.0
        with:
          python-version: "{python}"
{install}\
      - run: pytest --dscore --junitxml=report.xml
      - if: always()
        run: dscore report report.xml --format html --output report.html
      - if: always()
        uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1
        with:
          name: dscore-report
          path: |
            report.xml
            report.html
"""
_PLUGIN = """\
      # pytest-dscore is not on PyPI yet: say here where it comes from, such as git+https://HOST/OWNER/NAME@COMMIT
      - run: pip install "${{PYTEST_DSCORE:?say in this workflow where pytest-dscore comes from}}"
        env:
          PYTEST_DSCORE: {source}
"""


def workflow(root: Path) -> str:
    """Return the workflow for a project, as it is installed by the looks of it."""
    install = "".join(f"      - run: pip install {what}\n" for what in _installs(root))
    if not _names_the_plugin(root):
        install += _PLUGIN.format(source=json.dumps(plugin_source()))
    return _TEXT.format(python=f"{sys.version_info[0]}.{sys.version_info[1]}", install=install)


def needs_source(text: str) -> bool:
    """Whether somebody must still say where the plugin comes from."""
    return 'PYTEST_DSCORE: ""' in text


def plugin_source() -> str:
    """Return where this installation came from, as pip takes it; empty where only this machine knows."""
    try:
        found = metadata.distribution("pytest-dscore").read_text("direct_url.json")
        origin = json.loads(found) if found else {}
        url, commit = str(origin["url"]), str(origin["vcs_info"]["commit_id"])
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return ""
    # One with a name or a password in it must not be written anywhere.
    return f"git+{url}@{commit}" if url.startswith("https://") and "@" not in url else ""


def _installs(root: Path) -> list[str]:
    found = ["--requirement requirements.txt"] if (root / "requirements.txt").is_file() else []
    if (root / "setup.py").is_file() or "project" in document(root):
        found.append("--editable .")
    return found


def _names_the_plugin(root: Path) -> bool:
    """Whether what is installed names pytest-dscore as a dependency."""
    project = document(root).get("project")
    named = project.get("dependencies", []) if isinstance(project, dict) else []
    lines = [str(line) for line in named] if isinstance(named, list) else []
    if (root / "requirements.txt").is_file():
        lines += (root / "requirements.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.strip().lower().replace("_", "-").startswith("pytest-dscore") for line in lines)
