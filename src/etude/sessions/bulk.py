"""The driver-level way into the event table: one port, two real implementations.

Ordinary statements go through SQLAlchemy Core; events come by the thousand, and there the drivers'
own bulk calls are three to ten times faster. Both implementations work inside the caller's
transaction and are tested by one contract suite.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, Protocol

from etude.store.work import UnitOfWork

Key = tuple[int, str]
"""`(session_key, event_id)`."""

# receipt is added by the implementation; the rest in the table's order.
Values = tuple[Any, ...]

COLUMNS = (
    "receipt",
    "session_key",
    "event_id",
    "line",
    "seq",
    "ts_s",
    "event_type",
    "signal",
    "phase",
    "confidence",
    "alert_tier",
    "review_offered",
    "received_us",
)


class EventRows(Protocol):
    """Where event rows go."""

    async def insert(self, work: UnitOfWork, rows: Sequence[Values]) -> list[Key]:
        """Store rows with distinct keys; return the keys that existed, whose rows were left out.

        A row is `(session_key, event_id, line, …, received_us)` in the table's order without
        `receipt`. Receipt numbers rise with the order given.
        """

    async def lines(self, work: UnitOfWork, keys: Sequence[Key]) -> dict[Key, bytes]:
        """Return the stored lines of those keys that exist."""


class SqliteEventRows:
    """Statements of many rows on the raw connection, in its thread, under SQLite's write lock.

    One row a statement would give up Python's interpreter lock once a row, and get it back only
    when the event loop pauses: ingest then slows to the loop's rhythm (`docs/performance.md`).
    """

    # The largest first: a call stores a hundred rows a statement, then tens, then the last ones.
    _STEPS = (100, 10, 1)
    _SELECT = "SELECT session_key, event_id, line FROM session_event"

    async def insert(self, work: UnitOfWork, rows: Sequence[Values]) -> list[Key]:
        """See `EventRows.insert`."""
        connection = work.driver_connection
        cursor = await connection.execute("SELECT coalesce(max(receipt), 0) FROM session_event")
        ((last,),) = await cursor.fetchall()
        await cursor.close()
        numbered = [(receipt, *row) for receipt, row in enumerate(rows, last + 1)]
        if await self._insert(connection, numbered) == len(rows):
            return []
        cursor = await connection.execute(
            "SELECT receipt FROM session_event WHERE receipt > ?", (last,)
        )
        new = {receipt for (receipt,) in await cursor.fetchall()}
        await cursor.close()
        return [(row[1], row[2]) for row in numbered if row[0] not in new]

    async def _insert(self, connection: Any, rows: Sequence[Values]) -> int:  # noqa: ANN401 - aiosqlite's connection
        """Insert rows with their receipts; return how many were stored."""
        stored = done = 0
        for step in self._STEPS:
            until = len(rows) - (len(rows) - done) % step
            if until > done:
                cursor = await connection.executemany(
                    _insert_of(step),
                    [
                        tuple(chain.from_iterable(rows[first : first + step]))
                        for first in range(done, until, step)
                    ],
                )
                stored += cursor.rowcount
                await cursor.close()
                done = until
        return stored

    async def lines(self, work: UnitOfWork, keys: Sequence[Key]) -> dict[Key, bytes]:
        """See `EventRows.lines`."""
        connection = work.driver_connection
        found: dict[Key, bytes] = {}
        for start in range(0, len(keys), 400):
            part = keys[start : start + 400]
            places = ", ".join(["(?, ?)"] * len(part))
            cursor = await connection.execute(
                f"{self._SELECT} WHERE (session_key, event_id) IN (VALUES {places})",
                [value for key in part for value in key],
            )
            found.update({(key, event_id): line for key, event_id, line in await cursor.fetchall()})
            await cursor.close()
        return found


@cache
def _insert_of(rows: int) -> str:
    """Return the statement that inserts this many rows and leaves out those whose key exists."""
    row = f"({', '.join('?' * len(COLUMNS))})"
    return (
        f"INSERT INTO session_event ({', '.join(COLUMNS)}) "  # noqa: S608 - constants
        f"VALUES {', '.join([row] * rows)} ON CONFLICT (session_key, event_id) DO NOTHING"
    )


class PostgresEventRows:
    """`COPY` into a temporary table, then `INSERT … ON CONFLICT DO NOTHING` from there.

    The temporary table is empty after each transaction: no erasure reaches another connection's.
    """

    _CREATE = (
        "CREATE TEMPORARY TABLE IF NOT EXISTS incoming_event"
        " (LIKE session_event INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
    )
    _INSERT = (
        f"INSERT INTO session_event ({', '.join(COLUMNS)}) SELECT {', '.join(COLUMNS)}"  # noqa: S608 - constants
        " FROM incoming_event ORDER BY session_key, event_id"
        " ON CONFLICT (session_key, event_id) DO NOTHING"
    )
    _EXISTED = (
        "SELECT e.session_key, e.event_id FROM incoming_event i JOIN session_event e"
        " USING (session_key, event_id) WHERE e.receipt <> i.receipt"
    )

    async def insert(self, work: UnitOfWork, rows: Sequence[Values]) -> list[Key]:
        """See `EventRows.insert`."""
        connection = work.driver_connection
        receipts = await connection.fetch(
            "SELECT nextval('session_event_receipt_seq') FROM generate_series(1, $1)", len(rows)
        )
        await connection.execute(self._CREATE)
        await connection.copy_records_to_table(
            "incoming_event",
            records=[(number[0], *row) for number, row in zip(receipts, rows, strict=True)],
            columns=COLUMNS,
        )
        status: str = await connection.execute(self._INSERT)
        stored = int(status.rpartition(" ")[2])
        existed = [] if stored == len(rows) else await connection.fetch(self._EXISTED)
        return [(row[0], row[1]) for row in existed]

    async def lines(self, work: UnitOfWork, keys: Sequence[Key]) -> dict[Key, bytes]:
        """See `EventRows.lines`."""
        connection = work.driver_connection
        rows = await connection.fetch(
            "SELECT e.session_key, e.event_id, e.line FROM unnest($1::bigint[], $2::text[])"
            " AS k(s, i) JOIN session_event e ON e.session_key = k.s AND e.event_id = k.i",
            [key for key, _ in keys],
            [event_id for _, event_id in keys],
        )
        return {(row[0], row[1]): row[2] for row in rows}
