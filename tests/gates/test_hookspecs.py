"""Operators from a conftest.py."""

from __future__ import annotations

import pytest

from tests.gates.project import MODEL, PASSING, Project, failed, output, properties, refused

DOUBLE = """
def double(cell, output, seed):
    cell.mul_(2)

def pytest_dscore_operators():
    return {"double": double}
"""


@pytest.fixture
def hooked(project: Project) -> Project:
    """A project with an operator of its own."""
    project.write("conftest.py", DOUBLE)
    project.settings("operator = 'double'", PASSING)
    return project


def test_an_operator_of_the_project_is_used(hooked: Project) -> None:
    hooked.run().assert_outcomes(passed=1)
    found = properties(hooked.cases()["dscore[tiny-min_score]"])
    assert found["dscore.operator"] == "double"

    def double(cell, output, seed):  # type: ignore[no-untyped-def]
        cell.mul_(2)

    assert float(found["dscore.v_robust"]) == hooked.direct(operator=double).v_robust.value
    assert float(found["dscore.v_robust"]) != hooked.direct().v_robust.value


def test_a_marker_can_name_it(hooked: Project) -> None:
    hooked.settings(own=PASSING)
    hooked.test("@pytest.mark.dscore(operator='double', min_score=0.01)\ndef test_user(dscore):\n    pass")
    hooked.run().assert_outcomes(passed=2)


def test_it_is_among_the_valid_names(hooked: Project) -> None:
    hooked.settings("operator = 'dubble'", PASSING)
    refused(hooked.run(), "operator 'dubble' does not exist; did you mean 'double'?", "delete, double, invert")


def test_without_the_hook_the_name_is_unknown(hooked: Project) -> None:
    hooked.write("conftest.py", "")
    refused(hooked.run(), "operator 'double' does not exist")


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("return {'delete': double}", "operator 'delete' of a pytest_dscore_operators hook exists already"),
        ("return {'double': 3}", "operator 'double' of a pytest_dscore_operators hook is no function"),
        ("return [double]", "pytest_dscore_operators"),
        ("return {3: double}", "pytest_dscore_operators"),
    ],
)
def test_a_hook_that_cannot_be_used(hooked: Project, code: str, part: str) -> None:
    hooked.replace("conftest.py", 'return {"double": double}', code)
    refused(hooked.run(), part)


def test_two_hooks_of_one_name_are_refused(hooked: Project) -> None:
    hooked.write("more.py", DOUBLE)
    hooked.write("conftest.py", f"pytest_plugins = ['more']\n{DOUBLE}")
    refused(hooked.run(), "operator 'double' of a pytest_dscore_operators hook exists already")


def test_a_hook_that_gives_nothing_is_no_fault(hooked: Project) -> None:
    hooked.replace("conftest.py", 'return {"double": double}', "return None")
    hooked.settings(own=PASSING)
    hooked.run().assert_outcomes(passed=1)


def test_an_operator_that_raises_fails_its_gate(hooked: Project) -> None:
    hooked.replace("conftest.py", "cell.mul_(2)", "raise ValueError('no such cell')")
    failed(hooked.run(), hooked, "cannot be scored", "ValueError", "no such cell")


def test_changed_code_of_the_operator_is_measured_anew(hooked: Project) -> None:
    hooked.run()
    passes = hooked.count("forward")
    hooked.run()
    assert hooked.count("forward") == passes
    hooked.replace("conftest.py", "cell.mul_(2)", "cell.mul_(3)")
    hooked.run()
    assert hooked.count("forward") == 2 * passes


def test_without_the_option_the_hook_is_known_and_not_called(hooked: Project) -> None:
    hooked.replace("conftest.py", 'return {"double": double}', "raise RuntimeError")
    hooked.test("def test_other():\n    pass")
    result = hooked.run(dscore=False)
    result.assert_outcomes(passed=1)
    assert "unknown hook" not in output(result)


def test_models_may_use_different_operators(hooked: Project) -> None:
    hooked.settings(own=f"operator = 'double'\n{PASSING}", more=MODEL.format(name="other", own=PASSING))
    hooked.run().assert_outcomes(passed=2)
    found = {case.name: properties(case)["dscore.operator"] for case in hooked.cases().values()}
    assert found == {"dscore[tiny-min_score]": "double", "dscore[other-min_score]": "delete"}
