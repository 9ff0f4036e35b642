"""A project in a directory of its own, and the command run in it."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_dscore.cli import main
from tests.cli import examples


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def flat(self) -> str:
        """Standard output on one line."""
        return " ".join(self.out.split())

    @property
    def sentence(self) -> str:
        """Standard error on one line; asserts that the command failed cleanly with it."""
        assert self.code == 2
        assert self.out == ""
        assert "Traceback" not in self.err
        assert all(len(line) <= 80 for line in self.err.splitlines())
        return " ".join(self.err.split())


Run = Callable[..., Result]


@pytest.fixture
def root() -> Iterator[Path]:
    """In memory where the system offers that: the ledger waits for the disk after every write."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture
def project(root: Path) -> Path:
    """A project that declares a hold-out, with twelve uses on record in a directory."""
    examples.declare(root)
    examples.record(root)
    return root


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``dscore ...`` run in the project; everything printed is ASCII within 80 columns."""

    def run(*arguments: str) -> Result:
        monkeypatch.chdir(root)
        capsys.readouterr()
        code = main(list(arguments))
        printed = capsys.readouterr()
        assert printed.out.isascii()
        assert printed.err.isascii()
        if "--json" not in arguments and "export" not in arguments[1:2]:
            assert max((len(line) for line in printed.out.splitlines()), default=0) <= 80
        return Result(code, printed.out, printed.err)

    return run


@pytest.fixture
def dscore(cli: Run) -> Run:
    """``dscore holdout ...`` run in the project."""
    return functools.partial(cli, "holdout")
