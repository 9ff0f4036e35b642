"""docs/holdout-ledger.md is run: what it shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from pytest_dscore.holdout import ledger

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "holdout-ledger.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "holdout-ledger.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)", code)


def test_every_error_is_explained() -> None:
    errors = {name for name in ledger.__all__ if re.match(r"Ledger.+", name)} | {"UseRefused"}
    assert errors <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.MULTILINE))
