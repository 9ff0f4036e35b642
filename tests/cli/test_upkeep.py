"""``dscore holdout verify``, ``export``, ``import``, ``retire``, and what all commands have in common."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dscore import cli
from pytest_dscore.holdout.commands import status
from pytest_dscore.holdout.ledger import Import, Retirement, Use, open_ledger
from tests.cli import examples
from tests.cli.conftest import Run

SECRET = "hunter2"
URL = f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/db?connect_timeout=2"


def records(root: Path) -> list[Path]:
    """The files of the ledger's records."""
    return sorted((root / ".dscore/ledger").glob("*/*.json"))


@pytest.mark.usefixtures("project")
def test_verify_a_sound_ledger(dscore: Run) -> None:
    result = dscore("verify")
    assert result.code == 0
    assert result.out.startswith(".dscore/ledger: 13 records, 12 uses, nothing is missing or changed\n  head ")
    (printed,) = json.loads(dscore("verify", "--json").out)
    assert (printed["ok"], printed["records"], printed["uses"], printed["findings"]) == (True, 13, 12, [])


def test_verify_names_what_is_wrong(project: Path, dscore: Run) -> None:
    names = [record.name for record in open_ledger(".dscore/ledger", root=project).history() if isinstance(record, Use)]
    # Far apart: what an edited record names as its parent cannot be missed.
    edited, gone = (next(path for path in records(project) if names[i] in path.name) for i in (8, 2))
    edited.chmod(0o644)
    edited.write_text(edited.read_text().replace("digits-test-", "digits_test-"))
    gone.unlink()
    result = dscore("verify")
    assert result.code == 1
    assert "edited:" in result.out
    assert "missing:" in result.out
    (printed,) = json.loads(dscore("verify", "--json").out)
    assert {"edited", "missing"} <= {finding["fault"] for finding in printed["findings"]}
    for command in (("status",), ("history",), ("export",), ("retire", "digits-test", "--why", "x")):
        assert "dscore: error:" in dscore(*command).sentence


def test_verify_against_the_names_of_records(project: Path, dscore: Run) -> None:
    (printed,) = json.loads(dscore("verify", "--json").out)
    head = printed["heads"][0]
    assert dscore("verify", "--base", head).code == 0
    next(path for path in records(project) if head in path.name).unlink()
    assert dscore("verify").code == 0  # the newest record breaks no link
    result = dscore("verify", "--base", f"{head},{'0' * 64}")
    assert result.code == 1
    assert result.out.count("rolled back:") == 2


def test_verify_against_a_git_revision(project: Path, dscore: Run) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@x")
        subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    assert dscore("verify", "--base", "HEAD").code == 0
    (printed,) = json.loads(dscore("verify", "--json").out)
    next(path for path in records(project) if printed["heads"][0] in path.name).unlink()
    result = dscore("verify", "--base", "HEAD")
    assert result.code == 1
    assert "was known at HEAD and is gone" in result.flat
    assert "cannot be looked up" in dscore("verify", "--base", "no-such-branch").sentence


def test_many_findings_that_are_alike_are_one_sentence(project: Path, dscore: Run) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)

    git("init", "-q", "--bare", "remote.git")
    git("init", "-q")
    git("remote", "add", "origin", "remote.git")
    url = "git:refs/dscore/ledger"
    examples.record(project, url, models=3)
    git("push", "-q", "origin", ":refs/dscore/ledger")
    (printed,) = json.loads(dscore("verify", "--ledger", url, "--json").out)
    gone = sorted(finding["record"] for finding in printed["findings"])
    assert len(gone) == 4
    result = dscore("verify", "--ledger", url)
    assert result.code == 1
    first = ", ".join(name[:12] for name in gone[:3])
    assert f"rolled back: 4 records ({first} and 1 more; --json lists all), each like the first: record" in result.flat
    assert result.flat.count("is gone from refs/dscore/ledger of origin, where this clone has seen it") == 1
    assert "git push --force origin" in result.flat


