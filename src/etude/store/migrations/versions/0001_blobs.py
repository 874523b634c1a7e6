"""Which bytes are stored, and who refers to them."""

import sqlalchemy as sa
from alembic import op

revision = "0001_blobs"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("length(sha256) = 64", name="ck_blob_sha256"),
        sa.PrimaryKeyConstraint("sha256", name="pk_blob"),
    )
    op.create_table(
        "blob_reference",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.ForeignKeyConstraint(["sha256"], ["blob.sha256"], name="fk_blob_reference_sha256_blob"),
        sa.PrimaryKeyConstraint("sha256", "owner", name="pk_blob_reference"),
    )
    op.create_index("ix_blob_reference_owner", "blob_reference", ["owner"])
