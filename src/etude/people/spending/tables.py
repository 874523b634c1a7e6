"""The table of calls to models. Times are microseconds since 1970 in UTC."""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, String, Table

from etude.store.schema import metadata

_Key = BigInteger().with_variant(Integer(), "sqlite")

# What a model (or a search) was asked, and what it answered. `subject` is whose work it is
# (`course:<key>`, `session:<key>`); `part` the index of a module, -1 what has none. Only courses'
# answers are here, because they serve again.
model_call: Final = Table(
    "model_call",
    metadata,
    Column("call_key", _Key, primary_key=True),
    Column("subject", String(64), nullable=False),
    Column("run_id", String(36), nullable=False),
    Column("part", Integer, nullable=False),
    Column("owner", String(128), nullable=False),
    Column("stage", String(40), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("asked_sha256", String(64), nullable=False),
    Column("model", String(200), nullable=False),
    Column("state", String(16), nullable=False),
    # Whether the answer passed every check, and whether somebody asked for another one since.
    Column("accepted", Boolean, nullable=False),
    Column("retired", Boolean, nullable=False),
    Column("answer", LargeBinary),
    Column("error_code", String(100)),
    # While there is no answer, what it can cost at most: so the sums are never too small.
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("estimated", Boolean, nullable=False),
    Column("cost_micro", BigInteger),
    Column("asked_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger),
    Index("ix_model_call_subject", "subject", "part", "stage", "asked_sha256"),
    Index("ix_model_call_owner", "owner", "asked_us"),
    Index("ix_model_call_run_id", "run_id"),
    # Holds all that a month's sum is made of, so that it is read without a look at the rows.
    Index("ix_model_call_asked_us", "asked_us", "prompt_tokens", "completion_tokens", "cost_micro"),
    sqlite_autoincrement=True,
)
