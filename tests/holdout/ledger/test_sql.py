"""What can happen to a ledger in a database."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerUnreachable,
    open_ledger,
)
from pytest_dscore.holdout.ledger.record import name_of
from pytest_dscore.holdout.ledger.sql_schema import RECORDS, VERSION, VERSION_TABLE, migrate
from tests.holdout.ledger.conftest import make_place, new_schema
from tests.holdout.ledger.examples import holdout, use
from tests.holdout.ledger.places import SqlPlace
from tests.holdout.ledger.postgres import PASSWORD, Server, binaries

DATA = holdout()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> SqlPlace:
    made = make_place(request.param, tmp_path, request)
    assert isinstance(made, SqlPlace)
    return made


@pytest.fixture
def lite(tmp_path: Path) -> SqlPlace:
    return SqlPlace(tmp_path)


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server to test with: apt-get install postgresql")
    server = Server(programs)
    yield server
    server.remove()


def test_a_ledger_of_the_previous_version_opens(place: SqlPlace) -> None:
    other = open_ledger(place.path / "elsewhere")
    other.record_all([use(model, DATA) for model in range(3)], DATA)
    other.retire(DATA, "moved")
    lines = other.export_lines()[:-1]
    with place.engine.begin() as connection:
        migrate(connection, "0001")
        rows = [{"name": name_of(line), "line": line} for line in lines]
        connection.execute(sa.text("INSERT INTO dscore_ledger_records (name, line) VALUES (:name, :line)"), rows)
    ledger = place.open(must_exist=True)
    assert ledger.uses() == other.uses()
    assert place.execute(f"SELECT version_num FROM {VERSION_TABLE}") == [("0001",)]  # reading changes nothing
    fresh = holdout(seed=1)
    assert ledger.record(use(0, fresh), fresh).is_new
    assert place.execute(f"SELECT version_num FROM {VERSION_TABLE}") == [(VERSION,)]
    counts = "SELECT kind, count(*) FROM dscore_ledger_records WHERE holdout = :holdout GROUP BY kind ORDER BY kind"
    assert place.execute(counts, holdout=DATA.digest) == [("holdout", 1), ("retire", 1), ("use", 3)]
    assert place.open().verify().ok


def test_a_damaged_row_survives_the_migration_and_is_named(place: SqlPlace) -> None:
    with place.engine.begin() as connection:
        migrate(connection, "0001")
        rows = [{"name": "a" * 64, "line": "scribble"}, {"name": "b" * 64, "line": "[]"}]
        connection.execute(sa.text("INSERT INTO dscore_ledger_records (name, line) VALUES (:name, :line)"), rows)
        migrate(connection)
    assert [f.fault for f in place.open().verify().findings] == ["foreign", "foreign"]


def test_the_migrations_make_the_tables_that_the_code_expects(place: SqlPlace) -> None:
    with place.engine.begin() as connection:
        migrate(connection)
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, RECORDS.metadata) == []


def test_a_ledger_of_a_newer_version_is_refused(place: SqlPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    place.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0999'")
    with pytest.raises(LedgerError, match=r"tables of version 0999, of a newer pytest-dscore .*: upgrade it here"):
        place.open().uses()
    with pytest.raises(LedgerError, match="of a newer pytest-dscore"):
        place.open().record(use(1, DATA), DATA)


def test_records_without_a_version_are_refused(place: SqlPlace) -> None:
    place.open().record(use(0, DATA), DATA)
    place.execute(f"DROP TABLE {VERSION_TABLE}")
    with pytest.raises(LedgerError, match="so the version of the ledger is unknown: restore both from a backup"):
        place.open().record(use(1, DATA), DATA)


def test_a_git_revision_is_no_base_of_a_database(place: SqlPlace) -> None:
    with pytest.raises(SettingsError, match="is not kept in git, so base = 'main' says nothing about it"):
        place.open().verify(base="main")


def test_many_records_are_read_in_chunks(place: SqlPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_dscore.holdout.ledger.sql._CHUNK", 3)
    place.open().record_all([use(model, DATA) for model in range(10)], DATA)
    assert len(place.open().uses()) == 10


def test_reading_makes_no_database(lite: SqlPlace) -> None:
    assert lite.open().uses() == ()
    assert not list(lite.path.iterdir())


def test_another_program_holds_the_database(lite: SqlPlace) -> None:
    lite.open().record(use(0, DATA), DATA)
    ledger = open_ledger("sqlite:///ledger.db", root=lite.path, timeout=0.2)
    with closing(sqlite3.connect(lite.path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerBusy, match=r"was locked by others for 0\.2 s, so nothing was recorded"):
            ledger.record(use(1, DATA), DATA)
        other.execute("ROLLBACK")
    assert ledger.record(use(1, DATA), DATA).is_new


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to look like one" * 50, b"SQLite format 3\0" * 9]
)
def test_a_file_that_is_no_database(lite: SqlPlace, content: bytes) -> None:
    (lite.path / "ledger.db").write_bytes(content)
    with pytest.raises(LedgerDamaged, match=r"is damaged .*: restore it from a backup"):
        lite.open().uses()


def test_a_database_in_a_directory_that_is_not_there(lite: SqlPlace) -> None:
    ledger = open_ledger("sqlite:///missing/ledger.db", root=lite.path)
    with pytest.raises(LedgerError, match="unable to open database file"):
        ledger.record(use(0, DATA), DATA)


def test_a_writer_that_is_slow_makes_the_others_wait_no_longer_than_they_said(postgres: Server, tmp_path: Path) -> None:
    place = SqlPlace(tmp_path, new_schema(postgres))
    place.open().record(use(0, DATA), DATA)
    hurried = open_ledger(place.url, timeout=0.3)
    outcome: list[str] = []

    def admit(existing: Any, new: Any) -> str:
        with pytest.raises(LedgerBusy, match=r"was locked by others for 0\.3 s"):
            hurried.record(use(2, DATA), DATA)
        outcome.append("busy")
        return ""

    assert place.open().record(use(1, DATA), DATA, admit).is_new
    assert outcome == ["busy"]
    assert hurried.record(use(2, DATA), DATA).is_new


def test_a_server_whose_default_isolation_is_stricter(postgres: Server, tmp_path: Path) -> None:
    place = SqlPlace(tmp_path, new_schema(postgres, "-cdefault_transaction_isolation=serializable"))
    ledger = place.open()
    for model in range(3):
        assert ledger.record(use(model, DATA), DATA).is_new
    assert place.open().verify().ok


def test_a_server_that_stops_in_the_middle_and_starts_again(own_server: Server) -> None:
    ledger = open_ledger(own_server.url(), timeout=5)
    ledger.record(use(0, DATA), DATA)

    def stop(existing: Any, new: Any) -> str:
        own_server.stop()
        return "never shown"

    with pytest.raises(LedgerUnreachable, match="cannot be reached, so nothing was admitted") as caught:
        ledger.record(use(1, DATA), DATA, stop)
    assert PASSWORD not in str(caught.value)
    with pytest.raises(LedgerUnreachable, match="cannot be reached"):
        ledger.uses()
    own_server.start()
    assert [u.model for u in ledger.uses()] == ["model-0"]
    assert ledger.record(use(1, DATA), DATA).is_new
    assert open_ledger(own_server.url()).verify().ok


def test_deadlocks_and_serialization_failures_are_tried_again(postgres: Server, tmp_path: Path) -> None:
    place = SqlPlace(tmp_path, new_schema(postgres))
    place.open().record(use(0, DATA), DATA)
    place.execute(
        """CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries') < 3 THEN RAISE EXCEPTION 'try again' USING ERRCODE = '40001'; END IF;
        RETURN NEW; END $$"""
    )
    place.execute("CREATE SEQUENCE tries")
    place.execute("CREATE TRIGGER t BEFORE INSERT ON dscore_ledger_records FOR EACH ROW EXECUTE FUNCTION fail_once()")
    assert place.open().record(use(1, DATA), DATA).is_new
    assert len(place.open().uses()) == 2
    place.execute("DROP TRIGGER t ON dscore_ledger_records")
    place.execute("ALTER SEQUENCE tries MINVALUE -1000000 RESTART -1000000")
    place.execute("CREATE TRIGGER t BEFORE INSERT ON dscore_ledger_records FOR EACH ROW EXECUTE FUNCTION fail_once()")
    with pytest.raises(LedgerBusy, match=r"was being written by others all the time, .*: try again .*try again"):
        open_ledger(place.url, timeout=0.3).record(use(2, DATA), DATA)


def test_a_user_who_may_not_write(postgres: Server, tmp_path: Path) -> None:
    place = SqlPlace(tmp_path, new_schema(postgres, "-cdefault_transaction_read_only=on"))
    with pytest.raises(LedgerError, match="cannot be used, so nothing was admitted: cannot execute"):
        place.open().record(use(0, DATA), DATA)


def test_a_wrong_password(postgres: Server) -> None:
    ledger = open_ledger(postgres.url(password="wrong-but-secret"))
    with pytest.raises(LedgerUnreachable, match="password authentication failed") as caught:
        ledger.uses()
    assert "wrong-but-secret" not in str(caught.value)


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"needs psycopg, which is not installed: pip install 'pytest-dscore\[p"):
        open_ledger("postgresql://db/x")
