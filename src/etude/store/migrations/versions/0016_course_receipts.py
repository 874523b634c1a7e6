"""What a publication was answered with, here or by another server, and from what it was frozen."""

import sqlalchemy as sa
from alembic import op

revision = "0016_course_receipts"
down_revision = "0015_classroom_jobs"

_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "course_receipt",
        sa.Column("receipt_key", _KEY, nullable=False),
        sa.Column("course_id", _ID, nullable=False),
        sa.Column("target", sa.String(512), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("manifest_hash", sa.String(71), nullable=False),
        sa.Column("modules", sa.LargeBinary(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("receipt_key", name="pk_course_receipt"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_course_receipt_course_id", "course_receipt", ["course_id", "target"])
    op.drop_column("course_manifest_pin", "source_revision_hash")
