"""Tables of the event store.

An event row keeps the line exactly as it was sent; the other columns are derived from it and can be
rebuilt (`docs/rules.md 45`). Times are microseconds since 1970 in UTC.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    String,
    Table,
    UniqueConstraint,
)

from etude.store.schema import metadata

# SQLite gives only an INTEGER PRIMARY KEY its fast row id; ids compare by code point everywhere.
_Key = BigInteger().with_variant(Integer, "sqlite")
_Id = String(128).with_variant(String(128, collation="C"), "postgresql")

receipt_sequence = Sequence("session_event_receipt_seq", metadata=metadata)

session = Table(
    "session",
    metadata,
    Column("session_key", _Key, primary_key=True),
    Column("session_id", _Id, nullable=False, unique=True),
    # Who may write: a device or a learner, never a token (`docs/rules.md 4`).
    Column("principal_kind", String(16), nullable=False),
    Column("principal_key", BigInteger, nullable=False),
    Column("device_key", BigInteger),
    # Whose practice it is, and what says so: token, session_time, receipt_time or staff.
    Column("learner_key", BigInteger),
    Column("owner_basis", String(16), nullable=False),
    Column("status", String(16), nullable=False),  # open, ended, abandoned
    Column("event_count", BigInteger, nullable=False),
    Column("max_seq", BigInteger),
    Column("watermark", BigInteger),
    Column("last_ts_s", Double, nullable=False),
    Column("first_received_us", BigInteger, nullable=False),
    Column("last_received_us", BigInteger, nullable=False),
    # Three clocks (`docs/sessions.md §When it was`): what the device said, and the corrected start.
    Column("device_started_us", BigInteger),
    Column("utc_offset_min", Integer),
    Column("started_us", BigInteger, nullable=False),
    Column("started_estimated", Boolean, nullable=False),
    Column("clock_flag", String(16)),
    Column("ended", Boolean, nullable=False),
    Index("ix_session_learner_key", "learner_key", "session_key"),
    Index("ix_session_device_key", "device_key", "session_key"),
    Index("ix_session_status", "status", "last_received_us"),
    sqlite_autoincrement=True,  # the audit log names keys: none is used twice
)

session_event = Table(
    "session_event",
    metadata,
    Column("receipt", _Key, primary_key=True, autoincrement=False),
    Column("session_key", BigInteger, nullable=False),
    Column("event_id", _Id, nullable=False),
    Column("line", LargeBinary, nullable=False),
    Column("seq", BigInteger),
    Column("ts_s", Double, nullable=False),
    Column("event_type", String, nullable=False),
    Column("signal", String, nullable=False),
    Column("phase", String),
    Column("confidence", Double),
    Column("alert_tier", String),
    Column("review_offered", Boolean, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    UniqueConstraint("session_key", "event_id", name="uq_session_event_session_key"),
)

session_quarantine = Table(
    "session_quarantine",
    metadata,
    Column("quarantine_key", _Key, primary_key=True),
    Column("session_key", BigInteger, nullable=False),
    Column("event_id", _Id, nullable=False),
    Column("line_sha256", String(64), nullable=False),
    Column("line", LargeBinary, nullable=False),
    Column("principal_kind", String(16), nullable=False),
    Column("principal_key", BigInteger, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    UniqueConstraint("session_key", "event_id", "line_sha256", name="uq_session_quarantine_line"),
)

session_media = Table(
    "session_media",
    metadata,
    Column("session_key", BigInteger, primary_key=True, autoincrement=False),
    Column("sha256", String(64), primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    Column("content_type", String(255), nullable=False),
    Column("received_us", BigInteger, nullable=False),
)

# Which sessions are tasks that were done: what they were, their events say (`docs/rules.md 22`).
task_instance = Table(
    "task_instance",
    metadata,
    Column("session_key", BigInteger, primary_key=True, autoincrement=False),
)

# What is left of an erased session (`docs/rules.md 13`): enough to refuse it again, no content.
session_tombstone = Table(
    "session_tombstone",
    metadata,
    Column("session_id_sha256", String(64), primary_key=True),
    Column("events_digest", String(64), nullable=False),
    Column("erased_us", BigInteger, nullable=False),
)
