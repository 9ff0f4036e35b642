"""Collected items: names, selection, order, place."""

from __future__ import annotations

import re

import pytest

from tests.gates.project import FAILING, MODEL, PASSING, Project, failed, output, refused

TWO_GATES = "min_score = 0.01\nmax_v_robust = 0.001"
SCORE, ROBUST = "pyproject.toml::dscore[tiny-min_score]", "pyproject.toml::dscore[tiny-max_v_robust]"


def collected(project: Project, *args: str) -> list[str]:
    """Node ids in their order."""
    result = project.run("--collect-only", "-q", *args)
    return [line for line in result.outlines if "::" in line]


def ran(result: pytest.RunResult) -> list[str]:
    """Node ids of a verbose run in their order."""
    return [line.split(" ")[0] for line in result.outlines if re.match(r"\S+::.* (PASSED|FAILED|ERROR)", line)]


@pytest.fixture
def two(project: Project) -> Project:
    """A project whose second gate fails, and a user's test."""
    project.settings(own=TWO_GATES)
    project.test("def test_other():\n    pass")
    return project


def test_one_item_per_gate_in_a_fixed_order(project: Project) -> None:
    every = "min_accuracy = 0.1\nmin_v_fitness = 0.1\nmax_v_robust = 3.0\nmin_score = 0.01"
    project.settings(own=every, more=MODEL.format(name="digits", own="min_score = 0.01"))
    names = [
        "tiny-min_score",
        "tiny-max_v_robust",
        "tiny-min_v_fitness",
        "tiny-min_accuracy",
        "digits-min_score",
    ]
    assert collected(project) == [f"pyproject.toml::dscore[{name}]" for name in names]
    project.run().assert_outcomes(passed=5)


def test_collecting_scores_nothing(two: Project) -> None:
    assert sorted(collected(two)) == sorted([SCORE, ROBUST, "test_user.py::test_other"])
    assert two.count("build") == two.count("forward") == 0


def test_common_thresholds_are_inherited_and_overridden(project: Project) -> None:
    project.settings(common="min_score = 0.99\nmax_v_robust = 3.0", own="min_score = 0.02")
    project.run().assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), [SCORE, ROBUST, "test_user.py::test_other"]),
        (("pyproject.toml",), [SCORE, ROBUST]),
        (("pyproject.toml", "pyproject.toml"), [SCORE, ROBUST]),
        ((".", "pyproject.toml"), [SCORE, ROBUST, "test_user.py::test_other"]),
        (("test_user.py",), ["test_user.py::test_other", SCORE, ROBUST]),
        (("pyproject.toml", "test_user.py"), [SCORE, ROBUST, "test_user.py::test_other"]),
        ((ROBUST,), [ROBUST]),
        ((SCORE, "test_user.py"), [SCORE, "test_user.py::test_other"]),
        (("-k", "max_v_robust"), [ROBUST]),
        (("-k", "tiny and not max_v_robust"), [SCORE]),
        (("-k", "test_other"), ["test_user.py::test_other"]),
        (("-m", "dscore"), [SCORE, ROBUST]),
        (("-m", "not dscore"), ["test_user.py::test_other"]),
        (("--deselect", SCORE), [ROBUST, "test_user.py::test_other"]),
        (("--ignore", "pyproject.toml", "test_user.py"), ["test_user.py::test_other", SCORE, ROBUST]),
    ],
    ids=str,
)
def test_selection(two: Project, args: tuple[str, ...], expected: list[str]) -> None:
    assert ran(two.run("-v", *args)) == expected


def test_a_selection_without_gates_still_appends_them_where_tests_are_elsewhere(two: Project) -> None:
    two.test("def test_deep():\n    pass", name="deep/test_deep.py")
    assert ran(two.run("-v", "deep")) == ["deep/test_deep.py::test_deep", SCORE, ROBUST]


def test_an_unknown_gate_on_the_command_line_is_refused(two: Project) -> None:
    refused(two.run("pyproject.toml::dscore[tiny-nothing]"), "not found", "pyproject.toml::dscore")


