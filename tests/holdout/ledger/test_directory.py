"""What can happen to files."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger import Ledger, LedgerBusy, LedgerDamaged, LedgerError, open_ledger
from tests.holdout.ledger.examples import holdout, use
from tests.holdout.ledger.places import DirectoryPlace, git

DATA = holdout()
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path) -> DirectoryPlace:
    return DirectoryPlace(tmp_path)


@contextmanager
def no_root() -> Iterator[None]:
    """Root may write anywhere, so act as somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_one_small_file_for_each_use(place: DirectoryPlace) -> None:
    ledger = place.open()
    ledger.record_all([use(model, DATA) for model in range(3)], DATA)
    files = sorted((place.path / "ledger").glob("*/*"))
    assert len(files) == 4
    for found in ledger.uses():
        file = place.file(found.name)
        assert file.name == f"use-{found.key[:16]}-{found.name}.json"
        assert file.stat().st_size < 500
        assert file.read_bytes().count(b"\n") == 1


def test_a_directory_that_cannot_be_written(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    folders = [place.path / "ledger", *(place.path / "ledger").glob("*/")]
    for folder in folders:
        folder.chmod(0o555)
    (place.path / "ledger" / ".lock").chmod(0o444)
    place.path.chmod(0o755)
    try:
        with (
            no_root(),
            pytest.raises(LedgerError, match=r"cannot be written, permission is denied: make the directory"),
        ):
            place.open().record(use(1, DATA), DATA)
        with no_root():
            assert len(place.open().uses()) == 1  # reading needs no lock
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_file_that_cannot_be_read(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    name = place.open().uses()[0].name
    place.file(name).chmod(0)
    place.path.chmod(0o755)
    with no_root():
        with pytest.raises(LedgerDamaged, match=f"{name}.json cannot be read: Permission denied"):
            place.open().uses()
        assert [f.record for f in place.open().verify().findings] == [name]


def test_a_directory_that_cannot_be_listed(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    folder = place.file(place.open().uses()[0].name).parent
    folder.chmod(0)
    place.path.chmod(0o755)
    try:
        with no_root(), pytest.raises(LedgerError, match="cannot be listed: Permission denied"):
            place.open().uses()
    finally:
        folder.chmod(0o755)


def test_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    disk = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path / "small")]
    mounted = subprocess.run(disk, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs, which takes root: {mounted.stderr.strip()}")
    written: list[int] = []
    try:
        with pytest.raises(LedgerError, match=r"cannot be written, the disk is full: make room"):
            fill(open_ledger(tmp_path / "small" / "ledger"), written)
        report = open_ledger(tmp_path / "small" / "ledger").verify()
        assert report.ok
        assert report.uses == len(written) >= 2
    finally:
        subprocess.run(["umount", tmp_path / "small"], check=True)


def fill(ledger: Ledger, written: list[int]) -> None:
    for model in range(100):
        ledger.record(use(model, DATA), DATA)
        written.append(model)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EROFS, "the file system is read-only"),
        (errno.EDQUOT, "the disk quota"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_other_faults_of_the_disk(
    place: DirectoryPlace, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    place.open().record(use(0, DATA), DATA)

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(LedgerError, match=reason):
            place.open().record(use(1, DATA), DATA)
    assert len(place.open().uses()) == 1
    assert place.open().verify().ok
    assert place.open().record(use(1, DATA), DATA).is_new


def test_a_file_system_without_hard_links(place: DirectoryPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    place.open().record(use(0, DATA), DATA)
    assert place.open().verify().ok
    assert len(place.open().uses()) == 1


def test_a_lock_that_is_not_given_back(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    with FileLock(place.path / "ledger" / ".lock"):
        ledger = open_ledger("ledger", root=place.path, timeout=0.1)
        with pytest.raises(LedgerBusy, match=r"was locked by another process for 0\.1 s, so nothing was recorded"):
            ledger.record(use(1, DATA), DATA)
        assert len(ledger.uses()) == 1
    assert ledger.record(use(1, DATA), DATA).is_new


def test_what_a_killed_writer_left_is_cleared_away(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    (place.path / "ledger" / ".gitignore").unlink()
    (place.path / "ledger" / ".new-123").write_text("half")
    (place.path / "ledger" / f".new-{os.getpid()}").write_text("half, of a process of the same number")
    assert place.open().verify().ok
    place.open().record(use(1, DATA), DATA)
    assert not list((place.path / "ledger").glob(".new-*"))


@pytest.mark.parametrize("path", ["notes.txt", "ab/use-0123456789abcdef-short.json", "ab/copy/of.json"])
def test_a_foreign_file_is_named(place: DirectoryPlace, path: str) -> None:
    place.open().record(use(0, DATA), DATA)
    foreign = place.path / "ledger" / path
    foreign.parent.mkdir(parents=True, exist_ok=True)
    foreign.write_text("hello")
    with pytest.raises(LedgerDamaged, match=f"{path} is foreign: no record of a ledger is called so; move it out"):
        place.open().uses()
    assert [(f.fault, f.record) for f in place.open().verify().findings] == [("foreign", path)]


def test_a_copied_record_under_another_name_is_an_edit(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    file = place.file(place.open().uses()[0].name)
    name = file.parent.name + "0" * 62
    (file.parent / f"use-0123456789abcdef-{name}.json").write_bytes(file.read_bytes())
    assert [(f.fault, f.record) for f in place.open().verify().findings] == [("edited", name)]


@pytest.mark.parametrize(
    ("ending", "reason"), [(b"\r\n", "had its line end changed, by git's autocrlf"), (b"", "its line end is gone")]
)
def test_changed_line_ends_are_explained(place: DirectoryPlace, ending: bytes, reason: str) -> None:
    place.open().record(use(0, DATA), DATA)
    place.rewrite(place.open().uses()[0].name, lambda content: content.rstrip() + ending)
    with pytest.raises(LedgerDamaged, match=reason):
        place.open().uses()


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("")
    with pytest.raises(SettingsError, match=r"ledger is a file; give a directory"):
        open_ledger("ledger", root=tmp_path)


def test_two_branches_merge_without_a_conflict(place: DirectoryPlace) -> None:
    git("init", at=place.path)
    place.open().record(use(0, DATA), DATA)
    commit(place, "start")
    git("checkout", "-b", "feature", at=place.path)
    place.open().record_all([use(1, DATA), use(2, DATA)], DATA)
    commit(place, "feature")
    git("checkout", "main", at=place.path)
    place.open().record_all([use(2, DATA, ran_by="main"), use(3, DATA)], DATA)
    commit(place, "main")
    git("merge", "--no-edit", "feature", at=place.path)
    merged = place.open()
    assert len(merged.heads()) == 2
    assert sorted(u.model for u in merged.uses()) == ["model-0", "model-1", "model-2", "model-3"]
    assert merged.verify(base="feature").ok
    merged.record(use(4, DATA), DATA)
    assert len(merged.heads()) == 1
    assert git("status", "--porcelain", at=place.path).startswith("?? ledger/")
    assert ".lock" not in git("status", "--porcelain", "--untracked-files=all", at=place.path)


def test_one_model_with_other_outcomes_in_two_branches_was_shown_twice(place: DirectoryPlace) -> None:
    git("init", at=place.path)
    place.open().record(use(0, DATA), DATA)
    commit(place, "start")
    git("checkout", "-b", "feature", at=place.path)
    place.open().record(use(1, DATA, model="random forest"), DATA)
    commit(place, "feature")
    git("checkout", "main", at=place.path)
    place.open().record(use(2, DATA, model="random forest"), DATA)
    commit(place, "main")
    git("merge", "--no-edit", "feature", at=place.path)
    assert len(place.open().uses()) == 3


def test_every_use_known_at_a_revision_must_be_there(place: DirectoryPlace) -> None:
    git("init", at=place.path)
    place.open().record_all([use(0, DATA), use(1, DATA)], DATA)
    commit(place, "start")
    head = place.open().heads()[0]
    place.remove(head)
    assert place.open().verify().ok  # nothing links to the newest
    report = place.open().verify(base="main")
    assert [(f.fault, f.record) for f in report.findings] == [("rolled back", head)]
    assert "was known at main" in str(report)
    with pytest.raises(SettingsError, match=r"base = 'nowhere' of .* cannot be looked up: .*give a revision that"):
        place.open().verify(base="nowhere")
    with pytest.raises(SettingsError, match=r"base = '--all' of .* cannot be looked up"):
        place.open().verify(base="--all")


def test_a_base_needs_a_git_repository(place: DirectoryPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    with pytest.raises(SettingsError, match="cannot be looked up: fatal: not a git repository"):
        place.open().verify(base="main")


def commit(place: DirectoryPlace, message: str) -> None:
    git("add", "ledger", at=place.path)
    git("commit", "-m", message, at=place.path)
