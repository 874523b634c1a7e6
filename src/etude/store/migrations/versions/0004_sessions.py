"""The event store: sessions, their events, quarantine, media and tombstones."""

import sqlalchemy as sa
from alembic import op

revision = "0004_sessions"
down_revision = "0003_people"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ID = sa.String(128).with_variant(sa.String(128, collation="C"), "postgresql")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(sa.schema.CreateSequence(sa.Sequence("session_event_receipt_seq")))
    op.create_table(
        "session",
        sa.Column("session_key", _KEY, nullable=False),
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("principal_kind", sa.String(16), nullable=False),
        sa.Column("principal_key", sa.BigInteger(), nullable=False),
        sa.Column("device_key", sa.BigInteger()),
        sa.Column("learner_key", sa.BigInteger()),
        sa.Column("owner_basis", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("max_seq", sa.BigInteger()),
        sa.Column("watermark", sa.BigInteger()),
        sa.Column("last_ts_s", sa.Double(), nullable=False),
        sa.Column("first_received_us", sa.BigInteger(), nullable=False),
        sa.Column("last_received_us", sa.BigInteger(), nullable=False),
        sa.Column("device_started_us", sa.BigInteger()),
        sa.Column("utc_offset_min", sa.Integer()),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("started_estimated", sa.Boolean(), nullable=False),
        sa.Column("clock_flag", sa.String(16)),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("session_key", name="pk_session"),
        sa.UniqueConstraint("session_id", name="uq_session_session_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_session_learner_key", "session", ["learner_key", "session_key"])
    op.create_index("ix_session_device_key", "session", ["device_key", "session_key"])
    op.create_index("ix_session_status", "session", ["status", "last_received_us"])
    op.create_table(
        "session_event",
        sa.Column("receipt", _KEY, nullable=False, autoincrement=False),
        sa.Column("session_key", sa.BigInteger(), nullable=False),
        sa.Column("event_id", _ID, nullable=False),
        sa.Column("line", sa.LargeBinary(), nullable=False),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("ts_s", sa.Double(), nullable=False),
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("signal", sa.String(), nullable=False),
        sa.Column("phase", sa.String()),
        sa.Column("confidence", sa.Double()),
        sa.Column("alert_tier", sa.String()),
        sa.Column("review_offered", sa.Boolean(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("receipt", name="pk_session_event"),
        sa.UniqueConstraint("session_key", "event_id", name="uq_session_event_session_key"),
    )
    op.create_table(
        "session_quarantine",
        sa.Column("quarantine_key", _KEY, nullable=False),
        sa.Column("session_key", sa.BigInteger(), nullable=False),
        sa.Column("event_id", _ID, nullable=False),
        sa.Column("line_sha256", sa.String(64), nullable=False),
        sa.Column("line", sa.LargeBinary(), nullable=False),
        sa.Column("principal_kind", sa.String(16), nullable=False),
        sa.Column("principal_key", sa.BigInteger(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("quarantine_key", name="pk_session_quarantine"),
        sa.UniqueConstraint(
            "session_key", "event_id", "line_sha256", name="uq_session_quarantine_line"
        ),
    )
    op.create_table(
        "session_media",
        sa.Column("session_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.String(255), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_key", "sha256", name="pk_session_media"),
    )
    op.create_table(
        "session_tombstone",
        sa.Column("session_id_sha256", sa.String(64), nullable=False),
        sa.Column("events_digest", sa.String(64), nullable=False),
        sa.Column("erased_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id_sha256", name="pk_session_tombstone"),
    )
