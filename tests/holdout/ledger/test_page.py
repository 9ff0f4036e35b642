"""docs/holdout-ledger.md is run: what it shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dscore.holdout import ledger
from pytest_dscore.holdout.ledger import open_ledger

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "holdout-ledger.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "holdout-ledger.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)", code)


def test_a_ledger_moves_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "holdout-ledger.md", "exec"), {})
    begin = "git init -q && git init -q --bare remote.git && git remote add origin remote.git"
    subprocess.run(["bash", "-c", begin], check=True, capture_output=True)
    (shown,) = re.findall(r"^```console\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    run = ""
    for command in re.findall(r"^\$ (.*)$", shown, flags=re.MULTILINE):
        dscore = f'dscore() {{ "{sys.executable}" -m pytest_dscore.cli "$@"; }}; set -o pipefail; '
        done = subprocess.run(["bash", "-c", dscore + command], check=True, capture_output=True, text=True)
        assert done.stderr == ""
        run += f"$ {command}\n{done.stdout}"
    names = re.compile(r"\b[0-9a-f]{64}\b")  # of records: they hold the time
    assert names.sub("NAME", run) == names.sub("NAME", shown)
    places = [open_ledger(url) for url in (".dscore/ledger", "git:refs/dscore/ledger", "sqlite:///l.db")]
    assert len({place.uses() for place in places}) == 1
    assert all(place.verify().ok for place in places)


def test_every_error_is_explained() -> None:
    errors = {name for name in ledger.__all__ if re.match(r"Ledger.+", name)} | {"UseRefused"}
    assert errors <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.MULTILINE))
