"""Which bytes are stored, and who refers to them."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, String, Table

from etude.store.schema import metadata

blob: Final = Table(
    "blob",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    CheckConstraint("length(sha256) = 64", name="sha256"),
)
blob_reference: Final = Table(
    "blob_reference",
    metadata,
    Column("sha256", String(64), ForeignKey("blob.sha256"), primary_key=True),
    Column("owner", String(200), primary_key=True),
    Index(None, "owner"),
)
