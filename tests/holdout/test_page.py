"""docs/holdout-bounds.md is run: every print shows what its comment promises."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "holdout-bounds.md"


def test_the_page_s_examples_print_what_it_says() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, Any] = {}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, PAGE.name, "exec"), names)
        assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.MULTILINE)
