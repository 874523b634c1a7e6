"""The ledger of calls for everybody who asks a model; who began a publication; unworded reports."""

import sqlalchemy as sa
from alembic import op

revision = "0017_spending"
down_revision = "0016_course_receipts"


def upgrade() -> None:
    op.add_column("course_run", sa.Column("actor_kind", sa.String(16)))
    op.add_column("course_run", sa.Column("actor_key", sa.BigInteger()))
    op.add_column("course_run", sa.Column("actor_token_key", sa.BigInteger()))
    op.add_column("report", sa.Column("not_reworded", sa.String(64)))
    _calls()


def _calls() -> None:
    """Give the ledger its wider name, and what the sums of a run and of a month are read from."""
    op.drop_index("ix_authoring_call_subject", "authoring_call")
    op.drop_index("ix_authoring_call_owner", "authoring_call")
    op.rename_table("authoring_call", "model_call")
    if op.get_bind().dialect.name == "postgresql":  # SQLite knows no name of a primary key
        op.execute("ALTER TABLE model_call RENAME CONSTRAINT pk_authoring_call TO pk_model_call")
    op.create_index(
        "ix_model_call_subject", "model_call", ["subject", "part", "stage", "asked_sha256"]
    )
    op.create_index("ix_model_call_owner", "model_call", ["owner", "asked_us"])
    op.create_index("ix_model_call_run_id", "model_call", ["run_id"])
    op.create_index(
        "ix_model_call_asked_us",
        "model_call",
        ["asked_us", "prompt_tokens", "completion_tokens", "cost_micro"],
    )
