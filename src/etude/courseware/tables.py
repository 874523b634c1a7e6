"""Tables of the registry: versions of courseware, manifests of courses, what they pin.

Rows are added and never changed. A version can be seen by the public once a manifest pins it.
Times are microseconds since 1970 in UTC.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from etude.store.schema import metadata

_Id = String(64).with_variant(String(64, collation="C"), "postgresql")
_Key = BigInteger().with_variant(Integer(), "sqlite")

# `content_hash_version` 1: of an older system, the hash of the raw bytes.
courseware_version = Table(
    "courseware_version",
    metadata,
    Column("courseware_id", _Id, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content_hash", String(71), nullable=False),
    Column("content_hash_version", Integer, nullable=False),
    Column("bundle_sha256", String(64), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("title", Text, nullable=False),
    Column("course_id", _Id, nullable=False),
    Column("module_index", Integer, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("courseware_id", "content_hash", name="uq_courseware_version_content_hash"),
)

# `schema_version` 1: of an older system, without pins; `body` is then the old record verbatim.
course_manifest = Table(
    "course_manifest",
    metadata,
    Column("course_id", _Id, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("schema_version", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("manifest_hash", String(71), nullable=False),
    Column("published_us", BigInteger, nullable=False),
)

# What a manifest pins.
course_manifest_pin = Table(
    "course_manifest_pin",
    metadata,
    Column("course_id", _Id, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("module_index", Integer, primary_key=True, autoincrement=False),
    Column("courseware_id", _Id, nullable=False),
    Column("courseware_version", Integer, nullable=False),
    Index("ix_course_manifest_pin_courseware_id", "courseware_id", "courseware_version"),
)

# Tombstones: a row takes a manifest away from everybody, and nothing is rewritten.
course_manifest_withdrawal = Table(
    "course_manifest_withdrawal",
    metadata,
    Column("course_id", _Id, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("withdrawn_us", BigInteger, nullable=False),
)

# What a publication was answered with, of this installation (`target` '') or of the server at
# `target`; `modules` is JSON as `etude.courseware.receipts` reads it. The newest one counts.
course_receipt: Final = Table(
    "course_receipt",
    metadata,
    Column("receipt_key", _Key, primary_key=True),
    Column("course_id", _Id, nullable=False),
    Column("target", String(512), nullable=False),
    Column("version", Integer, nullable=False),
    Column("manifest_hash", String(71), nullable=False),
    Column("modules", LargeBinary, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    Column("withdrawn_us", BigInteger),
    Index("ix_course_receipt_course_id", "course_id", "target"),
    sqlite_autoincrement=True,
)
