"""Each backend in turn."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.holdout.ledger.places import DirectoryPlace, GitPlace, Place, SqlPlace
from tests.holdout.ledger.postgres import Server, binaries

BACKENDS = ["directory", "git", "sqlite", "postgresql"]
_NUMBERS = itertools.count()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where the system offers that: the ledger waits for the disk after every write, hundreds of times."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for the session."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server to test with: apt-get install postgresql")
    server = Server(programs)
    yield server
    server.remove()


def new_schema(server: Server, options: str = "") -> str:
    """Make a schema, which is quicker than a database, and return the URL of a ledger in it."""
    name = f"ledger{next(_NUMBERS)}"
    SqlPlace(Path(), server.url()).execute(f"CREATE SCHEMA {name}")
    return f"{server.url()}?options={quote(f'-csearch_path={name} {options}')}"


def make_place(backend: str, path: Path, request: pytest.FixtureRequest) -> Place:
    """An empty place of a backend."""
    if backend == "postgresql":
        return SqlPlace(path, new_schema(request.getfixturevalue("postgres")))
    return {"directory": DirectoryPlace, "git": GitPlace, "sqlite": SqlPlace}[backend](path)


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for a ledger, of each backend."""
    return make_place(request.param, tmp_path, request)


@pytest.fixture
def other_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A second place, of another backend than the first."""
    first = request.node.callspec.params["place"]
    (tmp_path / "other").mkdir()
    following = BACKENDS[(BACKENDS.index(first) + 1) % len(BACKENDS)]
    return make_place(following, tmp_path / "other", request)
