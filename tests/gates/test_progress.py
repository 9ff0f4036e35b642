"""The progress bar: on a terminal and on long work only."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.gates.project import MODEL, PASSING, Project, output

pty = pytest.importorskip("pty")

SLOW = 'log("forward"); import time; time.sleep(0.1)'
COMMAND = (sys.executable, "-m", "pytest", "--dscore", "-W", "error", "-p", "no:hypothesispytest", "--dscore-no-cache")
ENVIRONMENT = {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}


@pytest.fixture
def slow(project: Project) -> Project:
    """A model that takes two seconds, beside a quick one."""
    net = (project.path / "net.py").read_text()
    project.write("slow.py", net.replace('log("forward")', SLOW))
    # First, so that the quick one finds torch at its usual speed.
    project.settings(own=f"{PASSING}\nmax_v_robust = 9.0", name="slow", more=MODEL.format(name="tiny", own=PASSING))
    project.replace("pyproject.toml", 'slow]\nfactory = "net:build"', 'slow]\nfactory = "slow:build"')
    return project


def on_a_terminal(project: Project, *args: str) -> tuple[int, str]:
    """Run pytest with its output on a pseudo-terminal; exit code and everything written there."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args],
            cwd=project.path,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **ENVIRONMENT},
        )
    finally:
        os.close(slave)
    written = b""
    with os.fdopen(master, "rb", buffering=0) as terminal:
        while True:
            try:
                block = terminal.read(4096)
            except OSError:  # Linux says so when the other side is closed.
                break
            if not block:
                break
            written += block
    return process.wait(), written.decode()


def test_on_a_terminal(slow: Project) -> None:
    code, text = on_a_terminal(slow)
    assert code == 0
    assert "D-Score of slow" in text
    assert re.search(r"[1-9]\d%", text)
    assert "D-Score of tiny" not in text, "a bar for short work"
    # The bar is gone when the work is done: its line is erased.
    after = text[text.rindex("D-Score of slow") :]
    assert "\x1b[2K" in after
    assert "3 passed" in text


@pytest.mark.parametrize("variable", ["TERM", "FORCE_COLOR", "TTY_COMPATIBLE"])
def test_never_in_a_pipe(slow: Project, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Not even where a CI service asks for colours, which rich takes for a terminal."""
    monkeypatch.setenv(variable, "xterm" if variable == "TERM" else "1")
    result = slow.run()
    result.assert_outcomes(passed=3)
    assert "D-Score of" not in output(result)
    assert "\x1b" not in output(result)
