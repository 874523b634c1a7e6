from collections.abc import AsyncIterator

import msgspec
import pytest
from sqlalchemy import BigInteger, Column, ForeignKey, MetaData, Table

from etude.people.learner_data import (
    ExportFile,
    LearnerData,
    LearnerDataRegistry,
    tables_of_learners,
    uncovered_tables,
)
from etude.store import Database, UnitOfWork


def schema() -> MetaData:
    metadata = MetaData()
    Table("learner", metadata, Column("learner_key", BigInteger, primary_key=True))
    Table(
        "session",
        metadata,
        Column("session_key", BigInteger, primary_key=True),
        Column("learner_key", BigInteger),
    )
    # Without a foreign key, as bulk tables are.
    Table(
        "event",
        metadata,
        Column("receipt", BigInteger, primary_key=True),
        Column("session_key", BigInteger),
    )
    Table(
        "report",
        metadata,
        Column("report_key", BigInteger, primary_key=True),
        Column("about", ForeignKey("event.receipt")),
    )
    Table("revision", metadata, Column("of", ForeignKey("report.report_key"), primary_key=True))
    Table("device", metadata, Column("device_key", BigInteger, primary_key=True))
    return metadata


async def export(_database: Database, _key: int) -> AsyncIterator[ExportFile]:
    return
    yield  # makes it a generator


async def erase(_work: UnitOfWork, _key: int) -> None:
    return


def data(context: str, *tables: Table) -> LearnerData:
    return LearnerData(context=context, tables=tables, export_learner=export, erase_learner=erase)


def test_every_chain_to_a_learner_is_found() -> None:
    """A column, a foreign key, a key column without one: each makes a path, however long."""
    assert tables_of_learners(schema()) == {"learner", "session", "event", "report", "revision"}


def test_a_table_with_a_path_and_no_handler_is_named() -> None:
    """What nobody registered is uncovered; a table without a path needs no handler."""
    metadata = schema()
    registry = LearnerDataRegistry()
    registry.register(data("people", metadata.tables["learner"]))
    registry.register(data("sessions", metadata.tables["session"], metadata.tables["event"]))
    assert uncovered_tables(metadata, registry) == {"report", "revision"}


def test_a_table_of_keys_only_is_answered_for_and_not_rewritten() -> None:
    """Keys and times may stay: such a table needs no erasure, and somebody has said so."""
    metadata = schema()
    registry = LearnerDataRegistry()
    held = data("people", metadata.tables["learner"])
    registry.register(msgspec.structs.replace(held, keys_only=(metadata.tables["session"],)))
    assert uncovered_tables(metadata, registry) == {"event", "report", "revision"}
    assert [table.name for table in registry.tables] == ["learner"]


def test_a_context_registers_once() -> None:
    """Registering twice is a defect, found at once."""
    registry = LearnerDataRegistry()
    registry.register(data("people"))
    with pytest.raises(ValueError, match="people"):
        registry.register(data("people"))
