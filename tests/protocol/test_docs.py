"""The examples run: those in the page and those in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import pytest_dscore.protocol

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nested-cv.md"
MODULES = [module.name for module in pkgutil.iter_modules(pytest_dscore.protocol.__path__)]


def test_every_block_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 9
    for block in blocks:
        space: dict[str, Any] = {}
        exec(compile(block, str(PAGE), "exec"), space)
    shown = capsys.readouterr().out
    assert "preprocessing leak in split 0" in shown
    assert "duplicates leak" in shown
    assert "groups leak" in shown
    assert "optimistic bias" in shown
    assert "fold 4 of 4" in shown
    assert "early-stopping leak in split 0" in shown
    assert "test row 45 of fold 0 was asked for during fitting" in shown
    assert "overlap leak in fold 0: 1 test rows were asked for" in shown
    assert "()\n('the labels', 'the train part of split 0" in shown


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"pytest_dscore.protocol.{name}")
    assert doctest.testmod(module).failed == 0


def test_neither_pytest_nor_torch_is_imported() -> None:
    import subprocess
    import sys

    code = "import sys, pytest_dscore.protocol; print({'torch', 'pytest'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
