"""Each record's kind and hold-out in columns, so that a team can ask with plain SQL how much is used."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_RECORDS = sa.table(
    "dscore_ledger_records", sa.column("name"), sa.column("line"), sa.column("kind"), sa.column("holdout")
)


def upgrade() -> None:
    """Add the columns and fill them in from the lines."""
    op.add_column("dscore_ledger_records", sa.Column("kind", sa.String(16), nullable=False, server_default=""))
    op.add_column("dscore_ledger_records", sa.Column("holdout", sa.String(64), nullable=True))
    connection = op.get_bind()
    for name in connection.execute(sa.select(_RECORDS.c.name)).scalars().all():
        line = connection.execute(sa.select(_RECORDS.c.line).where(_RECORDS.c.name == name)).scalar_one()
        try:
            body = json.loads(line)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            continue  # damaged: `verify` names it, and the line stays as it is
        columns = {"kind": str(body.get("kind", ""))[:16], "holdout": body.get("holdout", body.get("digest"))}
        connection.execute(sa.update(_RECORDS).where(_RECORDS.c.name == name).values(**columns))
    op.create_index("dscore_ledger_records_holdout", "dscore_ledger_records", ["holdout", "kind"])
