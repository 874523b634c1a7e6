"""The PostgreSQL adapter: how connections are opened and what their errors mean."""

from typing import Final

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import URL, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from etude.store.errors import DiskFull, StoreBusy, StoreUnavailable

LOCK_TIMEOUT_S: Final = 30
_BUSY: Final = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
        "55P03",  # lock_not_available
    }
)
_DISK_FULL: Final = "53100"
_READ_ONLY: Final = "25006"  # a standby, or a write through `Database.read`
_AWAY_CLASSES: Final = ("08", "28", "3D", "53", "57", "58", "XX")
_SETTINGS: Final = {"application_name": "etude", "lock_timeout": f"{LOCK_TIMEOUT_S}s"}


def engine(url: URL, connections: int) -> AsyncEngine:
    """Return an engine for reading and writing with at most twice `connections` connections."""
    made = create_async_engine(
        url,
        pool_size=connections,
        max_overflow=connections,
        pool_timeout=LOCK_TIMEOUT_S,
        hide_parameters=True,  # an error's text may reach a log; the values in it must not
        pool_pre_ping=True,  # a restart of the server costs nobody an error
        connect_args={"server_settings": _SETTINGS, "timeout": 10},
    )
    _refuse_lazy_commits(made.sync_engine)
    return made


def _refuse_lazy_commits(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # An acknowledged event is on the disk (`docs/rules.md 14`), whatever the default is.
        cursor = connection.cursor()
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        cursor.close()
        connection.commit()


def translate(error: BaseException) -> StoreUnavailable | None:
    """Return what a driver error means here; `None` if it is the caller's own (a constraint)."""
    if isinstance(error, asyncpg.PostgresError):
        return _translate_state(error.sqlstate or "")
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return StoreUnavailable(reason=type(error).__name__)
    return None


def _translate_state(state: str) -> StoreUnavailable | None:
    if state == _DISK_FULL:
        return DiskFull(reason=state)
    if state == _READ_ONLY:
        return StoreUnavailable(reason=state)
    if state in _BUSY:
        return StoreBusy(reason=state)
    return StoreUnavailable(reason=state) if state.startswith(_AWAY_CLASSES) else None
