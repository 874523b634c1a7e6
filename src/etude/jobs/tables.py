"""What is to be done, by whom it is being done, and how often it was tried."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from etude.store.schema import metadata

job: Final = Table(
    "job",
    metadata,
    Column("job_key", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True),
    Column("kind", String(100), nullable=False),
    Column("key", String(200), nullable=False),
    Column("args", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    # Counts the runs: every claim, release and cancellation adds one, and a run may write only
    # while its own number stands here.
    Column("fence", BigInteger, nullable=False),
    Column("run_after_us", BigInteger, nullable=False),
    Column("lease_until_us", BigInteger),
    Column("executor", String(64)),
    Column("error_code", String(100)),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    UniqueConstraint("kind", "key"),
    CheckConstraint("state IN ('queued', 'running', 'done', 'dead', 'cancelled')", name="state"),
    Index(None, "state", "run_after_us"),
    sqlite_autoincrement=True,  # a key is never given twice, even after clean-up
)
