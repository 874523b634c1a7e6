"""Courseware: versions of modules, manifests of courses, what they pin, what was withdrawn."""

import sqlalchemy as sa
from alembic import op

revision = "0010_courseware"
down_revision = "0009_report_wordings"

_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    _versions()
    _manifests()


def _versions() -> None:
    op.create_table(
        "courseware_version",
        sa.Column("courseware_id", _ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("content_hash", sa.String(71), nullable=False),
        sa.Column("content_hash_version", sa.Integer(), nullable=False),
        sa.Column("bundle_sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("course_id", _ID, nullable=False),
        sa.Column("module_index", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("courseware_id", "version", name="pk_courseware_version"),
        sa.UniqueConstraint(
            "courseware_id", "content_hash", name="uq_courseware_version_content_hash"
        ),
    )


def _manifests() -> None:
    op.create_table(
        "course_manifest",
        sa.Column("course_id", _ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("manifest_hash", sa.String(71), nullable=False),
        sa.Column("published_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("course_id", "version", name="pk_course_manifest"),
    )
    op.create_table(
        "course_manifest_pin",
        sa.Column("course_id", _ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("module_index", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("courseware_id", _ID, nullable=False),
        sa.Column("courseware_version", sa.Integer(), nullable=False),
        sa.Column("source_revision_hash", sa.String(71), nullable=False),
        sa.PrimaryKeyConstraint(
            "course_id", "version", "module_index", name="pk_course_manifest_pin"
        ),
    )
    op.create_index(
        "ix_course_manifest_pin_courseware_id",
        "course_manifest_pin",
        ["courseware_id", "courseware_version"],
    )
    op.create_table(
        "course_manifest_withdrawal",
        sa.Column("course_id", _ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("withdrawn_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("course_id", "version", name="pk_course_manifest_withdrawal"),
    )
