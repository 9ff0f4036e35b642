"""Alembic runs this on the connection that the ledger already holds its lock on."""

from __future__ import annotations

from alembic import context

from pytest_dscore.holdout.ledger.sql_schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
