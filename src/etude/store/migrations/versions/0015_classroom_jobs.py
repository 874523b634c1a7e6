"""Single classrooms: whose they are, and the jobs that make them."""

import sqlalchemy as sa
from alembic import op

revision = "0015_classroom_jobs"
down_revision = "0014_model_calls"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _records()
    _jobs()


def _records() -> None:
    op.create_table(
        "classroom_record",
        sa.Column("classroom_key", _KEY, nullable=False),
        sa.Column("classroom_id", sa.String(64), nullable=False),
        sa.Column("owner_kind", sa.String(16), nullable=False),
        sa.Column("owner_key", sa.BigInteger(), nullable=False),
        sa.Column("learner_key", _KEY),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("title", sa.String(300), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("placed_us", sa.BigInteger()),
        sa.Column("removed_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("classroom_key", name="pk_classroom_record"),
        sa.UniqueConstraint("classroom_id", name="uq_classroom_record_classroom_id"),
        sa.ForeignKeyConstraint(
            ["learner_key"], ["learner.learner_key"], name="fk_classroom_record_learner_key_learner"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_classroom_record_learner_key", "classroom_record", ["learner_key"])
    op.create_index(
        "ix_classroom_record_owner", "classroom_record", ["owner_kind", "owner_key", "created_us"]
    )


def _jobs() -> None:
    op.create_table(
        "classroom_job",
        sa.Column("classroom_job_key", _KEY, nullable=False),
        sa.Column("job_id", sa.String(36), nullable=False),
        sa.Column("classroom_key", _KEY, nullable=False),
        sa.Column("author", sa.String(20), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("preview", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("step", sa.String(40), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("slot_of", sa.String(40)),
        sa.Column("slot", sa.Integer()),
        sa.Column("outline", sa.LargeBinary()),
        sa.Column("outline_revision", sa.Integer(), nullable=False),
        sa.Column("scenes_made", sa.Integer(), nullable=False),
        sa.Column("error_code", sa.String(100)),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger()),
        sa.Column("ended_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("classroom_job_key", name="pk_classroom_job"),
        sa.UniqueConstraint("job_id", name="uq_classroom_job_job_id"),
        sa.UniqueConstraint("classroom_key", name="uq_classroom_job_classroom_key"),
        sa.UniqueConstraint("slot_of", "slot", name="uq_classroom_job_slot"),
        sa.ForeignKeyConstraint(
            ["classroom_key"],
            ["classroom_record.classroom_key"],
            name="fk_classroom_job_classroom_key_classroom_record",
        ),
        sqlite_autoincrement=True,
    )
