"""The first version: each record's name and line."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "dscore_ledger_records",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("line", sa.Text, nullable=False),
    )
