"""Tables of single classrooms: whose each one is, and the job that makes it.

A classroom is there when its document is (`etude.classroom.library`); its row says whose it is and
that somebody wants it. The row comes before the document and goes after it. A job that works takes
one of its owner's slots (`slot_of`, `slot`, unique): so many at once, whoever asks at the same
moment. Documents (request, outline) are JSON as `etude.authoring.classrooms.records` reads it.
Times are microseconds since 1970 in UTC.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from etude.store.schema import metadata

_Key = BigInteger().with_variant(Integer(), "sqlite")

classroom_record: Final = Table(
    "classroom_record",
    metadata,
    Column("classroom_key", _Key, primary_key=True),
    Column("classroom_id", String(64), nullable=False),
    Column("owner_kind", String(16), nullable=False),
    Column("owner_key", BigInteger, nullable=False),
    # The owner once more, if it is a learner: what is theirs is erased with them.
    Column("learner_key", ForeignKey("learner.learner_key"), index=True),
    Column("origin", String(16), nullable=False),
    Column("title", String(300), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    # When its document was there; of an import that was killed, never.
    Column("placed_us", BigInteger),
    # Nobody wants it any more; the row stays until its files are gone for certain.
    Column("removed_us", BigInteger),
    UniqueConstraint("classroom_id", name="uq_classroom_record_classroom_id"),
    Index("ix_classroom_record_owner", "owner_kind", "owner_key", "created_us"),
    sqlite_autoincrement=True,
)

classroom_job: Final = Table(
    "classroom_job",
    metadata,
    Column("classroom_job_key", _Key, primary_key=True),
    Column("job_id", String(36), nullable=False),
    Column("classroom_key", ForeignKey("classroom_record.classroom_key"), nullable=False),
    Column("author", String(20), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("preview", Boolean, nullable=False),
    Column("status", String(16), nullable=False),
    Column("step", String(40), nullable=False),
    Column("progress", Integer, nullable=False),
    # How often the worker was asked: once for the outline, once more when it is confirmed.
    Column("run", Integer, nullable=False),
    Column("slot_of", String(40)),
    Column("slot", Integer),
    Column("outline", LargeBinary),
    Column("outline_revision", Integer, nullable=False),
    Column("scenes_made", Integer, nullable=False),
    Column("error_code", String(100)),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("started_us", BigInteger),
    Column("ended_us", BigInteger),
    UniqueConstraint("job_id", name="uq_classroom_job_job_id"),
    UniqueConstraint("classroom_key", name="uq_classroom_job_classroom_key"),
    UniqueConstraint("slot_of", "slot", name="uq_classroom_job_slot"),
    sqlite_autoincrement=True,
)
