"""A ledger in a database: PostgreSQL for teams, SQLite through the same code."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger.backend import Backend, Entry, Listing
from pytest_dscore.holdout.ledger.faults import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerUnreachable,
    LostRace,
)
from pytest_dscore.holdout.ledger.record import Declaration, Import, Record
from pytest_dscore.holdout.ledger.sql_schema import RECORDS, VERSION, migrate, version
from pytest_dscore.holdout.ledger.urls import Location

# All writers of any ledger in the database queue for this one advisory lock: "dscore" in ASCII.
_LOCK = 0x6473636F7265
_CHUNK = 500
_SERIALIZATION, _LOCK_TIMEOUT = ("40001", "40P01"), ("55P03", "57014")


class SqlBackend(Backend):
    """Records as rows of one table.

    Parameters
    ----------
    location
        SQLAlchemy URL of PostgreSQL (psycopg 3) or SQLite.
    root
        What a relative SQLite path starts from.
    timeout
        Seconds to wait for the server and for other writers.
    """

    def __init__(self, location: Location, root: Path, timeout: float) -> None:
        self.where = str(location)
        self._location = location
        self._timeout = timeout
        self._url = self._checked_url(root)
        self._postgres = self._url.get_backend_name() == "postgresql"
        self._engine = self._make_engine()
        self._connection: sa.Connection | None = None
        self._current = False

    def _checked_url(self, root: Path) -> sa.URL:
        advice = 'write "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE" or "sqlite:///FILE"'
        try:
            url = sa.make_url(self._location.reveal())
        except (ArgumentError, ValueError):
            raise SettingsError(f"{self.where} is not a database URL: {advice}") from None
        kind = url.drivername.partition("+")[0]
        if kind in ("postgresql", "postgres"):
            return url.set(drivername="postgresql+psycopg")
        if kind != "sqlite":
            raise SettingsError(f"{self.where}: a ledger cannot be kept in {kind}: {advice}")
        if url.database in (None, "", ":memory:"):
            raise SettingsError(f"{self.where} keeps the ledger in memory, where it would be lost: {advice}")
        file = root / str(url.database)
        if file.exists() and not file.is_file():
            raise SettingsError(f"{self.where}: there is a directory, a pipe or a device of that name; give a file")
        return url.set(drivername="sqlite+pysqlite", database=str(file))

    def _make_engine(self) -> sa.Engine:
        # No pool: nothing is left open that a user would have to close, and a server may restart between two uses.
        try:
            if self._postgres:
                seconds = max(2, math.ceil(self._timeout))
                # The second is for a server that vanishes without a word while it is asked.
                wait = {"connect_timeout": seconds, "tcp_user_timeout": 1000 * seconds}
                engine = sa.create_engine(self._url, hide_parameters=True, poolclass=NullPool, connect_args=wait)
                # A snapshot taken before the lock was granted would not show what its last holder wrote.
                return engine.execution_options(isolation_level="READ COMMITTED")
            engine = sa.create_engine(
                self._url, hide_parameters=True, poolclass=NullPool, connect_args={"timeout": self._timeout}
            )
            # Autocommit for the driver: transactions are begun by hand, with the lock from the start.
            return engine.execution_options(isolation_level="AUTOCOMMIT")
        except (ModuleNotFoundError, NoSuchModuleError):
            raise SettingsError(
                f"{self.where} needs psycopg, which is not installed: pip install 'pytest-dscore[postgres]'"
            ) from None

    def listing(self) -> Listing:
        """List the rows."""
        with self._reading() as connection:
            if connection is None or version(connection, self.where) is None:
                return Listing()
            names = connection.execute(sa.select(RECORDS.c.name)).scalars().all()
        return Listing({name: f"record {name} of {self.where}" for name in names})

    def read(self, names: Mapping[str, str]) -> Iterator[tuple[str, bytes | LedgerDamaged]]:
        """Read rows in chunks."""
        wanted = list(names)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            with self._reading() as connection:
                query = sa.select(RECORDS.c.name, RECORDS.c.line).where(RECORDS.c.name.in_(chunk))
                rows = connection.execute(query).all() if connection is not None else []
            lines: dict[str, str] = {row.name: row.line for row in rows}
            for name in chunk:
                if name in lines:
                    yield name, lines[name].encode("utf-8", "surrogatepass")
                else:
                    yield name, LedgerDamaged(f"{names[name]} was taken away while it was read: restore it", "missing")

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One transaction, in which nobody else writes."""
        with self._translated(), self._engine.connect() as connection:
            self._begin(connection)
            try:
                if not self._current and version(connection, self.where) != VERSION:
                    migrate(connection)
                self._connection = connection
                yield
                self._commit(connection)
                self._current = True
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._connection = None

    def append(self, entries: Sequence[Entry]) -> None:
        """Insert rows into the transaction."""
        if self._connection is None:
            raise LedgerError(f"{self.where} is written only inside exclusive()")
        with self._translated():
            rows = [
                {"name": e.name, "line": e.line, "kind": e.record.kind, "holdout": _holdout_of(e.record)}
                for e in entries
            ]
            self._connection.execute(sa.insert(RECORDS), rows)

    def attempts(self) -> Iterator[None]:
        """Retry what the server undid because of others, until the time is up."""
        deadline = time.monotonic() + self._timeout
        while True:
            yield
            if time.monotonic() > deadline:
                return
            time.sleep(random.uniform(0, 0.2))

    def _begin(self, connection: sa.Connection) -> None:
        if not self._postgres:
            connection.exec_driver_sql("PRAGMA synchronous = FULL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        connection.begin()
        wait = f"{max(1, round(self._timeout * 1000))}ms"
        connection.execute(sa.select(sa.func.set_config("lock_timeout", wait, True)))
        connection.execute(sa.select(sa.func.set_config("synchronous_commit", "on", True)))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.literal(_LOCK, sa.BigInteger))))

    def _commit(self, connection: sa.Connection) -> None:
        if self._postgres:
            connection.commit()
        else:
            connection.exec_driver_sql("COMMIT")

    def _roll_back(self, connection: sa.Connection) -> None:
        # What went wrong before is what the user has to hear; a connection that is gone rolls back by itself.
        try:
            if self._postgres:
                connection.rollback()
            else:
                connection.exec_driver_sql("ROLLBACK")
        except SQLAlchemyError:
            connection.invalidate()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection | None]:
        """The transaction's connection inside `exclusive`, one of its own outside; None where there is no database."""
        if self._connection is not None:
            with self._translated():
                yield self._connection
        elif not self._postgres and not Path(str(self._url.database)).exists():
            yield None  # to connect would make the file
        else:
            with self._translated(), self._engine.connect() as connection:
                yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the driver's faults into the ledger's; not chained to them, as their frames hold the password."""
        try:
            yield
        except SQLAlchemyError as error:
            fault = self._fault(error)
        else:
            return
        raise fault from None

    def _fault(self, error: SQLAlchemyError) -> Exception:
        cause: Any = error.orig if isinstance(error, DBAPIError) else error
        words = self._location.redact("; ".join(str(cause).split("\n")).strip("; "))
        state = getattr(cause, "sqlstate", None)
        if state in _SERIALIZATION:
            return LostRace(words)
        if state in _LOCK_TIMEOUT or "database is locked" in words:
            return LedgerBusy(
                f"{self.where} was locked by others for {self._timeout:g} s, so nothing was recorded: try again "
                f"({words})"
            )
        if "malformed" in words or "not a database" in words:
            return LedgerDamaged(f"{self.where} is damaged ({words}): restore it from a backup")
        if self._postgres and (state is None or state[:2] in ("08", "57", "28", "3D")):
            return LedgerUnreachable(f"{self.where} cannot be reached, so nothing was admitted: {words}")
        return LedgerError(f"{self.where} cannot be used, so nothing was admitted: {words}")


def _holdout_of(record: Record) -> str | None:
    if isinstance(record, Import):
        return None
    return record.identity.digest if isinstance(record, Declaration) else record.holdout
