"""The plugin module: silent without --dscore, and at home in every kind of pytest run."""

from __future__ import annotations

import pytest

from tests.gates.project import FAILING, PASSING, Project, output, section

HEAVY = ("torch", "numpy", "scipy", "pydantic", "rich", "safetensors", "pytest_dscore.gates")

USER_TESTS = """
@pytest.mark.dscore(model="tiny", min_score=0.99)
def test_marked():
    raise AssertionError("ran")

def test_fixture(dscore):
    raise AssertionError("ran")

@pytest.mark.dscore(min_score=0.99)
class TestMarked:
    def test_method(self):
        raise AssertionError("ran")

def test_other():
    pass
"""

REPORT_MODULES = f"""
import sys

def pytest_unconfigure():
    print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
"""


def test_without_the_option_nothing_heavy_is_imported_and_tests_are_skipped(project: Project) -> None:
    project.write("conftest.py", REPORT_MODULES)
    project.test(USER_TESTS)
    result = project.run("-rs", subprocess=True, dscore=False)
    assert "LOADED []" in result.outlines
    result.assert_outcomes(passed=1, skipped=3)
    assert output(result).count("D-Score gate: runs with pytest --dscore") == 3
    assert "dscore: gating" not in output(result)
    assert "D-Score of" not in output(result)
    assert not any("=" in line and " D-Score " in line for line in result.outlines)


def test_without_the_option_bad_settings_do_not_matter(project: Project) -> None:
    project.settings(common="bogus = 1")
    project.test("def test_other():\n    pass")
    project.run(dscore=False).assert_outcomes(passed=1)


def test_a_project_without_settings_or_models_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_other="def test_other():\n    pass")
    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    assert "dscore:" not in output(result)


def test_help_lists_the_options(project: Project) -> None:
    text = output(project.run("--help", dscore=False))
    assert "--dscore " in text
    assert "--dscore-no-cache" in text


def test_markers_lists_the_marker(project: Project) -> None:
    text = output(project.run("--markers", dscore=False))
    assert "@pytest.mark.dscore(model=NAME" in text


def test_header_names_the_models(project: Project) -> None:
    assert "dscore: gating tiny (cache on)" in project.run().outlines
    assert "dscore: gating tiny (cache off)" in project.run("--dscore-no-cache").outlines


@pytest.mark.parametrize(
    "options",
    [
        ("--strict-markers", "--strict-config"),
        ("-p", "no:cacheprovider"),
        ("-p", "no:junitxml"),
        ("-p", "no:terminal"),
        ("-p", "no:capture"),
        ("-p", "no:xdist"),
        ("-s",),
        ("-q", "--tb=short"),
        ("--tb=no",),
        ("--import-mode=importlib",),
        ("--setup-show",),
    ],
    ids=" ".join,
)
def test_gates_hold_with_other_options(project: Project, options: tuple[str, ...]) -> None:
    # Without the plugin there is no such option.
    junit = "no:junitxml" not in options
    project.settings(own=f"{PASSING}\nmin_accuracy = 1.0")
    project.test("@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore):\n    assert dscore.n == 3")
    result = project.run(*options, junit=junit)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    if "no:terminal" not in options:
        result.assert_outcomes(passed=2, failed=1)
    project.settings(own=PASSING)
    assert project.run(*options, junit=junit).ret == pytest.ExitCode.OK


def test_setup_plan_and_fixtures_options_score_nothing(project: Project) -> None:
    project.test("def test_user(dscore):\n    pass")
    project.run("--setup-plan", "--collect-only")
    project.run("--fixtures")
    assert project.count("forward") == 0


def test_from_a_subdirectory(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.test("@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore):\n    pass", name="deep/er/test_user.py")
    monkeypatch.chdir(project.path / "deep" / "er")
    result = project.run("-v")
    result.assert_outcomes(passed=2)
    assert any(line.startswith("../../pyproject.toml::dscore[tiny-min_score] PASSED") for line in result.outlines)


def test_from_a_subdirectory_a_failure_fails(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.settings(own=FAILING)
    (project.path / "deep").mkdir()
    monkeypatch.chdir(project.path / "deep")
    project.run().assert_outcomes(failed=1)


def test_with_a_conftest_of_the_user(project: Project) -> None:
    project.write(
        "tests/conftest.py",
        "import pytest\n\n@pytest.fixture(autouse=True)\ndef mine():\n    yield 1\n\n"
        "def pytest_collection_modifyitems(items):\n    items.reverse()\n",
    )
    project.test(
        "@pytest.mark.dscore(min_score=0.01)\ndef test_user(mine, dscore):\n    assert mine", "tests/test_user.py"
    )
    result = project.run("-v", "tests")
    result.assert_outcomes(passed=2)
    assert project.count("build") == 1


def test_user_code_may_print_and_log(project: Project) -> None:
    project.replace("net.py", 'log("build")', 'log("build"); print("HELLO FROM THE FACTORY")')
    project.settings(own=FAILING)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert not any("HELLO" in line for line in section(result))


def test_the_plugin_can_be_blocked(project: Project) -> None:
    project.test("def test_other():\n    pass")
    project.run("-p", "no:dscore", dscore=False).assert_outcomes(passed=1)
