"""Assignments: a lesson for a learner or a device, for a time."""

import sqlalchemy as sa
from alembic import op

revision = "0011_assignments"
down_revision = "0010_courseware"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WHOLE_PIN = (
    "(courseware_id IS NULL AND courseware_version IS NULL AND content_hash IS NULL"
    " AND scene_id IS NULL) OR (courseware_id IS NOT NULL AND courseware_version IS NOT NULL"
    " AND content_hash IS NOT NULL AND scene_id IS NOT NULL)"
)


def upgrade() -> None:
    op.create_table(
        "assignment",
        sa.Column("assignment_key", _KEY, nullable=False),
        sa.Column("assignment_id", sa.String(64), nullable=False),
        sa.Column("learner_key", _KEY),
        sa.Column("device_key", _KEY),
        sa.Column("app_id", sa.String(32), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=False),
        sa.Column("lesson_id", sa.String(64), nullable=False),
        sa.Column("listen_ratio", sa.Float(53)),
        sa.Column("courseware_id", sa.String(64)),
        sa.Column("courseware_version", sa.Integer()),
        sa.Column("content_hash", sa.String(71)),
        sa.Column("scene_id", sa.String(128)),
        sa.Column("starts_us", sa.BigInteger(), nullable=False),
        sa.Column("ends_us", sa.BigInteger()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("assignment_key", name="pk_assignment"),
        sa.UniqueConstraint("assignment_id", name="uq_assignment_assignment_id"),
        sa.ForeignKeyConstraint(
            ["learner_key"], ["learner.learner_key"], name="fk_assignment_learner_key_learner"
        ),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_assignment_device_key_device"
        ),
        sa.CheckConstraint(
            "(learner_key IS NULL) <> (device_key IS NULL)", name="ck_assignment_one_holder"
        ),
        sa.CheckConstraint("ends_us IS NULL OR ends_us > starts_us", name="ck_assignment_interval"),
        sa.CheckConstraint(
            _WHOLE_PIN,
            name="ck_assignment_whole_pin",
        ),
        sqlite_autoincrement=True,
    )
    for column in ("learner_key", "device_key"):
        op.create_index(f"ix_assignment_{column}", "assignment", [column])
