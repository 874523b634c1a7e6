"""Reports: where each session stands, revisions, the rubrics they were made by, summary cards."""

import sqlalchemy as sa
from alembic import op

revision = "0008_reports"
down_revision = "0007_gateway_commands"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ID = sa.String(128).with_variant(sa.String(128, collation="C"), "postgresql")


# Sessions that ended before there were reports get theirs too.
_ASK = """
INSERT INTO job
    (kind, key, args, state, attempts, fence, run_after_us, created_us, updated_us)
SELECT 'examiner.examine', CAST(session_key AS VARCHAR(20)),
    '{"session_key":' || CAST(session_key AS VARCHAR(20)) || '}', 'queued', 0, 0,
    last_received_us, last_received_us, last_received_us
FROM session WHERE status <> 'open'
"""


def upgrade() -> None:
    _reports()
    _cards()
    op.execute(sa.text(_ASK))


def _reports() -> None:
    op.create_table(
        "report",
        sa.Column("session_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("assigned_rubric", sa.String(100)),
        sa.Column("refused", sa.String(64)),
        sa.Column("asked_us", sa.BigInteger()),
        sa.Column("journey_id", _ID),
        sa.Column("started_us", sa.BigInteger()),
        sa.Column("earlier", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("session_key", name="pk_report"),
    )
    op.create_index("ix_report_journey_id", "report", ["journey_id", "started_us"])
    op.create_table(
        "report_revision",
        sa.Column("session_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("revision", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("report_id", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("events_digest", sa.String(64), nullable=False),
        sa.Column("rubric_digest", sa.String(64), nullable=False),
        sa.Column("overall_score", sa.Integer()),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("made_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_key", "revision", name="pk_report_revision"),
        sa.UniqueConstraint("report_id", name="uq_report_revision_report_id"),
    )
    op.create_table(
        "report_rubric",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_report_rubric"),
    )


def _cards() -> None:
    op.create_table(
        "summary_card",
        sa.Column("card_key", _KEY, nullable=False),
        sa.Column("card_id", sa.String(36), nullable=False),
        sa.Column("session_key", sa.BigInteger(), nullable=False),
        sa.Column("token_sha256", sa.String(64), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("revoked_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("card_key", name="pk_summary_card"),
        sa.UniqueConstraint("card_id", name="uq_summary_card_card_id"),
        sa.UniqueConstraint("token_sha256", name="uq_summary_card_token_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_summary_card_session_key", "summary_card", ["session_key", "card_key"])
