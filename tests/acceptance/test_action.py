"""The GitHub action: its scripts run with a fake `gh`, and its YAML is checked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
ACTION = REPOSITORY / ".github/actions/gate"
SCRIPTS = sorted(path.name for path in ACTION.glob("*.sh"))
WORKFLOW = REPOSITORY / ".github/workflows/dscore.yml"
YAML = [ACTION / "action.yml", *sorted((REPOSITORY / ".github/workflows").glob("*.yml"))]
MARKER = "<!-- dscore-report -->"
BOT = "github-actions[bot]"

# Notes what it was called with, and answers as $FAKE/answers.json says: by the beginning of the call, the exit code,
# what goes to standard output and error, and files that it leaves in the directory given with --dir.
GH = """
import json, os, sys
from pathlib import Path

fake = Path(os.environ["FAKE"])
call = " ".join(sys.argv[1:])
body = next((Path(a.partition("@")[2]).read_text() for a in sys.argv if a.startswith("body=@")), None)
jq = sys.argv[sys.argv.index("--jq") + 1] if "--jq" in sys.argv else None
token = os.environ.get("GH_TOKEN")
with (fake / "calls").open("a") as file:
    file.write(json.dumps({"call": call, "body": body, "jq": jq, "token": token}) + "\\n")
for start, answer in json.loads((fake / "answers.json").read_text()).items():
    if call.startswith(start):
        sys.stdout.write(answer.get("out", ""))
        sys.stderr.write(answer.get("err", ""))
        for name, content in answer.get("files", {}).items():
            Path(sys.argv[sys.argv.index("--dir") + 1], name).write_text(content)
        sys.exit(answer.get("code", 0))
