"""Durable jobs: what is to be done, by whom it is being done, and how often it was tried."""

import sqlalchemy as sa
from alembic import op

revision = "0002_jobs"
down_revision = "0001_blobs"


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("job_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(100), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("args", sa.Text(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("run_after_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=True),
        sa.Column("executor", sa.String(64), nullable=True),
        sa.Column("error_code", sa.String(100), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'dead', 'cancelled')", name="ck_job_state"
        ),
        sa.PrimaryKeyConstraint("job_key", name="pk_job"),
        sa.UniqueConstraint("kind", "key", name="uq_job_kind_key"),
        sqlite_autoincrement=True,  # a key is never given twice, even after clean-up
    )
    op.create_index("ix_job_state_run_after_us", "job", ["state", "run_after_us"])
