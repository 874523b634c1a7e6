"""The database: opened once a process, read and written through short transactions."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Final, Literal, Self

from sqlalchemy import Table
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from etude.files import crash_point
from etude.store import sqlite
from etude.store.connect import Translate, connected, mapped, parse_url, postgresql_adapter
from etude.store.errors import StoreBusy
from etude.store.turn import WriteTurn
from etude.store.work import UnitOfWork

SCRUB_PATIENCE_MS: Final = 1_000

Dialect = Literal["sqlite", "postgresql"]


class Database:
    """An open database. Lives as long as the process, belongs to one event loop."""

    def __init__(
        self, dialect: Dialect, reader: AsyncEngine, writer: AsyncEngine, translate: Translate
    ) -> None:
        """Bind the engines; use `Database.open`."""
        self.dialect: Final = dialect
        self._reader = reader
        self._writer = writer
        self._translate = translate
        self._turn: WriteTurn | None = None

    @classmethod
    async def open(cls, url: str, *, connections: int = 8) -> Self:
        """Connect to `sqlite:///<path>` or `postgresql://…` and make sure that it answers.

        Args:
            url: which database; a SQLite file is created if it is missing, its folder is not.
            connections: how many are kept open for reading (PostgreSQL: for everything).

        Raises:
            DatabaseUrlError: the URL names another kind of database.
            ExtraMissing: PostgreSQL is asked for and its driver is not installed.
            StoreUnavailable: it does not answer.
        """
        parsed = parse_url(url)
        database = cls(*_engines(parsed, connections))
        try:
            async with database.transaction():
                pass
            if database.dialect == "sqlite":
                database._turn = WriteTurn.beside(str(parsed.database), sqlite.BUSY_TIMEOUT_S)
        except BaseException:
            await database.close()
            raise
        return database

    async def close(self) -> None:
        """Close every connection; open transactions of other tasks fail."""
        await self._reader.dispose()
        if self._writer is not self._reader:
            await self._writer.dispose()
        if self._turn is not None:
            self._turn.close()

    async def __aenter__(self) -> Self:
        """Return itself: `async with await Database.open(url) as database`."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Open a read-only connection that sees one snapshot of the database.

        Raises:
            StoreUnavailable: the database is away, busy or damaged.
        """
        with mapped(self._translate):
            async with connected(self._reader) as connection:
                if self.dialect == "postgresql":
                    await connection.execution_options(
                        isolation_level="REPEATABLE READ", postgresql_readonly=True
                    )
                yield connection

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        """Open a transaction for writing; it is durable when the block has ended without an error.

        On SQLite it begins with `BEGIN IMMEDIATE`: writers wait for each other in order, so keep it
        short, and never open one inside another.

        Raises:
            DiskFull: there was no room; nothing of the transaction is kept.
            StoreBusy: somebody else held a lock for 30 s.
            StoreUnavailable: the database is away or damaged.
        """
        with mapped(self._translate):
            turn = self._turn.taken() if self._turn else contextlib.nullcontext()
            async with connected(self._writer) as connection, turn, connection.begin() as begun:
                work = await self._work(connection)
                yield work
                crash_point("store.transaction.before_commit")
                await _to_the_end(begun.commit())
            crash_point("store.transaction.committed")
        await work.run_callbacks()

    async def scrub(self, tables: Sequence[Table]) -> None:
        """Rewrite `tables` without what an erasure has left of its rows (`docs/rules.md 50`).

        SQLite rewrites the whole file and empties the write-ahead log. PostgreSQL rewrites the
        tables; its own write-ahead log forgets at its next checkpoints. Both lock meanwhile.

        Raises:
            StoreBusy: a reader that began before still sees the deleted rows; scrub again, or
                they stay.
        """
        with mapped(self._translate):
            async with connected(self._writer) as connection:
                if self.dialect == "sqlite":
                    await _scrub_file(connection)
                    return
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                await _wait_for_readers(connection)
                quote = connection.dialect.identifier_preparer.format_table
                for table in tables:
                    await connection.exec_driver_sql(f"VACUUM (FULL) {quote(table)}")

    async def _work(self, connection: AsyncConnection) -> UnitOfWork:
        if self.dialect == "postgresql":
            # SQLAlchemy begins with its first statement, which bulk code may never send.
            await connection.exec_driver_sql("SELECT 1")
        raw = await connection.get_raw_connection()
        return UnitOfWork(self, connection, raw.driver_connection)


def _engines(url: URL, connections: int) -> tuple[Dialect, AsyncEngine, AsyncEngine, Translate]:
    if url.get_backend_name() == "sqlite":
        reader, writer = sqlite.engine_to_read(url, connections), sqlite.engine_to_write(url)
        return "sqlite", reader, writer, sqlite.translate
    adapter = postgresql_adapter()
    engine = adapter.engine(url, connections)
    return "postgresql", engine, engine, adapter.translate


async def _scrub_file(connection: AsyncConnection) -> None:
    # Below SQLAlchemy, which would begin a transaction: VACUUM runs only outside one.
    driver: Any = (await connection.get_raw_connection()).driver_connection
    await _answer(driver, "VACUUM")
    # Emptying the log waits for readers and keeps writers out meanwhile: not for long.
    ((patience_ms,),) = await _answer(driver, "PRAGMA busy_timeout")
    await _answer(driver, f"PRAGMA busy_timeout = {SCRUB_PATIENCE_MS}")
    try:
        ((busy, *_),) = await _answer(driver, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        await _answer(driver, f"PRAGMA busy_timeout = {patience_ms}")
    if busy:
        raise StoreBusy(reason="reader")


async def _wait_for_readers(connection: AsyncConnection) -> None:
    """Wait for transactions that began before: PostgreSQL keeps every row that one of them sees."""
    newest = "SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)"
    number = str((await connection.exec_driver_sql(newest)).scalar_one())
    earlier = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND age(backend_xmin) > age(CAST(CAST($1 AS text) AS xid))"
    )
    until_s = time.monotonic() + SCRUB_PATIENCE_MS / 1000
    while (await connection.exec_driver_sql(earlier, (number,))).scalar_one():
        if time.monotonic() > until_s:
            raise StoreBusy(reason="reader")
        await asyncio.sleep(0.05)


async def _answer(driver: Any, statement: str) -> list[Any]:  # noqa: ANN401 - aiosqlite's connection
    cursor = await driver.execute(statement)
    rows: list[Any] = list(await cursor.fetchall())
    await cursor.close()
    return rows


async def _to_the_end(commit: Coroutine[Any, Any, None]) -> None:
    """Await to the end even if the task is cancelled: whether it was committed must be known."""
    task = asyncio.create_task(commit)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        task.result()
        raise
