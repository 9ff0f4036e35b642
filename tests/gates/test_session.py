"""Settings that cannot be used end the run with exit code 4 and one line, before anything is scored."""

from __future__ import annotations

import pytest

from tests.gates.project import MODEL, PASSING, Project, output, refused

SETTINGS = {
    "unknown common key": ("min_scor = 0.5", PASSING, ["[tool.dscore] key 'min_scor'", "did you mean 'min_score'?"]),
    "unknown own key": ("", f"{PASSING}\nfactry = 'a:b'", ["[tool.dscore.models.tiny] key 'factry'", "'factory'?"]),
    "no threshold": ("", "", ["[tool.dscore.models.tiny] has no threshold", "min_score"]),
    "cannot be met": ("", "min_score = 1.01", ["min_score = 1.01 can never be met"]),
    "type": ("n = '3'", PASSING, ["[tool.dscore] n = '3' cannot be used: give a whole number >= 2"]),
    "too small": ("n = 1", PASSING, ["[tool.dscore] n = 1 cannot be used: give a whole number >= 2"]),
    "no whole number": ("n = 2.5", PASSING, ["[tool.dscore] n = 2.5 cannot be used"]),
    "bool": ("n = true", PASSING, ["[tool.dscore] n = True cannot be used"]),
    "nan": ("", "max_v_robust = nan", ["[tool.dscore.models.tiny] max_v_robust = nan"]),
    "inf": ("", "max_v_robust = inf", ["[tool.dscore.models.tiny] max_v_robust = inf"]),
    "operator": ("operator = 'delte'", PASSING, ["operator 'delte' does not exist; did you mean 'delete'?"]),
    "syntax": ("n = = 3", PASSING, ["pyproject.toml", "line 3"]),
    "junit": ("junit_properties = 1", PASSING, ["junit_properties = 1 must be true or false"]),
}


@pytest.mark.parametrize(("common", "own", "parts"), SETTINGS.values(), ids=SETTINGS)
def test_unusable_settings(project: Project, common: str, own: str, parts: list[str]) -> None:
    project.settings(common, own)
    if "n = = 3" in common:
        # pytest itself reads pyproject.toml, and stops first with its own words.
        result = project.pytester.runpytest_inprocess("--dscore", "-p", "no:hypothesispytest")
        parts = parts[:1]
    else:
        result = project.run()
        assert "pytest-dscore: " in output(result)
    refused(result, *parts)
    assert project.count("build") == project.count("forward") == 0


def test_a_bad_name(project: Project) -> None:
    project.settings(own=PASSING, more=MODEL.format(name='"a b"', own=PASSING))
    refused(project.run(), "[tool.dscore.models.a b] the name may hold letters, digits and . _ - only")


def test_no_models(project: Project) -> None:
    project.write("pyproject.toml", "[tool.dscore]\nmin_score = 0.5\n")
    refused(project.run(), "[tool.dscore] declares no model", "add a table [tool.dscore.models.NAME]")


def test_no_table(project: Project) -> None:
    project.write("pyproject.toml", "[tool.other]\nmin_score = 0.5\n")
    refused(project.run(), "pyproject.toml has no table [tool.dscore]", "add one")


def test_a_table_of_pytests_own(project: Project) -> None:
    project.write("pyproject.toml", "[tool.pytest.dscore]\nmin_score = 0.5\n")
    refused(project.run(), "dscore")


def test_no_file(project: Project) -> None:
    (project.path / "pyproject.toml").unlink()
    refused(project.run(), "--dscore reads [tool.dscore] of pyproject.toml in pytest's rootdir", "--rootdir")


def test_another_rootdir(project: Project) -> None:
    project.write("elsewhere/test_user.py", "def test_user():\n    pass")
    result = project.run("--rootdir", "elsewhere", "elsewhere")
    refused(result, "elsewhere/pyproject.toml does not exist", "--rootdir")
    project.run("--rootdir", ".", "elsewhere").assert_outcomes(passed=2)


def test_a_misspelt_option(project: Project) -> None:
    refused(project.run("--dscor-no-cache"), "unrecognized arguments: --dscor-no-cache")


def test_all_faults_of_a_table_are_named_at_once(project: Project) -> None:
    project.settings("n = 1\nseed = -1\noperatr = 'delete'", PASSING)
    refused(project.run(), "n = 1", "seed = -1", "'operatr'", "'operator'")