def test_findings_on_files_that_are_alike_are_one_sentence_of_each_kind(project: Path, dscore: Run) -> None:
    for path in records(project)[:5]:
        path.chmod(0o644)
        path.write_text("")
    records(project)[7].write_text("{")
    result = dscore("verify")
    assert result.flat.count("is empty (0 bytes)") == 1
    assert re.search(r"edited: 5 records \(.{12}, .{12}, .{12} and 2 more; --json lists all\), each like", result.flat)
    assert "was cut short" in result.flat
    (printed,) = json.loads(dscore("verify", "--json").out)
    assert sum("is empty" in finding["reason"] for finding in printed["findings"]) == 5


def test_verify_does_not_pass_where_there_is_nothing(root: Path, dscore: Run) -> None:
    examples.declare(root)
    for arguments in ((), ("--ledger", "nowhere"), ("--ledger", "sqlite:///nothing.db")):
        result = dscore("verify", *arguments)
        assert result.code == 1
        assert "holds no record" in result.flat
    assert sorted(path.name for path in root.iterdir()) == ["pyproject.toml"]  # looking makes nothing


def test_verify_a_database(project: Path, dscore: Run) -> None:
    examples.record(project, "sqlite:///uses.db")
    assert "sqlite:///uses.db: 13 records" in dscore("verify", "--ledger", "sqlite:///uses.db").out
    assert "is not kept in git" in dscore("verify", "--ledger", "sqlite:///uses.db", "--base", "HEAD").sentence


def test_record_names_belong_to_one_ledger(project: Path, dscore: Run) -> None:
    other = examples.SETTINGS.replace("digits-test", "other") + 'ledger = "sqlite:///other.db"\n'
    examples.declare(project, examples.SETTINGS + other)
    assert "say which with --ledger" in dscore("verify", "--base", "0" * 64).sentence
    assert dscore("verify").code == 1  # the other one was never begun


@pytest.mark.parametrize("url", ["elsewhere", "sqlite:///elsewhere.db"])
def test_export_and_import(project: Path, dscore: Run, url: str) -> None:
    result = dscore("export", "--output", "all.jsonl")
    assert result.out == "13 records of .dscore/ledger written to all.jsonl\n"
    printed = dscore("export").out
    assert printed == (project / "all.jsonl").read_text()
    assert printed.splitlines() == list(open_ledger(".dscore/ledger", root=project).export_lines())
    taken = dscore("import", "all.jsonl", "--ledger", url, "--why", "moved house")
    assert taken.flat == f"13 records taken over into {url}"
    assert dscore("import", "all.jsonl", "--ledger", url, "--why", "again").flat == f"nothing new for {url}"
    new = open_ledger(url, root=project)
    assert len(new.uses()) == 12
    (record,) = [one for one in new.history() if isinstance(one, Import)]
    assert record.why == "moved house"
    assert record.ran_by


def test_import_from_standard_input(project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(dscore("export").out))
    assert dscore("import", "-", "--ledger", "new", "--why", "piped").code == 0
    assert len(open_ledger("new", root=project).uses()) == 12


def test_an_import_that_cannot_be_used_takes_nothing(project: Path, dscore: Run) -> None:
    lines = dscore("export").out.splitlines()
    bad = {
        "cut": ("\n".join(lines[:-1]), "was cut short"),
        "edited": ("\n".join([lines[0], lines[1].replace("digits-test-", "x-"), *lines[2:]]), ""),
        "foreign": ("hello\n", "was cut short"),
        "empty": ("", "was cut short"),
    }
    for name, (content, says) in bad.items():
        (project / name).write_text(content)
        assert says in dscore("import", name, "--ledger", "new", "--why", "x").sentence
    (project / "binary").write_bytes(b"\xff\xfe\x00")
    assert "binary is not an export of a ledger" in dscore("import", "binary", "--ledger", "new", "--why", "x").sentence
    assert "No such file" in dscore("import", "nothing", "--ledger", "new", "--why", "x").sentence
    assert "Is a directory" in dscore("import", ".", "--ledger", "new", "--why", "x").sentence
    assert "needs a reason" in dscore("import", "cut", "--ledger", "new", "--why", " ").sentence
    assert not open_ledger("new", root=project).begun


