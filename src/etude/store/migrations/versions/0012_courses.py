"""Courses: the record, its modules, the runs that work on it."""

import sqlalchemy as sa
from alembic import op

revision = "0012_courses"
down_revision = "0011_assignments"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _courses()
    _modules()
    _runs()


def _courses() -> None:
    op.create_table(
        "course",
        sa.Column("course_key", _KEY, nullable=False),
        sa.Column("course_id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("author", sa.String(20), nullable=False),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("framework", sa.LargeBinary()),
        sa.Column("framework_revision", sa.Integer(), nullable=False),
        sa.Column("confirmed_us", sa.BigInteger()),
        sa.Column("without_audio", sa.Boolean(), nullable=False),
        sa.Column("error_code", sa.String(100)),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("course_key", name="pk_course"),
        sa.UniqueConstraint("course_id", name="uq_course_course_id"),
        sqlite_autoincrement=True,
    )


def _modules() -> None:
    op.create_table(
        "course_module",
        sa.Column("course_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("module_index", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("module_id", sa.String(64), nullable=False),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("classroom_id", sa.String(64)),
        sa.Column("prompt", sa.LargeBinary()),
        sa.Column("requirement_sha256", sa.String(64)),
        sa.Column("digest", sa.LargeBinary()),
        sa.Column("refs", sa.LargeBinary()),
        sa.Column("error_code", sa.String(100)),
        sa.Column("started_us", sa.BigInteger()),
        sa.Column("ended_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("course_key", "module_index", name="pk_course_module"),
    )


def _runs() -> None:
    op.create_table(
        "course_run",
        sa.Column("run_key", _KEY, nullable=False),
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("course_key", sa.BigInteger(), nullable=False),
        sa.Column("active_course", sa.BigInteger()),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("state", sa.String(24), nullable=False),
        sa.Column("error_code", sa.String(100)),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("run_key", name="pk_course_run"),
        sa.UniqueConstraint("run_id", name="uq_course_run_run_id"),
        sa.UniqueConstraint("active_course", name="uq_course_run_active_course"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_course_run_course_key", "course_run", ["course_key", "run_key"])
