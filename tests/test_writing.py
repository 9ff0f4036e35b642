"""Files that are replaced whole or not at all, and who writes by that."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import pytest

from pytest_dscore.writing import write_whole

PACKAGE = Path(__file__).resolve().parents[1] / "pytest_dscore"


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path, old: bytes | None) -> None:
    path = tmp_path / "kept"
    if old is not None:
        path.write_bytes(old)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept"]


def test_it_is_on_the_disk_and_complete_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    steps: list[str] = []
    monkeypatch.setattr("os.fsync", lambda _descriptor: steps.append("synced"))

    def before(new: Path) -> None:
        steps.append(f"{new.read_bytes()!r} beside {path.read_bytes()!r}")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new", before)
    assert steps == ["synced", "b'new' beside b'old'"]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept"]


def test_nobody_else_makes_temporary_files_to_put_in_place() -> None:
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "mkstemp"
    }
    assert users == {"writing.py"}


def test_the_ledger_s_part_needs_nothing_of_the_gates() -> None:
    """But for the commands, which load the data by the gates' own function when they are asked to."""
    importers = {
        str(path.relative_to(PACKAGE))
        for path in (PACKAGE / "holdout").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_dscore.gates")
    }
    assert importers == {"holdout/commands/_content.py", "holdout/commands/begin.py"}
