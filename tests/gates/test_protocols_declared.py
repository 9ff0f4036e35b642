"""``[tool.dscore.protocols.NAME]``: an item for each threshold, for the leaks and for the manifest."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from junitparser import JUnitXml
from sklearn.neighbors import KNeighborsClassifier  # type: ignore[import-untyped]

from pytest_dscore.cli import main
from pytest_dscore.gates.protocol_judge import bias_verdict
from pytest_dscore.protocol import Bias, compare_protocols, nested_cv
from tests.gates.project import Project, load_module, message, output, properties, section
from tests.gates.protocol_project import declare

PIPELINE = 'estimator = "exp:build"\ndata = "exp:data"\nsplits = 3\ninner = 2\n'
GRID = "param_grid = { kneighborsclassifier__n_neighbors = [1, 5] }\n"
CLEAN = 'experiment = "exp:clean"\ndata = "exp:data"\nsplits = 3\n'


def test_one_item_for_each_gate_at_its_own_line(project: Project) -> None:
    own = f"{PIPELINE}{GRID}max_bias = 50.0\nmax_error = 0.5\n"
    declare(project, own + 'manifest = "protocol.yaml"', f"{CLEAN}max_error = 0.001")
    result = project.run("-o", "junit_family=xunit1")
    result.assert_outcomes(passed=4, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "dscore: gating protocols one, two (cache on)" in result.outlines
    lines = (project.path / "pyproject.toml").read_text().splitlines()
    found = {
        case.name: lines[int(case._elem.attrib["line"])]
        for suite in JUnitXml.fromfile(str(project.path / "report.xml"))
        for case in suite
    }
    assert found == {
        "dscore[one-max_error]": "max_error = 0.5",
        "dscore[one-max_bias]": "max_bias = 50.0",
        "dscore[one-leaks]": "[tool.dscore.protocols.one]",
        "dscore[one-manifest]": 'manifest = "protocol.yaml"',
        "dscore[two-max_error]": "max_error = 0.001",
        "dscore[two-leaks]": "[tool.dscore.protocols.two]",
    }
    assert list(found) == [re.sub(r".*(dscore\[.*\]).*", r"\1", name) for name in found]
    assert project.count("data") == 2, "each protocol's data are loaded once for all of its gates"


def test_the_same_numbers_as_the_library(project: Project) -> None:
    declare(project, f"{PIPELINE}{GRID}max_bias = 50.0\nmax_error = 0.5\nrepeats = 2\nseed = 3\nprobe = false")
    project.run().assert_outcomes(passed=2)
    module = load_module(project.path / "exp.py")
    X, y = module.data()
    grid = {"kneighborsclassifier__n_neighbors": [1, 5]}
    direct = nested_cv(module.build(), grid, X, y, outer=3, inner=2, repeats=2, seed=3)
    found = properties(project.cases()["dscore[one-max_error]"])
    assert float(found["dscore.protocol.error"]) == direct.error.value
    assert json.loads(found["dscore.protocol.fold_errors"]) == direct.fold_errors.tolist()
    compared = compare_protocols(module.build(), grid, X, y, outer=3, inner=2, repeats=2, seed=3)
    found = properties(project.cases()["dscore[one-max_bias]"])
    for shortcut in ("external", "median"):
        assert float(found[f"dscore.protocol.bias_{shortcut}"]) == compared.bias[shortcut].mean
        assert float(found[f"dscore.protocol.bias_{shortcut}.lower"]) <= compared.bias[shortcut].mean
    assert json.loads(found["dscore.protocol.bias_p_values"])["median"] == compared.bias["median"].p_value
    assert float(found["dscore.protocol.error_internal"]) == direct.error.value


def test_a_bias_fails_in_percentage_points(project: Project) -> None:
    """On labels of pure chance, whoever chooses among many trees on all rows is flattered."""
    own = 'estimator = "exp:tree"\ndata = "exp:noise"\nsplits = 4\ninner = 2\nprobe = false\n'
    grid = "param_grid = { max_depth = [1, 5], max_features = [1, 40], random_state = [0, 1, 2] }\n"
    declare(project, f"{own}{grid}max_bias = 0.5")
    result = project.run()
    result.assert_outcomes(failed=1)
    text = message(project.cases()["dscore[one-max_bias]"])
    assert re.match(r"protocol 'one': the (external|median) protocol flatters the error by \d+\.\d\d \[.*\] perc", text)
    assert "its interval contains max_bias = 0.5" in text
    assert any(line.startswith("one") and "inconclusive (<= 0.5)" in line for line in section(result))
    declare(project, f"{own}{grid}max_bias = 60.0")
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("own", "leaks"),
    [
        (CLEAN, False),
        (CLEAN + "param_grid = { k = [1, 3] }\n", False),
        (PIPELINE, False),
        (PIPELINE + GRID, False),
        (PIPELINE.replace("build", "search"), False),
        (PIPELINE.replace("build", "search_by_group").replace(":data", ":grouped"), False),
        (PIPELINE.replace("splits = 3", 'splits = "exp:SPLITTER"'), False),
        (CLEAN.replace(":clean", ":leaky"), True),
        (CLEAN.replace(":clean", ":chosen_on_all").replace(":data", ":noise"), True),
        (CLEAN.replace(":data", ":grouped").replace("splits = 3", 'splits = "exp:SPLITTER"'), True),
    ],
    ids=[
        *("experiment", "experiment with a grid", "estimator", "estimator with a grid", "search", "search by group"),
        *("splitter", "scaler", "selection", "groups that the splitter tears apart"),
    ],
)
def test_the_probe_is_a_gate_by_default(project: Project, own: str, leaks: bool) -> None:
    declare(project, own)
    result = project.run()
    result.assert_outcomes(**{"failed" if leaks else "passed": 1})
    found = properties(project.cases()["dscore[one-leaks]"])
    assert found["dscore.protocol.verdict.leaks"] == ("fail" if leaks else "pass")
    assert int(found["dscore.protocol.runs"]) >= 6
    assert bool(json.loads(found["dscore.protocol.leaks"])) == leaks


def test_a_leaking_choice_names_what_it_flatters(project: Project) -> None:
    declare(project, CLEAN.replace(":clean", ":chosen_on_all").replace(":data", ":noise"))
    project.run().assert_outcomes(failed=1)
    assert "flatters the error by" in message(project.cases()["dscore[one-leaks]"])


GRIDS = [
    '"exp:GRID"',
    '"exp:grid"',
    "[{ kneighborsclassifier__n_neighbors = [1] }, { standardscaler = ['passthrough'] }]",
]


@pytest.mark.parametrize("grid", GRIDS)
def test_ways_to_give_a_grid(project: Project, grid: str) -> None:
    declare(project, f"{PIPELINE}param_grid = {grid}\nmax_error = 0.5\nprobe = false")
    project.run().assert_outcomes(passed=1)
    assert json.loads(properties(project.cases()["dscore[one-max_error]"])["dscore.protocol.instability"])


@pytest.mark.parametrize("splits", ["SPLITTER", "folds", "pairs", "StratifiedKFold"])
def test_ways_to_give_splits(project: Project, splits: str) -> None:
    declare(project, f"{CLEAN.replace('splits = 3', f'splits = {chr(34)}exp:{splits}{chr(34)}')}max_error = 0.5")
    code = (
        "def folds():\n    return 4\npairs = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]\n"
    )
    project.write("exp.py", (project.path / "exp.py").read_text() + code)
    project.run().assert_outcomes(passed=2)


@dataclass
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def manifest(project: Project, *arguments: str) -> Done:
    """Run ``dscore protocol manifest``; the user's module is forgotten, as a process of its own would."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["protocol", "manifest", "--root", str(project.path), *arguments])
    for name in ("exp", "project"):
        sys.modules.pop(name, None)
    return Done(code, out.getvalue(), err.getvalue())


