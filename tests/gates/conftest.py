"""A user's project for pytester runs."""

from __future__ import annotations

import sys
from pathlib import Path

import alembic.command  # noqa: F401
import junitparser  # noqa: F401
import pytest
import rich.progress  # noqa: F401
import sqlalchemy.dialects.postgresql
import sqlalchemy.dialects.sqlite  # noqa: F401

# Imported once in the outer process: pytester forgets what an in-process run imports, and extension modules such as
# pydantic's cannot be imported twice.
import pytest_dscore.gates.holdout_score
import pytest_dscore.gates.holdout_use
import pytest_dscore.gates.judge
import pytest_dscore.gates.scoring
import pytest_dscore.gates.session
import pytest_dscore.holdout.ledger.directory
import pytest_dscore.holdout.ledger.git_ref
import pytest_dscore.holdout.ledger.sql
import pytest_dscore.report.terminal  # noqa: F401
from tests.gates.holdout_project import HoldoutProject
from tests.gates.project import Project


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the project's weights and data are made, once."""
    return tmp_path_factory.mktemp("template")


@pytest.fixture
def project(pytester: pytest.Pytester, template: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with one model, ``tiny``, whose only gate passes."""
    # Two sources of the same size written within one second share their bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return Project(pytester, template)


@pytest.fixture
def bench(project: Project, pytester: pytest.Pytester, template: Path) -> HoldoutProject:
    """A project with a hold-out of 100 examples, `digits-test`, whose ledger is begun, and no model."""
    return HoldoutProject(pytester, template)
