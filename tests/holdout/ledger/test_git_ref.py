"""What can happen to a ledger in git."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerUnreachable,
    UseRefused,
    git_command,
    open_ledger,
)
from tests.holdout.ledger.examples import holdout, use
from tests.holdout.ledger.places import GitPlace, git

DATA = holdout()
URL = "git:refs/dscore/ledger"


@pytest.fixture
def place(tmp_path: Path) -> GitPlace:
    return GitPlace(tmp_path)


def own_refs(clone: Path) -> list[str]:
    return [ref for ref in git("for-each-ref", "--format=%(refname)", at=clone).splitlines() if "dscore" in ref]


def code_commit(place: GitPlace) -> Path:
    """A clone with two commits of code on the remote's main branch."""
    clone = place.clone("developer")
    for number in range(2):
        (clone / "code.py").write_text(f"x = {number}\n")
        git("add", "code.py", at=clone)
        git("commit", "-m", f"change {number}", at=clone)
    git("push", "origin", "HEAD:main", at=clone)
    return clone


def test_the_working_tree_the_index_and_the_branches_are_left_alone(place: GitPlace) -> None:
    clone = code_commit(place)
    (clone / "code.py").write_text("x = 'being edited'\n")
    (clone / "staged.py").write_text("")
    git("add", "staged.py", at=clone)
    before = [git(*what, at=clone) for what in (["status", "--porcelain"], ["branch", "-a"], ["stash", "list"])]
    open_ledger(URL, root=clone).record(use(0, DATA), DATA)
    assert before == [git(*what, at=clone) for what in (["status", "--porcelain"], ["branch", "-a"], ["stash", "list"])]
    assert own_refs(clone) == ["refs/dscore/ledger"]
    assert not (clone / ".git" / "FETCH_HEAD").exists()
    assert len(git("log", "--format=%h", place.ref, at=place.remote).splitlines()) == 1


