"""The table of assignments. Times are microseconds since 1970 in UTC.

Of a learner, a class or a device, from `starts_us` until just before `ends_us` (null: until further
notice). The lesson is named by its place; the pin says which courseware it was taken from, if any.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Integer,
    String,
    Table,
)

from etude.store.schema import metadata

# SQLite gives only an INTEGER PRIMARY KEY its row id; AUTOINCREMENT keeps it from reusing one.
_Key = BigInteger().with_variant(Integer, "sqlite")

assignment = Table(
    "assignment",
    metadata,
    Column("assignment_key", _Key, primary_key=True),
    Column("assignment_id", String(64), nullable=False, unique=True),
    Column("learner_key", ForeignKey("learner.learner_key"), index=True),
    Column("device_key", ForeignKey("device.device_key"), index=True),
    Column("class_key", ForeignKey("school_class.class_key"), index=True),
    Column("app_id", String(32), nullable=False),
    Column("task_id", String(32), nullable=False),
    Column("lesson_id", String(64), nullable=False),
    Column("listen_ratio", Float(53)),
    Column("courseware_id", String(64)),
    Column("courseware_version", Integer),
    Column("content_hash", String(71)),
    Column("scene_id", String(128)),
    Column("starts_us", BigInteger, nullable=False),
    Column("ends_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Column("withdrawn_us", BigInteger),
    CheckConstraint(
        "(learner_key IS NOT NULL AND device_key IS NULL AND class_key IS NULL)"
        " OR (learner_key IS NULL AND device_key IS NOT NULL AND class_key IS NULL)"
        " OR (learner_key IS NULL AND device_key IS NULL AND class_key IS NOT NULL)",
        name="one_holder",
    ),
    CheckConstraint("ends_us IS NULL OR ends_us > starts_us", name="interval"),
    CheckConstraint(
        "(courseware_id IS NULL AND courseware_version IS NULL AND content_hash IS NULL"
        " AND scene_id IS NULL) OR (courseware_id IS NOT NULL AND courseware_version IS NOT NULL"
        " AND content_hash IS NOT NULL AND scene_id IS NOT NULL)",
        name="whole_pin",
    ),
    sqlite_autoincrement=True,
)