def test_an_export_that_fails_leaves_the_old_file(project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "all.jsonl").write_text("the only backup")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "No space left on device" in dscore("export", "--output", "all.jsonl").sentence
    monkeypatch.undo()
    assert (project / "all.jsonl").read_text() == "the only backup"
    assert not list(project.glob(".all.jsonl-*"))
    assert "No such file or directory" in dscore("export", "--output", "none/all.jsonl").sentence


def test_an_export_to_a_pipe_goes_through_it(project: Path, dscore: Run) -> None:
    os.mkfifo(project / "pipe")
    reader = os.open(project / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert dscore("export", "--output", "pipe").code == 0
        assert os.read(reader, 1 << 20).decode() == dscore("export").out
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((project / "pipe").stat().st_mode)


@pytest.mark.parametrize("kind", ["pipe", "directory"])
@pytest.mark.parametrize("command", [("status",), ("verify",), ("export",)])
def test_a_database_that_is_no_file(root: Path, dscore: Run, kind: str, command: tuple[str, ...]) -> None:
    if kind == "pipe":
        os.mkfifo(root / "uses.db")
    else:
        (root / "uses.db").mkdir()
    said = dscore(*command, "--ledger", "sqlite:///uses.db").sentence
    assert "sqlite:///uses.db: there is a directory, a pipe or a device of that name; give a file" in said


def test_a_directory_of_records_that_is_a_pipe(root: Path, dscore: Run) -> None:
    os.mkfifo(root / "uses")
    assert "uses is a file; give a directory" in dscore("status", "--ledger", "uses").sentence


def test_retire(project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    examples.record(project, holdout=examples.identity("part", 400), models=1)
    monkeypatch.setenv("GITHUB_RUN_ID", "4711")
    result = dscore("retire", "digits-test", "--why", "labels corrected")
    assert result.code == 0
    assert "neither are those that share examples with it ('part')" in result.flat
    (record,) = [one for one in open_ledger(".dscore/ledger", root=project).history() if isinstance(one, Retirement)]
    assert (record.why, record.ran_by) == ("labels corrected", "GITHUB_RUN_ID=4711")
    assert "was retired on" in dscore("retire", "digits-test", "--why", "again").sentence


def test_retire_wants_to_know_which(project: Path, dscore: Run) -> None:
    examples.record(project, holdout=examples.identity(seed=2), models=1)
    said = dscore("retire", "digits-test", "--why", "x").sentence
    assert "several hold-outs 'digits-test', say which by its digest" in said
    digest = examples.identity(seed=2).digest[:12]
    assert digest in said
    assert dscore("retire", digest, "--why", "x").code == 0
    assert "no hold-out 'nope'" in dscore("retire", "nope", "--why", "x").sentence
    assert "the following arguments are required: --why" in dscore("retire", "digits-test").sentence
    assert "needs a reason" in dscore("retire", examples.identity().digest, "--why", "").sentence


@pytest.mark.usefixtures("project")
def test_a_slip_in_the_ledger_s_url_is_no_empty_ledger(root: Path, dscore: Run) -> None:
    for command in (("status",), ("history",), ("export",), ("retire", "x", "--why", "x")):
        assert "holds no record" in dscore(*command, "--ledger", "ledgr").sentence
    assert not (root / "ledgr").exists()
    assert "is a file" in dscore("status", "--ledger", "pyproject.toml").sentence


COMMANDS = [
    ("status",),
    ("history",),
    ("verify",),
    ("export",),
    ("retire", "x", "--why", "x"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_password_is_never_printed(root: Path, dscore: Run, command: tuple[str, ...]) -> None:
    given = dscore(*command, "--ledger", URL)
    examples.declare(root, f'{examples.SETTINGS}ledger = "{URL}"\n')
    declared = dscore(*command)
    for result in (given, declared):
        assert result.code == 2
        assert SECRET not in result.out + result.err
        assert "me:***@127.0.0.1" in result.err


@pytest.mark.parametrize(
    "arguments",
    [("status", "--ledgr", URL), ("status", URL), ("plan", "--bound", URL), ("plan", "--n", URL), ("nope", URL)],
)
def test_nor_in_the_wrong_place(dscore: Run, arguments: tuple[str, ...]) -> None:
    assert SECRET not in dscore(*arguments).sentence


X = '[tool.dscore.holdouts.x]\ndata = "a:b"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.dscore", "cannot be read"),
        ("[tool.dscore]\nholdouts = 3", "must hold a table for each of them"),
        ("[tool.dscore.holdouts]\nx = 3", "[tool.dscore.holdouts.x] must be a table"),
        (f"{X}epsilon = 2", "[tool.dscore.holdouts.x] epsilon = 2 cannot be used: give a number between 0 and 1"),
        (f"{X}epsilon = 0.1\nmode = 'adaptve'", "mode = 'adaptve' cannot be used"),
        (f"{X}epsilon = 0.1\nledger = ' '", "the ledger's URL is empty"),
    ],
)
def test_settings_that_cannot_be_used(root: Path, dscore: Run, text: str, says: str) -> None:
    examples.declare(root, text)
    assert says in dscore("status").sentence


def test_a_pyproject_that_is_no_text(root: Path, dscore: Run) -> None:
    (root / "pyproject.toml").write_bytes(b"\xff\xfe")
    assert "pyproject.toml cannot be read" in dscore("status").sentence


def test_a_bound_that_does_not_go_with_the_mode(root: Path, dscore: Run) -> None:
    examples.declare(root, f'{examples.SETTINGS}bound = "bootstrap"\nmode = "adaptive"\n')
    examples.record(root)
    assert "with mode = 'adaptive' use best, union" in dscore("status").sentence


def test_the_project_is_found_from_below_and_by_root(
    project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli.main(["holdout", "status"]) == 0
    assert "12 models used" in capsys.readouterr().out
    monkeypatch.chdir("/")
    assert cli.main(["holdout", "status", "--root", str(project)]) == 0
    assert "12 models used" in capsys.readouterr().out
    assert "--root nowhere is not a directory" in dscore("status", "--root", "nowhere").sentence


def test_epsilon_and_delta_out_of_range(project: Path, dscore: Run) -> None:
    assert "--epsilon must lie strictly between 0 and 1" in dscore("status", "--epsilon", "4").sentence
    assert "--delta must lie strictly between 0 and 1" in dscore("status", "--delta", "0").sentence
    assert project.is_dir()


@pytest.mark.parametrize("arguments", [[], ["holdout"], ["nothing"], ["holdout", "nothing"]])
def test_a_command_that_does_not_exist(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "plan", "status", "history", "verify", "export", "import", "retire", "plot"])
def test_help_fits(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["holdout", *command.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 80


def test_it_is_a_program_whose_reader_may_leave(project: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m pytest_dscore.cli holdout export | true"
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_loads_neither_torch_nor_matplotlib_until_it_draws(root: Path) -> None:
    code = (
        "import sys; from pytest_dscore.cli import main; print('numpy' in sys.modules); main(['holdout', 'status']);"
        "print(sorted({'torch', 'matplotlib', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == ("False", "[]")


@pytest.mark.usefixtures("project")
def test_an_interrupt_is_no_traceback(dscore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "find", interrupted)
    assert dscore("status").code == 130
