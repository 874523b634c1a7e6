"""Tables of courses: the record, its modules, and what is being done to it.

A course is worked on by at most one run: `active_course` is unique, and null once a run is over.
Documents (request, framework, digests, refs) are JSON as `etude.authoring.records` reads it. Times
are microseconds since 1970 in UTC.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from etude.store.schema import metadata

_Key = BigInteger().with_variant(Integer(), "sqlite")

course: Final = Table(
    "course",
    metadata,
    Column("course_key", _Key, primary_key=True),
    Column("course_id", String(64), nullable=False),
    Column("owner", String(128), nullable=False),
    Column("author", String(20), nullable=False),
    Column("status", String(24), nullable=False),
    Column("title", String(200), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("framework", LargeBinary),
    Column("framework_revision", Integer, nullable=False),
    Column("confirmed_us", BigInteger),
    # Whether sentences without any sound may be left out of practice: said when it was confirmed.
    Column("without_audio", Boolean, nullable=False),
    Column("error_code", String(100)),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    UniqueConstraint("course_id", name="uq_course_course_id"),
    sqlite_autoincrement=True,
)

course_module: Final = Table(
    "course_module",
    metadata,
    Column("course_key", BigInteger, primary_key=True, autoincrement=False),
    Column("module_index", Integer, primary_key=True, autoincrement=False),
    Column("module_id", String(64), nullable=False),
    Column("status", String(24), nullable=False),
    # Given before the classroom is made: after a kill it says which one was meant.
    Column("classroom_id", String(64)),
    Column("prompt", LargeBinary),
    Column("requirement_sha256", String(64)),
    Column("digest", LargeBinary),
    Column("refs", LargeBinary),
    Column("error_code", String(100)),
    Column("started_us", BigInteger),
    Column("ended_us", BigInteger),
)

course_run: Final = Table(
    "course_run",
    metadata,
    Column("run_key", _Key, primary_key=True),
    Column("run_id", String(36), nullable=False),
    Column("course_key", BigInteger, nullable=False),
    Column("active_course", BigInteger),
    Column("kind", String(24), nullable=False),
    Column("state", String(24), nullable=False),
    Column("error_code", String(100)),
    Column("started_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger),
    # Why it ended, mistake by mistake, where one code does not say it.
    Column("problems", LargeBinary),
    # Who began it; of publications, whose audit entry a worker may have to make.
    Column("actor_kind", String(16)),
    Column("actor_key", BigInteger),
    Column("actor_token_key", BigInteger),
    UniqueConstraint("run_id", name="uq_course_run_run_id"),
    UniqueConstraint("active_course", name="uq_course_run_active_course"),
    Index("ix_course_run_course_key", "course_key", "run_key"),
    sqlite_autoincrement=True,
)
