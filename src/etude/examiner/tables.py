"""Tables of reports and cards.

A report's bytes are never changed: another state of the events is another revision. A rubric is
kept once by its digest, so that old reports verify after its file has changed. Times are
microseconds since 1970 in UTC.
"""

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

_Key = BigInteger().with_variant(Integer, "sqlite")
_Id = String(128).with_variant(String(128, collation="C"), "postgresql")

# One row a session that was ever to be examined: where it stands, and what its latest revision
# tells the later sessions of the journey.
report = Table(
    "report",
    metadata,
    Column("session_key", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, nullable=False),  # the latest; 0 = none yet
    Column("assigned_rubric", String(100)),  # `id@version`, by a person (`docs/rules.md 3`)
    Column("refused", String(64)),  # why there can be no report: an error's code
    # Why no model reworded the latest revision, where it was not asked: an error's code.
    Column("not_reworded", String(64)),
    Column("asked_us", BigInteger),  # since when a revision is wanted
    Column("journey_id", _Id),
    Column("started_us", BigInteger),
    Column("earlier", LargeBinary),
    Index("ix_report_journey_id", "journey_id", "started_us"),
)

report_revision = Table(
    "report_revision",
    metadata,
    Column("session_key", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("report_id", String(36), nullable=False),
    Column("digest", String(64), nullable=False),  # of what is reproducible
    Column("events_digest", String(64), nullable=False),
    Column("rubric_digest", String(64), nullable=False),
    Column("overall_score", Integer),
    Column("body", LargeBinary, nullable=False),
    Column("made_us", BigInteger, nullable=False),
    UniqueConstraint("report_id", name="uq_report_revision_report_id"),
)

report_rubric = Table(
    "report_rubric",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("added_us", BigInteger, nullable=False),
)

# What a model answered when it was asked to reword a report, by the digest of the question.
report_wording = Table(
    "report_wording",
    metadata,
    Column("session_key", BigInteger, primary_key=True, autoincrement=False),
    Column("asked_sha256", String(64), primary_key=True),
    Column("answer", Text, nullable=False),
    Column("answered_us", BigInteger, nullable=False),
)

# The address of a card is a secret: only its hash is here.
summary_card = Table(
    "summary_card",
    metadata,
    Column("card_key", _Key, primary_key=True),
    Column("card_id", String(36), nullable=False),
    Column("session_key", BigInteger, nullable=False),
    Column("token_sha256", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("revoked_us", BigInteger),
    UniqueConstraint("card_id", name="uq_summary_card_card_id"),
    UniqueConstraint("token_sha256", name="uq_summary_card_token_sha256"),
    Index("ix_summary_card_session_key", "session_key", "card_key"),
    sqlite_autoincrement=True,
)
