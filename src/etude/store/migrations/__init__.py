"""Bring a database to the schema of this version: forward only, one process at a time.

The revisions are one linear chain of plain files in `versions/`, which import nothing of Etude:
they say what a schema was, not what it is. All pending ones run in one transaction, so that a
killed upgrade leaves the old schema whole.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from etude.files import crash_point
from etude.store import sqlite
from etude.store.connect import Translate, connected, mapped, parse_url, postgresql_adapter
from etude.store.errors import SchemaAhead, SchemaBehind, StoreCorrupt

_VERSIONS: Final = Path(__file__).parent / "versions"
_TABLE: Final = "alembic_version"
_ADVISORY_LOCK: Final = 0x65747564  # "etud": any number that nobody else in the database uses


async def upgrade(url: str) -> None:
    """Run every pending revision in one transaction; a second process waits and finds none.

    Raises:
        SchemaAhead: a newer version of Etude has upgraded this database.
        StoreUnavailable: it does not answer, or has no room; the old schema is untouched.
    """
    async with _open_locked(url) as connection:
        await connection.run_sync(_run_pending)
        crash_point("store.migration.before_commit")
        await connection.commit()
    crash_point("store.migration.committed")


async def current_revision(url: str) -> str | None:
    """Return the revision that the database has; `None` before the first upgrade."""
    engine, translate = _engine(url, exclusive=False)
    try:
        with mapped(translate):
            async with connected(engine) as connection:
                return await connection.run_sync(_revision)
    finally:
        await engine.dispose()


def newest_revision() -> str:
    """Return the revision that this version of Etude needs: files and revisions have one name."""
    return max(_known())


async def check(url: str) -> None:
    """Make sure that the database has the schema of this version.

    Raises:
        SchemaBehind: pending revisions; run the upgrade.
        SchemaAhead: a newer version of Etude has upgraded it.
    """
    found, needed = await current_revision(url), newest_revision()
    if found == needed:
        return
    if found is not None and found not in _known():
        raise SchemaAhead(found=found, needed=needed)
    raise SchemaBehind(found=found or "-", needed=needed)


def _known() -> frozenset[str]:
    return frozenset(file.stem for file in _VERSIONS.glob("[0-9]*.py"))


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_TABLE):
        return None
    found: str | None = connection.exec_driver_sql(f"SELECT version_num FROM {_TABLE}").scalar()  # noqa: S608 - a constant
    return found


def _run_pending(connection: Connection) -> None:
    # Here, because every process checks the schema, few change it, and this takes 0.2 s of a core.
    from etude.store.migrations.running import run_pending  # noqa: PLC0415 - see above

    found = _revision(connection)
    if found is not None and found not in _known():
        raise SchemaAhead(found=found, needed=newest_revision())
    run_pending(connection)
    _check_foreign_keys(connection)


def _check_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StoreCorrupt(reason=f"foreign key of {broken[0]}")


@asynccontextmanager
async def _open_locked(url: str) -> AsyncIterator[AsyncConnection]:
    engine, translate = _engine(url, exclusive=True)
    try:
        with mapped(translate):
            async with connected(engine) as connection:
                await connection.begin()
                if connection.dialect.name == "postgresql":
                    await connection.exec_driver_sql(
                        f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"
                    )
                yield connection
    finally:
        await engine.dispose()


def _engine(url: str, *, exclusive: bool) -> tuple[AsyncEngine, Translate]:
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite":
        adapter = postgresql_adapter()
        return adapter.engine(parsed, connections=1), adapter.translate
    if exclusive:
        return sqlite.engine_to_migrate(parsed), sqlite.translate
    return sqlite.engine_to_write(parsed), sqlite.translate
