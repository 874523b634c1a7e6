from typing import Any

import pytest

from etude.sessions.bulk import EventRows, PostgresEventRows, SqliteEventRows
from etude.store import Database


@pytest.fixture
def rows(database: Database) -> EventRows:
    """The implementation that fits the database: both pass this one suite."""
    return SqliteEventRows() if database.dialect == "sqlite" else PostgresEventRows()


def value(session_key: int, event_id: str, line: bytes = b"{}") -> tuple[Any, ...]:
    return (session_key, event_id, line, None, 0.5, "t", "s", None, None, None, False, 7)


def test_new_rows_are_stored_and_known_keys_returned(
    database: Database, rows: EventRows, run: Any
) -> None:
    """insert stores what is new, leaves what exists, and names exactly that."""

    async def story() -> None:
        async with database.transaction() as work:
            assert await rows.insert(work, [value(1, "a"), value(1, "b"), value(2, "a")]) == []
        async with database.transaction() as work:
            known = await rows.insert(work, [value(1, "b", b"other"), value(2, "b"), value(2, "a")])
            assert sorted(known) == [(1, "b"), (2, "a")]
            found = await rows.lines(work, [(1, "b"), (2, "b"), (3, "x")])
            assert found == {(1, "b"): b"{}", (2, "b"): b"{}"}

    run(story())


def test_an_undone_transaction_leaves_no_row(database: Database, rows: EventRows, run: Any) -> None:
    """Bulk rows belong to the caller's transaction and go with it."""

    async def undone() -> None:
        async with database.transaction() as work:
            await rows.insert(work, [value(1, "a")])
            raise ZeroDivisionError

    async def story() -> dict[Any, bytes]:
        with pytest.raises(ZeroDivisionError):
            await undone()
        async with database.transaction() as work:
            return await rows.lines(work, [(1, "a")])

    assert run(story()) == {}


def test_receipt_numbers_rise_with_the_order_of_arrival(
    database: Database, rows: EventRows, run: Any
) -> None:
    """A later row has the higher receipt number, within a call and across calls."""

    async def story() -> list[str]:
        for ids in ("cab", "fed"):
            async with database.transaction() as work:
                await rows.insert(work, [value(1, name) for name in ids])
        async with database.read() as connection:
            found = await connection.exec_driver_sql(
                "SELECT event_id FROM session_event ORDER BY receipt"
            )
            return [row[0] for row in found]

    assert run(story()) == list("cabfed")


def test_more_rows_than_one_statement_can_name(
    database: Database, rows: EventRows, run: Any
) -> None:
    """Thousands of keys that exist are all found, with their lines."""

    async def story() -> tuple[int, int]:
        many = [value(1, f"e{number}") for number in range(3_000)]
        async with database.transaction() as work:
            await rows.insert(work, many)
        async with database.transaction() as work:
            known = await rows.insert(work, many)
            return len(known), len(await rows.lines(work, known))

    assert run(story()) == (3_000, 3_000)


def test_no_line_waits_in_another_place_for_an_erasure(postgres_url: str, run: Any) -> None:
    """What PostgreSQL was handed by COPY is gone from the temporary table with the commit."""

    async def story() -> int | None:
        async with await Database.open(postgres_url, connections=1) as database:
            async with database.transaction() as work:
                await PostgresEventRows().insert(work, [value(1, "a")])
            async with database.transaction() as work:
                left: int | None = await work.driver_connection.fetchval(
                    "SELECT count(*) FROM incoming_event"
                )
                return left

    assert run(story()) == 0