def test_the_command_is_a_program(project: Project) -> None:
    declare(project, MANIFEST)
    command = [sys.executable, "-m", "pytest_dscore.cli", "protocol", "manifest", "one"]
    inside = project.write("deep/inside", "").parent
    done = subprocess.run(command, cwd=inside, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "protocol.yaml declares protocol 'one': 60 rows, 3 splits; commit it\n"
    assert (project.path / "protocol.yaml").is_file()


MANIFEST = CLEAN + 'manifest = "protocol.yaml"\nprobe = false\n'


def test_a_missing_manifest_fails_and_says_how_to_write_one(project: Project) -> None:
    declare(project, MANIFEST)
    project.run().assert_outcomes(failed=1)
    text = message(project.cases()["dscore[one-manifest]"])
    assert "its manifest protocol.yaml does not exist: write it with `dscore protocol manifest one`" in text
    done = manifest(project, "one")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "protocol.yaml declares protocol 'one': 60 rows, 3 splits; commit it\n"
    assert "selection: none" in (project.path / "protocol.yaml").read_text()
    result = project.run()
    result.assert_outcomes(passed=1)
    assert "data, splits, seed, scoring and selection are as declared in protocol.yaml" in " ".join(section(result))


MOVED = {
    "labels": (".astype(int)\n\n\ndef grouped", ".astype(int) ^ (np.arange(60) == 7)\n\n\ndef grouped", "the labels"),
    "features": ("[1, 10, 100]\n    return X, (X[:, 0]", "[1, 10, 101]\n    return X, (X[:, 0]", "the features"),
    "splits": ("splits = 3", "splits = 4", "the number of splits (3 in the manifest, 4 now)"),
    "seed": ("splits = 3", "splits = 3\nseed = 1", "the seed (0 in the manifest, 1 now); the train part of split 0"),
    "groups": (":data", ":grouped", "the groups ("),
    "scoring": ("splits = 3", "splits = 3\nscoring = 'f1'", "the scoring (accuracy in the manifest, f1 now)"),
    "experiment": (":clean", ":leaky", "the experiment (exp:clean in the manifest, exp:leaky now)"),
}


@pytest.mark.parametrize(("old", "new", "part"), MOVED.values(), ids=MOVED)
def test_what_moved_since_fails_and_is_named(project: Project, old: str, new: str, part: str) -> None:
    declare(project, MANIFEST)
    assert manifest(project, "one").returncode == 0
    project.replace("exp.py" if old in (project.path / "exp.py").read_text() else "pyproject.toml", old, new)
    result = project.run()
    result.assert_outcomes(failed=1)
    text = message(project.cases()["dscore[one-manifest]"])
    assert text.startswith("protocol 'one': since protocol.yaml was written there moved: ")
    assert part in text
    assert "dscore protocol manifest one --force" in text
    moved = json.loads(properties(project.cases()["dscore[one-manifest]"])["dscore.protocol.moved"])
    assert any(one.startswith(part.partition(";")[0]) for one in moved)
    assert all(one in output(result) for one in moved)
    assert manifest(project, "one", "--force").returncode == 0
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("selection", ["external", "median"])
@pytest.mark.parametrize("grid", ["", GRID])
def test_a_declared_shortcut_fails_with_its_bias(project: Project, selection: str, grid: str) -> None:
    declare(project, f'{PIPELINE}{grid}manifest = "protocol.yaml"\nprobe = false')
    assert manifest(project, "one", "--selection", selection).returncode == 0
    project.run().assert_outcomes(failed=1)
    text = message(project.cases()["dscore[one-manifest]"])
    assert text.startswith("protocol 'one' leaks as declared in protocol.yaml: selection leak in the declared protocol")
    assert ("it flatters the error by" if grid else "the bias was not measured") in text


def test_a_damaged_manifest_fails(project: Project) -> None:
    declare(project, MANIFEST)
    project.write("protocol.yaml", "version: 1\nnam: x\n")
    project.run().assert_outcomes(failed=1)
    assert "protocol.yaml" in message(project.cases()["dscore[one-manifest]"])


def test_the_command_never_overwrites_unasked(project: Project) -> None:
    declare(project, MANIFEST)
    project.write("protocol.yaml", "kept")
    done = manifest(project, "one")
    assert done.returncode == 2
    assert done.stderr == "dscore: error: protocol.yaml exists already: give --force to replace it\n"
    assert (project.path / "protocol.yaml").read_text() == "kept"
    assert manifest(project, "one", "--force").returncode == 0
    assert (project.path / "protocol.yaml").read_text() != "kept"


COMMANDS = {
    "unknown": (("oen",), MANIFEST, "protocol 'oen' does not exist; did you mean 'one'?"),
    "no file": (
        ("one",),
        CLEAN,
        '[tool.dscore.protocols.one] names no file to write to: add manifest = "protocol.yaml"',
    ),
    "no directory": (("one",), MANIFEST.replace("protocol.yaml", "no/where.yaml"), "cannot be written"),
    "data": (("one",), MANIFEST.replace(":data", ":dta"), "protocol 'one': data 'exp:dta': in exp the name 'dta' does"),
    "selection": (("one", "--selection", "inner"), MANIFEST, "invalid choice: 'inner'"),
    "no name": ((), MANIFEST, "the following arguments are required: NAME"),
}


@pytest.mark.parametrize(("arguments", "own", "part"), COMMANDS.values(), ids=COMMANDS)
def test_the_command_refuses_in_one_sentence(project: Project, arguments: tuple[str, ...], own: str, part: str) -> None:
    declare(project, own)
    done = manifest(project, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_command_where_nothing_is_declared(project: Project) -> None:
    declare(project)
    done = manifest(project, "one")
    assert done.returncode == 2
    assert "declares no protocol" in " ".join(done.stderr.split())


def test_the_terminal_fits_80_columns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    own = f'{PIPELINE}{GRID}max_bias = 50.0\nmax_error = 0.001\nmanifest = "protocol.yaml"'
    declare(project, own, CLEAN.replace(":clean", ":leaky"))
    project.replace("pyproject.toml", "protocols.one]", "protocols.a-protocol-with-a-rather-long-name]")
    lines = section(project.run())
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    for part in (
        "bias, external",
        "bias, median",
        "inconclusive (<= 0.001)",
        "does not exist",
        "Fix: fit scalers",
        "Cawley and",
    ):
        assert part in text
    assert "Bias: how many percentage points lower the error looks" in text


def test_no_properties_where_readers_reject_them(project: Project) -> None:
    declare(project, CLEAN)
    project.replace("pyproject.toml", "[tool.dscore]\n", "[tool.dscore]\njunit_properties = false\n")
    project.run().assert_outcomes(passed=1)
    assert properties(project.cases()["dscore[one-leaks]"]) == {}


def test_gates_can_be_chosen_by_name_and_marker(project: Project) -> None:
    declare(project, f"{CLEAN}max_error = 0.5")
    result = project.run("-k", "leaks")
    result.assert_outcomes(passed=1, deselected=1)
    assert "1 of 2 declared gates did not run." in section(result)
    project.run("-m", "dscore").assert_outcomes(passed=2)
    project.run("pyproject.toml::dscore[one-max_error]").assert_outcomes(passed=1)
    assert "1 passed" in output(project.run("pyproject.toml::dscore[one-leaks]"))


@pytest.mark.parametrize("worst", ["external", "median"])
@pytest.mark.parametrize("value", [2.5, float("nan")])
def test_the_worst_bias_is_judged_and_no_number_fails(worst: str, value: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    found = compare_protocols(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, y, outer=3, inner=2)
    biases = {name: Bias(value if name == worst else 1.0, 0.01, 0.5) for name in ("external", "median")}
    verdict = bias_verdict("it", replace(found, bias=biases), 2.0)
    assert verdict.outcome == "fail"
    assert verdict.figure == f"bias_{worst}"
    assert f"the {worst} protocol" in verdict.reason
    within = {name: Bias(1.9 if name == worst else 1.0, 0.01, 0.5) for name in ("external", "median")}
    assert bias_verdict("it", replace(found, bias=within), 2.0).outcome == "pass"