sys.exit("unexpected: " + call)
"""

FORBIDDEN = {"code": 1, "err": "gh: Resource not accessible by integration (HTTP 403)\n"}
RUNS, DOWNLOAD = "run list", "run download"
COMMENTS, NEW, OLD = "api --paginate", "api --silent --method POST", "api --silent --method PATCH"


@dataclass(frozen=True)
class Done:
    """What a script left: exit code, what it printed, its outputs and the step's summary."""

    code: int
    out: str
    err: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """A machine that runs the action's scripts, with programs of its own before all others on its PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.temporary = root / "temp"
        self.bin = root / "bin"
        for path in (self.work, self.temporary, self.bin):
            path.mkdir()
        self.program("python", f'exec "{sys.executable}" "$@"')
        self.answers()
        (root / "gh.py").write_text(GH)
        self.program("gh", f'exec "{sys.executable}" "{root / "gh.py"}" "$@"')

    def program(self, name: str, body: str) -> None:
        """Put a program on the PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def answers(self, **by_name: dict[str, Any]) -> None:
        """Say what gh answers; what is not named here is an error."""
        calls = {"runs": RUNS, "download": DOWNLOAD, "comments": COMMENTS, "new": NEW, "old": OLD}
        (self.root / "answers.json").write_text(json.dumps({calls[name]: answer for name, answer in by_name.items()}))

    def calls(self) -> list[dict[str, str]]:
        """What gh was called with so far."""
        path = self.root / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def run(self, script: str, **variables: str) -> Done:
        """Run one script as the action does."""
        output, summary = self.root / "output", self.root / "summary"
        for file in (output, summary):
            file.write_text("")
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "OMP_NUM_THREADS": "1",
            "FAKE": str(self.root),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_ACTIONS": "true",
            "WORKING_DIRECTORY": ".",
            "GH_REPO": "o/r",
            **variables,
        }
        command = ["bash", str(ACTION / script)]
        done = subprocess.run(command, cwd=self.work, env=environment, capture_output=True, text=True, check=False)
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return Done(done.returncode, done.stdout, done.stderr, outputs, summary.read_text())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner where nothing has happened yet."""
    return Runner(tmp_path)


def pytest_that(runner: Runner, code: int, report: str | None = "<testsuites/>") -> None:
    """Put a pytest on the PATH that notes its arguments, and leaves this report."""
    write = "" if report is None else f"printf '%s' '{report}' >\"${{2#--junitxml=}}\""
    runner.program("pytest", f'printf "%s\\n" "$@" >"$FAKE/arguments"\n{write}\nexit {code}')


def test_the_gate_s_exit_code_is_kept_until_the_end(runner: Runner) -> None:
    for code in (0, 1, 5):
        pytest_that(runner, code)
        done = runner.run("gate.sh", PYTEST_ARGS="")
        assert done.code == 0
        assert (done.outputs["exit-code"], done.outputs["reported"]) == (str(code), "true")
        assert (Path(done.outputs["directory"]) / "report.xml").read_text() == "<testsuites/>"
        assert runner.run("verdict.sh", EXIT_CODE=done.outputs["exit-code"]).code == code


@pytest.mark.parametrize("code", ["", "x", "0; true"])
def test_no_exit_code_is_no_success(runner: Runner, code: str) -> None:
    done = runner.run("verdict.sh", EXIT_CODE=code)
    assert done.code == 1
    assert "::error" in done.out


def test_arguments_are_quoted_as_in_a_shell_and_never_run(runner: Runner) -> None:
    pytest_that(runner, 0)
    done = runner.run("gate.sh", PYTEST_ARGS="-k 'a or b' $(touch evil) `touch evil` ; touch evil *")
    given = (runner.root / "arguments").read_text().splitlines()
    assert given[0] == "--dscore"
    assert given[1] == f"--junitxml={done.outputs['directory']}/report.xml"
    assert given[2:6] == ["-k", "a or b", "$(touch", "evil)"]
    assert given[-1] == "*"
    assert not list(runner.work.iterdir())
    assert runner.run("gate.sh", PYTEST_ARGS="'open").code != 0


def test_without_arguments_there_are_none(runner: Runner) -> None:
    pytest_that(runner, 0)
    runner.run("gate.sh", PYTEST_ARGS="  ")
    assert len((runner.root / "arguments").read_text().splitlines()) == 2


@pytest.mark.parametrize(("code", "ends"), [(0, 1), (3, 3), (139, 139)])
def test_a_crash_without_a_report_is_an_error(runner: Runner, code: int, ends: int) -> None:
    (runner.work / "report.xml").write_text("of another run")
    pytest_that(runner, code, report=None)
    done = runner.run("gate.sh", PYTEST_ARGS="")
    assert done.code == ends
    assert f"::error title=pytest-dscore::pytest ended with exit code {code} and left no report" in done.out
    assert "reported" not in done.outputs


BASE = {"BRANCH": "main", "ARTIFACT": "dscore-report", "GH_TOKEN": "t0ken"}
REF = "o/r/.github/workflows/dscore.yml@refs/pull/3/merge"


def fetched(runner: Runner) -> Done:
    """Run base.sh."""
    directory = runner.temporary / "dscore/report"
    directory.mkdir(parents=True, exist_ok=True)
    return runner.run("base.sh", **BASE, WORKFLOW_REF=REF, DIRECTORY=str(directory))


def test_the_base_branch_s_report_is_fetched(runner: Runner) -> None:
    runner.answers(runs={"out": "4711\n"}, download={"files": {"report.xml": "base"}})
    done = fetched(runner)
    assert (done.code, done.out) == (0, "Compared with run 4711 of main.\n")
    assert (runner.temporary / "dscore/base/report.xml").read_text() == "base"
    listed, downloaded = runner.calls()
    assert "--workflow dscore.yml --branch main --event push --status success --limit 1" in listed["call"]
    assert downloaded["call"].startswith("run download 4711 --name dscore-report --dir ")


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"runs": {"out": ""}}, "dscore.yml has no successful run there"),
        ({"runs": FORBIDDEN}, "its runs cannot be listed (gh: Resource not accessible"),
        (
            {"runs": {"out": "1"}, "download": {"code": 1, "err": "no valid artifacts found\n"}},
            "no artifact dscore-rep",
        ),
        ({"runs": {"out": "1"}, "download": {"files": {"other": ""}}}, "holds no report.xml"),
    ],
)
def test_without_a_base_nothing_is_compared_and_nothing_fails(
    runner: Runner, answers: dict[str, Any], says: str
) -> None:
    runner.answers(**answers)
    done = fetched(runner)
    assert done.code == 0
    assert done.out.startswith("::notice title=pytest-dscore::Nothing is compared with main: ")
    assert says in done.out
    assert len(done.out.splitlines()) == 1
    assert not (runner.temporary / "dscore/base/report.xml").exists()


def without_gh(runner: Runner) -> None:
    """Leave the runner nothing but what the scripts need besides."""
    (runner.bin / "gh").unlink()
    for name in ("bash", "mktemp", "dirname", "rm", "tr", "cut", "grep"):
        (runner.bin / name).symlink_to(shutil.which(name) or name)


def test_a_runner_without_gh_says_so(runner: Runner) -> None:
    without_gh(runner)
    directory = report_in(runner)
    alone = {"PATH": str(runner.bin)}
    done = runner.run("base.sh", **BASE, WORKFLOW_REF=REF, DIRECTORY=str(directory), **alone)
    assert (done.code, "is not installed on this runner" in done.out) == (0, True)
    done = runner.run("comment.sh", DIRECTORY=str(directory), PULL_REQUEST="7", AUTHOR=BOT, **alone)
    assert (done.code, "is not installed on this runner" in done.out) == (0, True)


def report_in(runner: Runner, text: str = f"{MARKER}\n### fine\n") -> Path:
    """A directory with a report.md."""
    directory = runner.temporary / "dscore/report"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "report.md").write_text(text)
    return directory


def commented(runner: Runner, pull_request: str = "7") -> Done:
    """Run comment.sh."""
    directory = str(report_in(runner))
    return runner.run("comment.sh", DIRECTORY=directory, PULL_REQUEST=pull_request, AUTHOR=BOT, GH_TOKEN="t0ken")


def test_a_comment_is_written_once(runner: Runner) -> None:
    runner.answers(comments={"out": ""}, new={})
    done = commented(runner)
    assert (done.code, done.out) == (0, "A comment was written.\n")
    listed, written = runner.calls()
    assert "repos/o/r/issues/7/comments?per_page=100" in listed["call"]
    assert "repos/o/r/issues/7/comments" in written["call"]
    assert written["body"] == f"{MARKER}\n### fine\n"


def test_a_comment_is_brought_up_to_date(runner: Runner) -> None:
    runner.answers(comments={"out": "41\n42\n"}, old={})
    done = commented(runner)
    assert (done.code, done.out) == (0, "Comment 41 is up to date.\n")
    written = runner.calls()[-1]
    assert "repos/o/r/issues/comments/41 " in written["call"]
    assert written["body"].startswith(MARKER)


def test_only_the_bot_s_own_comment_is_its_own(runner: Runner) -> None:
    if (jq := shutil.which("jq")) is None:
        pytest.skip("needs jq")
    runner.answers(comments={"out": ""}, new={})
    commented(runner)
    comments = [
        {"id": 1, "user": {"login": "somebody"}, "body": f"{MARKER} mine"},
        {"id": 2, "user": {"login": BOT}, "body": "another bot's job"},
        {"id": 3, "user": {"login": BOT}, "body": f"> {MARKER}"},
        {"id": 4, "user": {"login": BOT}, "body": f"{MARKER}\nours"},
        {"id": 5, "user": {"login": BOT}, "body": None},
    ]
    environment = {"AUTHOR": BOT, "MARKER": MARKER, "PATH": os.environ["PATH"]}
    given = json.dumps(comments)
    command = [jq, runner.calls()[0]["jq"]]
    found = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["4"]


def test_a_token_that_may_only_read_fails_nothing(runner: Runner) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"comments": FORBIDDEN},
        {"comments": {"out": ""}, "new": FORBIDDEN},
        {"comments": {"out": "4"}, "old": FORBIDDEN},
    )
    for answers in cases:
        runner.answers(**answers)
        done = commented(runner)
        assert done.code == 0
        assert done.out.startswith("::notice title=pytest-dscore::No comment: the token may not write one")
        assert "in the summary" in done.out


def test_any_other_trouble_with_the_comment_is_a_warning(runner: Runner) -> None:
    trouble = {"code": 1, "err": "HTTP 502: Bad Gateway\n::error::forged\n"}
    for answers in (
        {"comments": trouble},
        {"comments": {}, "new": trouble},
        {"comments": {"out": "4"}, "old": trouble},
    ):
        runner.answers(**answers)
        done = commented(runner)
        assert done.code == 0
        assert done.out.startswith("::warning title=pytest-dscore::No comment: ")
        assert "HTTP 502" in done.out
        assert len(done.out.splitlines()) == 1


@pytest.mark.parametrize("number", ["", "7/../8", "x"])
def test_a_pull_request_is_a_number(runner: Runner, number: str) -> None:
    done = commented(runner, number)
    assert done.code == 2
    assert runner.calls() == []


def dscore_that(runner: Runner, codes: str) -> None:
    """Put a dscore on the PATH that notes its arguments and whether it would write a summary."""
    body = 'echo "$* ${GITHUB_STEP_SUMMARY:+summary}" >>"$FAKE/reports"\n'
    runner.program("dscore", body + codes)


def reported(runner: Runner, base: bool) -> tuple[Done, list[str]]:
    """Run report.sh; the calls of dscore."""
    directory = report_in(runner)
    if base:
        (directory.parent / "base").mkdir()
        (directory.parent / "base/report.xml").write_text("base")
    done = runner.run("report.sh", DIRECTORY=str(directory))
    return done, (runner.root / "reports").read_text().splitlines()


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("base", [False, True])
def test_every_form_of_the_report_is_made_and_one_summary(runner: Runner, code: int, base: bool) -> None:
    dscore_that(runner, f"exit {code}")
    done, calls = reported(runner, base)
    assert done.code == 0
    assert {call.split("--format ")[1].split()[0] for call in calls} >= {"markdown", "html", "github"}
    assert sum(call.endswith(" summary") for call in calls) == 1
    assert all(("--baseline" in call) == base for call in calls)


def test_a_base_report_that_cannot_be_used_is_left_out(runner: Runner) -> None:
    dscore_that(runner, 'case "$*" in *--baseline*) exit 2 ;; esac')
    done, calls = reported(runner, base=True)
    assert done.code == 0
    assert "::notice title=pytest-dscore::Nothing is compared: the base branch's report cannot be used" in done.out
    assert [call for call in calls if "--baseline" not in call][-1].endswith("report.md summary")


def test_a_report_that_cannot_be_read_is_an_error(runner: Runner) -> None:
    dscore_that(runner, "exit 2")
    assert reported(runner, base=False)[0].code != 0


@pytest.mark.slow
def test_the_whole_action_on_the_bundled_project(runner: Runner) -> None:
    """Gate, base, report, comment, verdict, with the real pytest and dscore; the base is this run's own report."""
    shutil.copytree(REPOSITORY / "fixtures", runner.work / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    settings = '[tool.dscore]\nmin_score = 0.99\n[tool.dscore.models.digits]\nfactory = "fixtures.digits:build_model"\n'
    settings += 'weights = "fixtures/digits.safetensors"\ndata = "fixtures.digits:holdout"\nn = 2\nbootstrap = 100\n'
    (runner.work / "pyproject.toml").write_text(settings)
    runner.program("pytest", f'exec "{sys.executable}" -m pytest "$@"')
    runner.program("dscore", f'exec "{sys.executable}" -m pytest_dscore.cli "$@"')
    variables = {"PYTHONPATH": str(REPOSITORY), "AUTHOR": BOT, "PULL_REQUEST": "7", "WORKFLOW_REF": REF, **BASE}
    gate = runner.run("gate.sh", PYTEST_ARGS="pyproject.toml -p no:cacheprovider", **variables)
    assert (gate.code, gate.outputs["exit-code"]) == (0, "1")
    directory = Path(gate.outputs["directory"])
    variables["DIRECTORY"] = str(directory)
    runner.answers(
        runs={"out": "1"},
        download={"files": {"report.xml": (directory / "report.xml").read_text()}},
        comments={"out": ""},
        new={},
    )
    assert runner.run("base.sh", **variables).code == 0
    report = runner.run("report.sh", **variables)
    assert (report.code, report.err) == (0, "")
    assert "::error file=pyproject.toml,line=2," in report.out
    assert report.summary.startswith(MARKER)
    assert report.summary.count(MARKER) == 1
    assert runner.run("comment.sh", **variables).code == 0
    assert runner.calls()[-1]["body"].startswith(MARKER)
    assert "digits" in runner.calls()[-1]["body"]
    assert {path.name for path in directory.iterdir()} == {"report.xml", "report.md", "report.html"}
    assert runner.run("verdict.sh", EXIT_CODE=gate.outputs["exit-code"]).code == 1


# The YAML


def parsed(path: Path) -> dict[Any, Any]:
    """A YAML file; `on` is read as True by YAML 1.1."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def steps(document: dict[Any, Any]) -> list[dict[str, Any]]:
    """All steps of an action or a workflow."""
    if "runs" in document:
        return list(document["runs"]["steps"])
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_nothing_is_pasted_into_a_script(path: Path) -> None:
    found = steps(parsed(path))
    assert found
    assert [step["run"] for step in found if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    lines = re.findall(r"^.*uses:\s*(\S.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert lines or path.name == "action.yml"
    for line in lines:
        assert re.fullmatch(r"\./\.github/actions/gate|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_commit_for_each_action() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in YAML)
    pins = dict(re.findall(r"uses:\s*([\w/-]+)@(\w+ # \S+)", text))
    assert set(re.findall(r"uses:\s*([\w/-]+@\w+ # \S+)", text)) == {f"{name}@{pin}" for name, pin in pins.items()}


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_no_workflow_runs_a_stranger_s_code_with_our_token(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    for step in steps(parsed(path)):
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_the_workflow_asks_for_no_more_than_it_needs() -> None:
    document = parsed(WORKFLOW)
    assert document["permissions"] == {"contents": "read", "actions": "read", "pull-requests": "write"}
    assert all("permissions" not in job for job in document["jobs"].values())
    assert set(document[True]) == {"push", "pull_request"}
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")


def test_users_code_does_not_get_the_token() -> None:
    for step in steps(parsed(ACTION / "action.yml")):
        script = step.get("run", "")
        assert ("GH_TOKEN" in step.get("env", {})) == ("base.sh" in script or "comment.sh" in script)


def test_every_step_gives_its_script_what_it_reads() -> None:
    given_by_runner = {"RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"}
    for step in steps(parsed(ACTION / "action.yml")):
        if "run" not in step:
            continue
        [name] = re.findall(r"\w+\.sh", step["run"])
        text = re.sub(r"^\s*#.*$", "", (ACTION / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        own = set(re.findall(r"\b([A-Z][A-Z_]+)=", text))
        read = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", text)) - own - given_by_runner
        assert read - {"MARKER"} <= step["env"].keys(), name


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_stop_at_the_first_error(name: str) -> None:
    text = (ACTION / name).read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in text
    if (shellcheck := shutil.which("shellcheck")) is not None:
        done = subprocess.run(
            [shellcheck, "-S", "style", str(ACTION / name)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")
