"""docs/protocol-gates.md is run: what it shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_dscore.settings import ProtocolMark, ProtocolSettings
from tests.gates.project import Project, message, properties, section
from tests.gates.protocol_project import declare
from tests.gates.test_protocols_declared import manifest

PAGE = (Path(__file__).resolve().parents[2] / "docs/protocol-gates.md").read_text(encoding="utf-8")
PROJECT = """
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

def build():
    return make_pipeline(StandardScaler(), KNeighborsClassifier())

def data():
    X, y = load_iris(return_X_y=True)
    # The data set has one flower twice.
    return X[[row for row in range(150) if row != 142]], y[[row for row in range(150) if row != 142]]
"""


def blocks(language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_tests_that_it_shows_pass(project: Project) -> None:
    declare(project, files=False)
    first, second = blocks("python")
    project.test(first, "test_error.py")
    project.test(second, "test_leaks.py")
    project.run().assert_outcomes(passed=2)
    project.run(dscore=False).assert_outcomes(skipped=2)
    leaking = second.replace("StandardScaler().fit(X[train])", "StandardScaler().fit(X)")
    assert leaking != second
    project.test(leaking, "test_leaks.py")
    project.run("test_leaks.py").assert_outcomes(failed=1)
    text = message(project.cases()["test_protocol_is_clean"])
    assert "leaks: preprocessing leak in split 0" in text


def test_the_table_that_it_shows(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    [table] = blocks("toml")
    project.write("pyproject.toml", table)
    project.write("project.py", PROJECT)
    project.run().assert_outcomes(passed=3, failed=1)
    command = re.findall(r"`dscore protocol (manifest [\w-]+)`", PAGE)[0].split()
    assert manifest(project, *command[1:]).returncode == 0
    result = project.run()
    result.assert_outcomes(passed=4)
    assert set(project.cases()) == set(re.findall(r"`(dscore\[.*?\])`", PAGE))
    found = {name for case in project.cases().values() for name in properties(case)}
    promised = re.findall(r"`(\w+)`", PAGE.split("named `dscore.protocol.*`:")[1].split("Where a test")[0])
    for name in set(promised) - {"lower", "upper", "error_nested"}:
        assert f"dscore.protocol.{name}" in found
    assert any("Cawley and Talbot" in line for line in section(result))


def test_every_key_is_named() -> None:
    table = PAGE.split("| key |")[1].split("In a worker")[0]
    keys = {
        key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert keys == set(ProtocolSettings.model_fields)
    marks = PAGE.split("The mark's keywords are")[1].split("The call takes")[0]
    assert set(re.findall(r"`(\w+)`", marks)) == set(ProtocolMark.model_fields)
