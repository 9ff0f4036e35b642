"""``dscore doctor``: every kind of thing that keeps a gate from running is named, with what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_dscore.holdout.ledger import open_ledger
from pytest_dscore.project.checks import Check, lines
from tests.cli import examples
from tests.cli.conftest import Result, Run
from tests.gates.project import Project

REPOSITORY = Path(__file__).resolve().parents[2]
SECRET = "hunter2"
NET = """
import torch
from torch import nn

print("printed while it was imported")


def build():
    raise AssertionError("called")


def data():
    raise AssertionError("called")


def needs(path):
    ...


NUMBER = 3
"""
MODEL = """
[tool.dscore]
min_score = 0.5
[tool.dscore.models.tiny]
factory = "doctored:build"
data = "doctored:data"
"""
HOLDOUT = '[tool.dscore.holdouts.digits-test]\ndata = "doctored:data"\nepsilon = 0.04\n'
PROTOCOL = '[tool.dscore.protocols.cv]\nestimator = "sklearn.svm:SVC"\ndata = "doctored:data"\n'


@pytest.fixture(autouse=True)
def _alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No traces of the machine's own settings, nor of the project's modules."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        place = str(getattr(sys.modules[name], "__file__", ""))
        if str(root) in place or "pytest-of-" in place:
            del sys.modules[name]


@pytest.fixture
def toy(root: Path) -> Path:
    """A project in which all is well."""
    (root / "doctored.py").write_text(NET, encoding="utf-8")
    declare(root)
    return root


def declare(root: Path, text: str = MODEL) -> None:
    """Write pyproject.toml."""
    (root / "pyproject.toml").write_text(text, encoding="utf-8")


def says(result: Result, state: str, *parts: str) -> None:
    """Assert that a line of this state has all parts, and that the exit code goes with it."""
    assert result.err == ""
    assert result.code == (0 if state == "ok" else 1)
    shown: list[tuple[str, str]] = []
    for line in result.out.splitlines():
        word, _, rest = line.strip().partition(" ")
        if line.startswith("  ") and word in ("ok", "missing", "wrong") and not line.startswith("   "):
            shown.append((word, rest.strip()))
        elif line.startswith("  "):
            shown[-1] = (shown[-1][0], f"{shown[-1][1]} {line.strip()}")
    found = [rest for word, rest in shown if word == state and all(part in rest for part in parts)]
    assert found, shown


def test_all_is_well(toy: Path, cli: Run) -> None:
    result = cli("doctor")
    assert result.code == 0
    assert result.out.endswith("\nall is well\n")
    assert "missing" not in result.out
    for part in (
        f"ok Python {sys.version_info[0]}.",
        f"ok torch {metadata.version('torch')}",
        "the plugin dscore is registered",
    ):
        assert part in result.flat
    assert "n = 3, operator = delete, device = auto, min_score = 0.5" in result.flat
    assert "printed while" not in result.out


def test_nothing_of_the_project_is_called(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT + PROTOCOL)
    result = cli("doctor")
    says(
        result, "missing", ".dscore/ledger holds no record", "-> where it was begun before, restore it", "begin digits"
    )
    assert "called" not in result.out
    assert not (toy / ".dscore").exists()


def test_as_json(toy: Path, cli: Run) -> None:
    result = cli("doctor", "--json")
    found = json.loads(result.out)
    assert found["ok"] is True
    assert {check["state"] for check in found["checks"]} == {"ok"}
    declare(toy, MODEL.replace("doctored:build", "doctored:bild"))
    result = cli("doctor", "--json")
    found = json.loads(result.out)
    assert (result.code, found["ok"]) == (1, False)
    [wrong] = [check for check in found["checks"] if check["state"] != "ok"]
    assert wrong["area"] == "model tiny"
    assert "did you mean 'build'?" in wrong["says"]
    assert set(wrong) == {"area", "state", "says", "do"}


def test_the_exit_code_is_2_where_it_cannot_look(cli: Run) -> None:
    assert "--root nowhere is not a directory" in cli("doctor", "--root", "nowhere").sentence


@pytest.mark.parametrize(
    ("text", "state", "part"),
    [
        ("[project]\n", "missing", "has no [tool.dscore] -> `dscore init`"),
        ("[tool.dscore]\nn = 3\n", "missing", "[tool.dscore] declares nothing"),
        ("[tool\n", "wrong", "cannot be read"),
        (MODEL + "nn = 4\n", "wrong", "key 'nn' does not exist"),
        (MODEL.replace("min_score = 0.5", ""), "wrong", "has no threshold"),
    ],
)
def test_settings(toy: Path, cli: Run, text: str, state: str, part: str) -> None:
    declare(toy, text)
    result = cli("doctor")
    says(result, state, part)
    assert "ok torch" in result.flat  # the rest is looked at all the same


def test_without_any_pyproject(root: Path, cli: Run) -> None:
    says(cli("doctor", "--root", "."), "missing", "has no [tool.dscore]")


def test_an_operator_of_a_hook_is_not_called_misspelt(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + 'operator = "halve"\n')
    says(cli("doctor"), "ok", "operator 'halve' is not built in")


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("doctored:build", "nowhere:build", "factory 'nowhere:build': importing nowhere raised ModuleNotFoundError"),
        ("doctored:build", "doctored:NUMBER", "is a int: it must be a callable"),
        ("doctored:data", "doctored:needs", "cannot be called without arguments (missing a required argument: 'path')"),
        ("doctored:data", "broken:x", "importing broken raised SyntaxError"),
        ("doctored:data", "leaves:x", "importing leaves raised SystemExit"),
    ],
)
def test_references_that_do_not_resolve(toy: Path, cli: Run, old: str, new: str, part: str) -> None:
    (toy / "broken.py").write_text("def\n")
    (toy / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    declare(toy, MODEL.replace(old, new))
    says(cli("doctor"), "wrong", part)


def test_a_src_layout_needs_a_path(toy: Path, cli: Run) -> None:
    (toy / "src").mkdir()
    (toy / "doctored.py").rename(toy / "src/doctored.py")
    says(cli("doctor"), "wrong", "No module named 'doctored'", '-> doctored lies in src: set pythonpath = ["src"]')
    declare(toy, MODEL + '[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    assert cli("doctor").code == 0


def test_weights(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + 'weights = "w.safetensors"\n')
    says(cli("doctor"), "missing", "weights w.safetensors", "-> check the path")
    (toy / "w.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    says(cli("doctor"), "missing", "git-lfs pointer", "-> git lfs pull")
    (toy / "w.safetensors").write_bytes(b"1234")
    says(cli("doctor"), "ok", "weights w.safetensors, 4 bytes")


def test_a_device_that_is_not_there(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + 'device = "cuda:99"\n')
    says(cli("doctor"), "wrong", 'device = "cuda:99" is not available here')


# Baselines


def test_a_baseline_that_is_asked_for(
    pytester: pytest.Pytester,
    tmp_path_factory: pytest.TempPathFactory,
    cli: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project(pytester, tmp_path_factory.mktemp("template"))
    project.settings("max_drop = 0.5", "min_score = 0.01")
    here = ("--root", str(project.path))
    says(cli("doctor", *here), "missing", "there is no baseline of model 'tiny'", "--dscore-update-baseline")
    monkeypatch.chdir(project.path)
    done = project.run("--dscore-update-baseline", "pyproject.toml", subprocess=True)
    assert done.ret == 0
    says(cli("doctor", *here), "ok", "baseline of 20", "whether the data are the same is for the gate to say")
    project.replace("pyproject.toml", "max_drop", "n = 2\nmax_drop")
    says(cli("doctor", *here), "wrong", "was made otherwise", "n was 3 and is 2")
    project.replace("pyproject.toml", "n = 2\n", "pad = 3\n")
    says(cli("doctor", *here), "wrong", "was made otherwise", "pad was ")
    project.replace("pyproject.toml", "pad = 3\n", "")
    [hits] = (project.path / ".dscore/baseline").glob("*.npz")
    hits.write_bytes(b"cut")
    says(cli("doctor", *here), "wrong", "the hits of the baseline of model 'tiny', is damaged")
    (project.path / ".dscore/baseline.json").write_text("{")
    says(cli("doctor", *here), "wrong", "cut short or no JSON")


# Hold-outs


def test_a_hold_out_that_was_begun(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT)
    open_ledger(".dscore/ledger", root=toy).begin(examples.identity())
    result = cli("doctor")
    says(result, "ok", "begun, no model is on record yet")
    says(result, "ok", "1 on record, nothing is missing or changed")


def test_a_hold_out_with_budget_left(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT)
    examples.record(toy)
    says(cli("doctor"), "ok", "hold-out 'digits-test': 12 models used")


@pytest.mark.parametrize(
    ("more", "part"), [("max_uses = 12\n", "spent, the next model is refused"), ("epsilon = 0.01\n", "overspent: ")]
)
def test_a_hold_out_that_is_used_up(toy: Path, cli: Run, more: str, part: str) -> None:
    text = MODEL + HOLDOUT
    declare(toy, text.replace("epsilon = 0.04\n", more) if "epsilon" in more else text + more)
    examples.record(toy)
    says(cli("doctor"), "wrong", part, "-> collect new examples")


def test_a_hold_out_that_is_not_on_record(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT.replace("digits-test", "another"))
    examples.record(toy)
    says(cli("doctor"), "missing", "it is not on record in its ledger", "-> `dscore holdout begin another`")


def test_a_hold_out_that_was_retired(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT)
    open_ledger(".dscore/ledger", root=toy).retire(examples.record(toy), "labels were wrong")
    says(cli("doctor"), "wrong", "it was retired: labels were wrong")


def test_a_ledger_that_is_damaged(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + HOLDOUT)
    examples.record(toy)
    path = next((toy / ".dscore/ledger").glob("*/use-*.json"))
    path.chmod(0o644)
    path.write_text("{}")
    says(cli("doctor"), "wrong", "edited", "-> `dscore holdout verify` lists all")


def test_a_directory_in_ci(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(toy, MODEL + HOLDOUT)
    open_ledger(".dscore/ledger", root=toy).begin(examples.identity())
    assert cli("doctor").code == 0
    monkeypatch.setenv("GITHUB_RUN_ID", "4711")
    says(cli("doctor"), "wrong", "in CI a ledger in a directory is lost", '-> ledger = "git:refs/dscore/ledger"')
    declare(toy, MODEL + HOLDOUT + 'ledger = "sqlite:///x.db"\n')
    assert "lost with the runner" not in cli("doctor").out


def test_git_that_a_ledger_needs(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(toy, MODEL + HOLDOUT + 'ledger = "git:refs/dscore/ledger"\n')
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    says(cli("doctor"), "missing", "git, in which the ledger is kept", "-> install git")


def test_one_ledger_out_of_reach_does_not_hide_another(toy: Path, cli: Run) -> None:
    url = f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/db?connect_timeout=2"
    second = HOLDOUT.replace("digits-test", "second") + f'ledger = "{url}"\n'
    declare(toy, MODEL + HOLDOUT + second)
    examples.record(toy)
    result = cli("doctor")
    says(result, "wrong", "me:***@127.0.0.1", "cannot be reached")
    assert "digits-test': 12 models used" in result.flat
    for printed in (result.out, cli("doctor", "--json").out):
        assert SECRET not in printed


# Protocols


def test_a_protocol(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + PROTOCOL)
    says(cli("doctor"), "ok", "estimator sklearn.svm:SVC")


@pytest.mark.parametrize(
    ("more", "state", "part"),
    [
        ('splits = "doctored:folds"\n', "wrong", "splits 'doctored:folds'"),
        ('param_grid = "doctored:grid"\n', "wrong", "param_grid 'doctored:grid'"),
        ('manifest = "none.yaml"\n', "missing", "manifest none.yaml -> `dscore protocol manifest cv`"),
        ('manifest = "broken.yaml"\n', "wrong", "broken.yaml"),
    ],
)
def test_a_protocol_that_lacks_something(toy: Path, cli: Run, more: str, state: str, part: str) -> None:
    (toy / "broken.yaml").write_text("a: [\n")
    declare(toy, MODEL + PROTOCOL + more)
    says(cli("doctor"), state, part)


def test_an_experiment_takes_arguments(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + PROTOCOL.replace('estimator = "sklearn.svm:SVC"', 'experiment = "doctored:needs"'))
    says(cli("doctor"), "ok", "experiment doctored:needs")


# pytest's own settings


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", MODEL + '[tool.pytest.ini_options]\naddopts = "-q -p no:dscore"\n'),
        ("pyproject.toml", MODEL + '[tool.pytest.ini_options]\naddopts = ["-pno:dscore"]\n'),
        ("pyproject.toml", MODEL + '[tool.pytest]\naddopts = ["-p", "no:dscore"]\n'),
        ("pytest.ini", "[pytest]\naddopts = -p no:pytest_dscore.plugin\n"),
        ("tox.ini", "[pytest]\naddopts = -p no:dscore\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -p no:dscore\n"),
        ("pytest.toml", '[pytest]\naddopts = ["-p", "no:dscore"]\n'),
    ],
)
def test_settings_of_pytest_that_turn_the_gate_off(toy: Path, cli: Run, file: str, text: str) -> None:
    (toy / file).write_text(text)
    says(cli("doctor"), "wrong", file, "addopts has -p no:", "which turns the gate off -> take it out")


def test_only_the_file_that_pytest_reads_counts(toy: Path, cli: Run) -> None:
    (toy / "pytest.ini").write_text("")
    (toy / "tox.ini").write_text("[pytest]\naddopts = -p no:dscore\n")
    assert cli("doctor").code == 0


@pytest.mark.parametrize(
    ("addopts", "part"),
    [
        ("-p no:dscore", "PYTEST_ADDOPTS has -p no:dscore"),
        ("-p no:junitxml", "no report.xml can be written"),
        ("-m 'not dscore'", "leaves the gates out"),
        ("'", "PYTEST_ADDOPTS cannot be read"),
        ("--disable-plugin-autoload", "keeps pytest from loading plugins"),
    ],
)
def test_the_environment_of_pytest(
    toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch, addopts: str, part: str
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", addopts)
    says(cli("doctor"), "wrong", part)


def test_plugins_that_are_not_loaded(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    says(cli("doctor"), "wrong", "PYTEST_DISABLE_PLUGIN_AUTOLOAD keeps", "-> unset it, or add -p pytest_dscore")
    declare(toy, MODEL + '[tool.pytest.ini_options]\naddopts = "-p pytest_dscore.plugin"\n')
    assert cli("doctor").code == 0


def test_a_table_of_the_wrong_name(toy: Path, cli: Run) -> None:
    declare(toy, MODEL + "[tool.pytest.dscore]\nn = 3\n")
    says(cli("doctor"), "wrong", "[tool.pytest.dscore]", "-> call the table [tool.dscore]")


def test_a_settings_file_of_pytest_that_is_none(toy: Path, cli: Run) -> None:
    (toy / "pytest.ini").write_text("addopts\n")
    says(cli("doctor"), "wrong", "pytest.ini cannot be read")


# The installation


def test_packages_that_are_missing_or_old(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = metadata.version

    def version(name: str) -> str:
        if name in ("torchvision", "pytest-xdist", "rich"):
            raise metadata.PackageNotFoundError(name)
        return "1.0" if name == "torch" else there(name)

    monkeypatch.setattr(metadata, "version", version)
    result = cli("doctor")
    says(result, "missing", "torchvision -> pip install 'torchvision>=")
    says(result, "missing", "rich -> pip install")
    says(result, "wrong", "torch 1.0, and >=2.6 is needed")
    assert "pytest-xdist is not installed; only pytest -n needs it (extra [xdist])" in result.flat
    assert result.out.endswith("\n2 missing, 1 wrong\n")


def test_a_plugin_that_is_not_registered(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(**_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(metadata, "entry_points", nothing)
    says(cli("doctor"), "missing", "pytest knows no plugin dscore in this environment")


def test_this_repository_s_own_project() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_dscore.cli", "doctor", "--json"],
        cwd=REPOSITORY / "docs",
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert {check["says"] for check in found["checks"]} >= {"factory fixtures.digits:build_model"}
    assert [check for check in found["checks"] if check["area"].startswith("model") and check["state"] != "ok"] == []


def test_no_line_shows_a_password_whoever_wrote_it() -> None:
    check = Check("area", "wrong", f"see https://me:{SECRET}@host/x", f"open https://me:{SECRET}@host/x")
    assert SECRET not in str(check.as_json())
    assert SECRET not in "".join(lines([check]))
