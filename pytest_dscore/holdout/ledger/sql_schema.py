"""The tables of a ledger in SQL and how they come to their present version."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from pytest_dscore.holdout.ledger.faults import LedgerError

VERSION_TABLE = "dscore_ledger_version"
#: The newest module of migrations/versions, and those that can be read as they are.
VERSION = "0002"
READABLE = ("0001", "0002")

RECORDS = sa.Table(
    "dscore_ledger_records",
    sa.MetaData(),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("line", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False, server_default=""),
    sa.Column("holdout", sa.String(64)),
    sa.Index("dscore_ledger_records_holdout", "holdout", "kind"),
)


def version(connection: sa.Connection, where: str) -> str | None:
    """Return the version of the tables; None where there are none.

    Raises
    ------
    LedgerError
        A newer pytest-dscore has been here, or the version is gone while the records are there.
    """
    there = sa.inspect(connection)
    if not there.has_table(VERSION_TABLE):
        if there.has_table(RECORDS.name):
            raise LedgerError(
                f"{where} has the table {RECORDS.name} and not {VERSION_TABLE}, so the version of the ledger is "
                "unknown: restore both from a backup"
            )
        return None
    found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if found is not None and found not in READABLE:
        raise LedgerError(
            f"{where} has tables of version {found}, of a newer pytest-dscore (this one knows {VERSION}): "
            "upgrade it here"
        )
    return str(found) if found else None


def migrate(connection: sa.Connection, revision: str = "head") -> None:
    """Bring the tables to a version, within the transaction of `connection`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    # The option is a template, in which a % of the path would begin a name.
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