def test_a_shallow_detached_clone_without_a_name_records(place: GitPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    code_commit(place)
    place.open().record(use(0, DATA), DATA)
    place.open(worker=1).record(use(1, DATA), DATA)
    git("clone", "--depth=1", "--branch=main", f"file://{place.remote}", "runner", at=place.path)
    runner = place.path / "runner"
    git("checkout", "--detach", at=runner)
    monkeypatch.setenv("HOME", str(place.path))  # no user.name, as on a CI machine
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    ledger = open_ledger(URL, root=runner, must_exist=True)
    assert len(ledger.uses()) == 2
    assert ledger.record(use(2, DATA), DATA).is_new
    assert len(git("log", "--format=%h", at=runner).splitlines()) == 1  # still shallow
    assert len(place.open(worker=1).uses()) == 3
    assert own_refs(runner) == own_refs(place.clone("clone-1")) == ["refs/dscore/ledger"]


def test_a_ledger_below_a_git_hook_looks_where_it_is_told(place: GitPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(place.path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(place.path / "index"))
    with monkeypatch.context() as outside:
        outside.delenv("GIT_DIR")
        outside.delenv("GIT_INDEX_FILE")
        clone = place.clone("clone-0")
    assert open_ledger(URL, root=clone).record(use(0, DATA), DATA).is_new


def test_a_push_that_was_overtaken_looks_again(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    others = iter([5, 6])
    seen: list[int] = []

    def admit(existing: Any, new: Any) -> str:
        seen.append(len(existing))
        if (other := next(others, None)) is not None:
            place.open(worker=1).record(use(other, DATA), DATA)
        return f"{len(existing)} before"

    recorded = place.open().record(use(1, DATA), DATA, admit)
    assert seen == [1, 2, 3]
    assert recorded.use.verdict == "3 before"
    assert [u.model for u in place.open().uses()] == ["model-0", "model-5", "model-6", "model-1"]


def test_a_budget_that_another_used_up_in_between_refuses(place: GitPlace) -> None:
    def admit(existing: Any, new: Any) -> str:
        if existing:
            raise UseRefused("used up")
        place.open(worker=1).record(use(5, DATA), DATA)
        return ""

    with pytest.raises(UseRefused, match="used up"):
        place.open().record(use(1, DATA), DATA, admit)
    assert [u.model for u in place.open().uses()] == ["model-5"]


def test_others_that_never_pause(place: GitPlace) -> None:
    url, root = place.address()
    number = iter(range(10, 100))

    def admit(existing: Any, new: Any) -> str:
        place.open(worker=1).record(use(next(number), DATA), DATA)
        return ""

    ledger = open_ledger(url, root=root, timeout=1.5)
    with pytest.raises(LedgerBusy, match="was being written by others all the time, nothing was recorded"):
        ledger.record(use(1, DATA), DATA, admit)


def hook(place: GitPlace, name: str, script: str) -> None:
    path = place.remote / "hooks" / name
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_remote_that_rejects(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    hook(place, "pre-receive", "echo 'refs/dscore is protected' >&2; exit 1")
    with pytest.raises(LedgerError, match=r"'origin' rejected the ledger .*, nothing was recorded: .*is protected"):
        place.open().record(use(1, DATA), DATA)
    assert len(place.open(worker=1).uses()) == 1
    (place.remote / "hooks" / "pre-receive").unlink()
    assert place.open().record(use(1, DATA), DATA).is_new


def test_a_push_whose_answer_is_lost_counts_once(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    ledger = place.open()
    backend: Any = ledger._backend
    ask = backend._git.ask

    def lose_the_answer(*arguments: str, data: bytes | None = None) -> git_command.Said:
        said: git_command.Said = ask(*arguments, data=data)
        return git_command.Said(128, b"", "the remote end hung up") if arguments[0] == "push" else said

    backend._git.ask = lose_the_answer
    assert ledger.record(use(1, DATA), DATA).is_new
    assert len(place.open(worker=1).uses()) == 2


def test_offline_is_an_error_and_nothing_is_admitted(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    gone = place.remote.rename(place.path / "unplugged.git")
    called: list[int] = []

    def admit(existing: Any, new: Any) -> str:
        called.append(1)
        return ""

    with pytest.raises(
        LedgerUnreachable, match=r"the git remote 'origin' .* cannot be reached, so nothing was admitted"
    ):
        place.open().record(use(1, DATA), DATA, admit)
    with pytest.raises(LedgerUnreachable, match="cannot be reached"):
        place.open().uses()
    assert not called
    gone.rename(place.remote)
    assert place.open().record(use(1, DATA), DATA, admit).is_new


def test_a_remote_that_does_not_answer(place: GitPlace) -> None:
    clone = place.clone("clone-0")
    git("config", "protocol.ext.allow", "always", at=clone)
    git("remote", "set-url", "origin", "ext::sleep 60", at=clone)
    start = time.monotonic()
    with pytest.raises(LedgerUnreachable, match=r"git ls-remote gave no answer within 0\.5 s"):
        open_ledger(URL, root=clone, timeout=0.5).uses()
    assert time.monotonic() - start < 10


def test_a_token_in_the_remote_s_url_is_not_shown(place: GitPlace) -> None:
    clone = place.clone("clone-0")
    git("remote", "set-url", "origin", "https://anna:hunter2@127.0.0.1:1/a.git", at=clone)
    with pytest.raises(LedgerUnreachable) as caught:
        open_ledger(URL, root=clone).uses()
    assert "hunter2" not in str(caught.value)


def test_a_remote_that_was_forced_back_is_noticed(place: GitPlace) -> None:
    ledger = place.open()
    ledger.record(use(0, DATA), DATA)
    early = place.head()
    ledger.record_all([use(1, DATA), use(2, DATA)], DATA)
    lost = {u.name for u in ledger.uses() if u.model != "model-0"}
    git("update-ref", place.ref, early, at=place.remote)
    report = place.open().verify()
    assert {f.record for f in report.findings} == lost
    assert {f.fault for f in report.findings} == {"rolled back"}
    with pytest.raises(LedgerDamaged, match=r"is gone from refs/dscore/ledger of origin, where this clone has seen it"):
        place.open().record(use(3, DATA), DATA)
    # The message's own remedy works.
    command = str(report.findings[0]).split("`")[1].split()
    git(*command[1:], at=place.clone("clone-0"))
    assert place.open().verify().ok
    assert place.open().record(use(3, DATA), DATA).is_new


def test_a_deleted_ref_is_no_new_beginning(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    place.wipe()
    with pytest.raises(LedgerDamaged, match="is gone from refs/dscore/ledger of origin"):
        place.open().record(use(1, DATA), DATA)
    assert {f.fault for f in place.open().verify().findings} == {"rolled back"}


def test_a_rewritten_history_with_every_record_is_fine(place: GitPlace) -> None:
    place.open().record_all([use(model, DATA) for model in range(3)], DATA)
    squashed = git("commit-tree", f"{place.ref}^{{tree}}", "-m", "squashed", at=place.remote)
    git("update-ref", place.ref, squashed, at=place.remote)
    assert place.open().verify().ok
    assert place.open().record(use(5, DATA), DATA).is_new


def test_a_base_is_a_commit_of_the_ledger(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    early = place.head()
    place.open().record(use(1, DATA), DATA)
    assert place.open().verify(base=early).ok
    head = place.open().heads()[0]
    late = place.head()
    git("update-ref", place.ref, early, at=place.remote)
    fresh = place.open(worker=1)
    assert fresh.verify().ok  # this clone has never seen the lost one
    git("fetch", "origin", late, at=place.clone("clone-1"))
    assert [f.record for f in fresh.verify(base=late).findings] == [head]
    with pytest.raises(SettingsError, match=r"base = 'main' has no record of .*: give a commit of refs/dscore/ledger"):
        fresh.verify(base="main")


def test_a_repository_that_nobody_else_writes(place: GitPlace) -> None:
    clone = place.clone("alone")
    git("remote", "remove", "origin", at=clone)
    with pytest.raises(SettingsError, match=r"remote 'origin', which this clone does not have: .*remote=none"):
        open_ledger(URL, root=clone)
    ledger = open_ledger(f"{URL}?remote=none", root=clone)
    for model in range(3):
        assert ledger.record(use(model, DATA), DATA).is_new
    assert len(open_ledger(f"{URL}?remote=none", root=clone).uses()) == 3


def test_another_remote_by_name(place: GitPlace) -> None:
    clone = place.clone("clone-0")
    git("remote", "rename", "origin", "upstream", at=clone)
    assert open_ledger(f"{URL}?remote=upstream", root=clone).record(use(0, DATA), DATA).is_new
    assert len(place.open(worker=1).uses()) == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("git:refs/dscore/..ledger", "is not a name that git allows for a ref"),
        ("git:refs/dscore/ledger?remote=", "is no git ledger"),
    ],
)
def test_urls_that_git_does_not_allow(place: GitPlace, url: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        open_ledger(url, root=place.clone("clone-0"))


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs a git repository at .*: fatal: not a git repository"):
        open_ledger(URL, root=tmp_path)
    with pytest.raises(SettingsError, match="there is no such directory"):
        open_ledger(URL, root=tmp_path / "nowhere")


def test_no_git(place: GitPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = place.clone("clone-0")
    monkeypatch.setenv("PATH", str(place.remote))
    with pytest.raises(LedgerError, match="needs git, which is not installed"):
        open_ledger(URL, root=clone)


def test_a_lock_of_this_clone_that_is_not_given_back(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    url, root = place.address()
    with (
        FileLock(root / ".git" / "dscore-dscore-ledger.lock"),
        pytest.raises(LedgerBusy, match=r"was locked by another process of this clone for 0\.2 s"),
    ):
        open_ledger(url, root=root, timeout=0.2).uses()


def test_a_ref_lock_that_a_dead_git_left(place: GitPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_dscore.holdout.ledger.git_ref._LONGEST_PAUSE", 0.1)
    clone = place.clone("clone-0")
    left = clone / ".git" / "refs" / "dscore-outgoing" / "dscore" / "ledger.lock"
    left.parent.mkdir(parents=True)
    left.write_text("")
    git("commit", "--allow-empty", "-m", "x", at=clone)
    git("update-ref", "refs/dscore-outgoing/other", "HEAD", at=clone)
    with pytest.raises(LedgerError, match=r"git .* failed: .*ledger\.lock"):
        place.open().record(use(0, DATA), DATA)
    left.unlink()
    assert place.open().record(use(0, DATA), DATA).is_new


def test_a_foreign_file_in_the_ref(place: GitPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    attacker = place.clone("attacker")
    git("fetch", "origin", place.ref, at=attacker)
    git("checkout", "--detach", "FETCH_HEAD", at=attacker)
    (attacker / "notes.txt").write_text("hello")
    git("add", "notes.txt", at=attacker)
    git("commit", "-m", "notes", at=attacker)
    git("push", "origin", f"HEAD:{place.ref}", at=attacker)
    assert [(f.fault, f.record) for f in place.open().verify().findings] == [("foreign", "notes.txt")]
    with pytest.raises(LedgerDamaged, match=r"notes\.txt is foreign"):
        place.open().record(use(1, DATA), DATA)
