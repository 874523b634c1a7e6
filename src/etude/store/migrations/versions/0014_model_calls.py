"""The ledger of what models were asked for courses, and why a run ended."""

import sqlalchemy as sa
from alembic import op

revision = "0014_model_calls"
down_revision = "0013_classes"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("course_run", sa.Column("problems", sa.LargeBinary()))
    op.create_table(
        "authoring_call",
        sa.Column("call_key", _KEY, nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("stage", sa.String(40), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("asked_sha256", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("answer", sa.LargeBinary()),
        sa.Column("error_code", sa.String(100)),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.Column("cost_micro", sa.BigInteger()),
        sa.Column("asked_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("call_key", name="pk_authoring_call"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_authoring_call_subject", "authoring_call", ["subject", "part", "stage", "asked_sha256"]
    )
    op.create_index("ix_authoring_call_owner", "authoring_call", ["owner", "asked_us"])
