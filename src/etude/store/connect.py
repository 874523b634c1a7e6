"""What the engine and the migrations share: URLs, connections, and errors mapped to Etude's."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Final

import sqlalchemy.exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from etude.errors import EtudeError
from etude.store.errors import DatabaseUrlError, ExtraMissing, StoreBusy, StoreUnavailable

Translate = Callable[[BaseException], StoreUnavailable | None]
_DRIVERS: Final = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}


def parse_url(url: str) -> URL:
    """Return the SQLAlchemy URL with the driver that Etude uses.

    Raises:
        DatabaseUrlError: not a SQLite or PostgreSQL URL. The message never repeats the URL, which
            may hold a password.
    """
    try:
        parsed = make_url(url)
    except sqlalchemy.exc.ArgumentError as error:
        raise DatabaseUrlError(scheme=url.partition(":")[0][:20]) from error
    scheme = parsed.drivername.partition("+")[0]
    driver = _DRIVERS.get("postgresql" if scheme == "postgres" else scheme)
    if driver is None or (scheme == "sqlite" and not parsed.database):
        raise DatabaseUrlError(scheme=scheme)
    return parsed.set(drivername=driver)


def postgresql_adapter() -> ModuleType:
    """Return `etude.store.postgresql`, whose driver is an extra.

    Raises:
        ExtraMissing: `etude[postgres]` is not installed.
    """
    try:
        from etude.store import postgresql  # noqa: PLC0415 - only who uses it needs its driver
    except ImportError as error:
        raise ExtraMissing(extra="postgres", install="pip install 'etude[postgres]'") from error
    return postgresql


@contextlib.asynccontextmanager
async def connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a connection of `engine`; what is not committed is rolled back at the end."""
    try:
        connection = await engine.connect()
    except sqlalchemy.exc.TimeoutError as error:
        raise StoreBusy(reason="pool") from error
    except (OSError, TimeoutError) as error:  # asyncpg lets the socket's own errors through
        raise StoreUnavailable(reason=type(error).__name__) from error
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.contextmanager
def mapped(translate: Translate) -> Iterator[None]:
    """Raise what a driver's error means to Etude; a caller's own (a constraint) stays itself."""
    try:
        yield
    except EtudeError:
        raise
    except Exception as error:
        meanings = (translate(inner) for inner in _chain(error))
        meaning = next((found for found in meanings if found is not None), None)
        if meaning is None:
            raise
        raise meaning from error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it wraps: the driver's own is inside one or two of SQLAlchemy's."""
    inner: BaseException | None = error
    while inner is not None:
        yield inner
        wrapped = inner.orig if isinstance(inner, sqlalchemy.exc.DBAPIError) else None
        inner = wrapped or inner.__cause__