@pytest.mark.parametrize("option", ["--lf", "--last-failed", "--ff"])
def test_last_failed(two: Project, option: str) -> None:
    two.run().assert_outcomes(passed=2, failed=1)
    expected = [ROBUST] if option != "--ff" else [ROBUST, SCORE, "test_user.py::test_other"]
    assert ran(two.run("-v", option)) == expected


def test_stepwise_and_exitfirst_stop_at_the_failing_gate(two: Project) -> None:
    two.settings(own="min_score = 0.99\nmax_v_robust = 0.001")
    assert ran(two.run("-v", "-x")) == [SCORE]
    assert ran(two.run("-v", "--sw")) == [SCORE]
    two.settings(own=TWO_GATES)
    assert ran(two.run("-v", "--sw")) == [SCORE, ROBUST]
    assert ran(two.run("-v", "--sw")) == [ROBUST]


def test_quiet_output_and_durations(two: Project) -> None:
    text = output(two.run("-q", "--durations=3", "-rA"))
    assert f"FAILED {ROBUST} - v_robust " in text
    assert f"PASSED {SCORE}" in text


def line_of(project: Project, text: str) -> int:
    """Number of the line in pyproject.toml that starts with a text, from 1."""
    lines = (project.path / "pyproject.toml").read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if line.startswith(text)]
    return number


def last_line(project: Project, name: str = "dscore[tiny-min_score]") -> str:
    """The last line of a failure."""
    [result] = project.cases()[name].result
    return str(result.text).rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("common", "own", "where"),
    [
        ("min_score = 0.5", "min_score = 0.99 # own", "min_score = 0.99"),
        ("min_score = 0.98", "# min_score = 0.1", "min_score = 0.98"),
        ("", "  \n# min_score is next\nmin_score=0.99", "min_score=0.99"),
        ("", '"min_score" = 0.99', "[tool.dscore.models.tiny]"),
    ],
    ids=["own", "common", "comments", "quoted key"],
)
def test_a_failure_points_at_the_line_of_its_threshold(project: Project, common: str, own: str, where: str) -> None:
    project.settings(common, own)
    failed(project.run(), project, "D-Score ")
    assert last_line(project) == f"pyproject.toml:{line_of(project, where)}"


def test_one_line_tracebacks_point_there_too(project: Project) -> None:
    project.settings(own=FAILING)
    text = output(project.run("--tb=line"))
    assert f"pyproject.toml:{line_of(project, FAILING)}: D-Score 0." in text


def test_a_failure_under_a_quoted_table_points_at_its_line(project: Project) -> None:
    project.settings(own=PASSING, more=MODEL.format(name='"v1.2"', own=FAILING))
    failed(project.run(), project, "model 'v1.2'", name="dscore[v1.2-min_score]")
    assert last_line(project, "dscore[v1.2-min_score]") == f"pyproject.toml:{line_of(project, FAILING)}"


def test_xunit1_has_file_and_line_counted_from_zero(project: Project) -> None:
    project.settings(own=FAILING)
    project.run("-o", "junit_family=xunit1").assert_outcomes(failed=1)
    element = project.cases()["dscore[tiny-min_score]"]._elem
    assert element.get("file") == "pyproject.toml"
    assert element.get("line") == str(line_of(project, FAILING) - 1)


def test_a_settings_table_in_dotted_and_inline_form_works(project: Project) -> None:
    project.write(
        "pyproject.toml",
        "[tool]\ndscore.bootstrap = 100\ndscore.models.tiny = {factory = 'net:build', data = 'net:data', "
        "weights = 'weights.safetensors', min_score = 0.99}\n",
    )
    failed(project.run(), project, "D-Score ")
    assert last_line(project).startswith("pyproject.toml")


def test_asking_for_a_test_by_its_id_leaves_the_gates_out(two: Project) -> None:
    two.run("test_user.py::test_other").assert_outcomes(passed=1)
    two.run("test_user.py").assert_outcomes(passed=2, failed=1)


def test_the_gates_count_as_collected(two: Project) -> None:
    assert "collected 3 items" in output(two.run())
