"""What a model answered when it was asked to reword a report."""

import sqlalchemy as sa
from alembic import op

revision = "0009_report_wordings"
down_revision = "0008_reports"


def upgrade() -> None:
    op.create_table(
        "report_wording",
        sa.Column("session_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("asked_sha256", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("answered_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_key", "asked_sha256", name="pk_report_wording"),
    )
