"""The SQLite adapter: how connections are opened and what their errors mean."""

import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from etude.store.errors import DiskFull, StoreBusy, StoreCorrupt, StoreUnavailable

BUSY_TIMEOUT_S: Final = 30
_PRAGMAS: Final = (
    # Order matters: without the time-out first, switching to WAL can fail on a busy file.
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # each commit is synced before the answer (`docs/rules.md 14`)
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is erased is overwritten (`docs/rules.md 50`)
    "PRAGMA trusted_schema = OFF",
)
_FULL: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        # SQLite reports ENOSPC as FULL but EFBIG (a size limit) and a short write as these.
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_AWAY: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def engine_to_write(url: URL) -> AsyncEngine:
    """Return an engine of one connection whose transactions begin with `BEGIN IMMEDIATE`.

    SQLite has one writer at a time; one connection makes the writers of a process queue in order of
    arrival instead of polling the file's lock against each other.
    """
    return _engine(url, pool_size=1, max_overflow=0, begin="BEGIN IMMEDIATE", extra=())


def engine_to_read(url: URL, connections: int) -> AsyncEngine:
    """Return an engine whose connections see one snapshot a transaction and cannot write."""
    return _engine(
        url,
        pool_size=connections,
        max_overflow=connections,
        begin="BEGIN",
        extra=("PRAGMA query_only = ON",),
    )


def engine_to_migrate(url: URL) -> AsyncEngine:
    """Return an engine whose one connection locks the whole file while its transaction is open.

    Foreign keys are off, because rebuilding a table drops it; the runner checks them at the end.
    """
    extra = ("PRAGMA foreign_keys = OFF",)
    return _engine(url, pool_size=1, max_overflow=0, begin="BEGIN EXCLUSIVE", extra=extra)


def _engine(
    url: URL, *, pool_size: int, max_overflow: int, begin: str, extra: tuple[str, ...]
) -> AsyncEngine:
    # aiosqlite would find out too, in a thread that outlives a loop which ends right after.
    if not Path(str(url.database)).parent.is_dir():
        raise StoreUnavailable(reason="SQLITE_CANTOPEN")
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=BUSY_TIMEOUT_S,
        hide_parameters=True,  # an error's text may reach a log; the values in it must not
    )
    _prepare_connections(engine.sync_engine, (*_PRAGMAS, *extra))
    _begin_with(engine.sync_engine, begin)
    return engine


def _prepare_connections(engine: Engine, pragmas: tuple[str, ...]) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # The driver's own implicit BEGIN is deferred and comes too late: ours replaces it.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()


def _begin_with(engine: Engine, statement: str) -> None:
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)


def translate(error: BaseException) -> StoreUnavailable | None:
    """Return what a driver error means here; `None` if it is the caller's own (a constraint)."""
    if not isinstance(error, sqlite3.Error):
        return None
    # An error raised by the driver module itself carries no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    reason = error.sqlite_errorname
    primary = code & 0xFF
    if code in _FULL:
        return DiskFull(reason=reason)
    if primary in _BUSY:
        return StoreBusy(reason=reason)
    if primary in _CORRUPT:
        return StoreCorrupt(reason=reason)
    return StoreUnavailable(reason=reason) if primary in _AWAY else None
