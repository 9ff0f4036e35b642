"""``dscore report`` in a directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_dscore.cli import main
from pytest_dscore.report.comparing import compare
from pytest_dscore.report.contents import Report
from pytest_dscore.report.gathering import gather
from tests.report import junit
from tests.report.junit import Case


@dataclass(frozen=True)
class Result:
    """What the command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """Standard error on one line; asserts that the command refused with it and did nothing else."""
        assert self.code == 2
        assert self.out == ""
        assert "Traceback" not in self.err
        return " ".join(self.err.split())


Command = Callable[..., Result]
Gathered = Callable[..., Report]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """``dscore report ...`` run in an empty directory, outside of GitHub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(["report", *arguments])
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run


@pytest.fixture
def gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gathered:
    """A report of test cases, compared with others where given."""
    monkeypatch.chdir(tmp_path)

    def make(cases: Iterable[Case], baseline: Iterable[Case] | None = None) -> Report:
        paths = [junit.write(Path("report.xml"), cases)]
        other = None
        if baseline is not None:
            written = junit.write(Path("base.xml"), baseline, timestamp="2026-11-29T10:00:00")
            other = gather([written])
        return compare(gather(paths), other)

    return make
