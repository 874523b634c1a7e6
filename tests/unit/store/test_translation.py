import sqlite3

import asyncpg
import pytest

from etude.store import postgresql, sqlite
from etude.store.connect import mapped
from etude.store.errors import DiskFull, StoreBusy, StoreCorrupt, StoreUnavailable


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "NAME"
    return error


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_IOERR_WRITE, DiskFull),
        (sqlite3.SQLITE_IOERR_SHMSIZE, DiskFull),
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_LOCKED, StoreBusy),
        (sqlite3.SQLITE_CORRUPT, StoreCorrupt),
        (sqlite3.SQLITE_NOTADB, StoreCorrupt),
        (sqlite3.SQLITE_IOERR_READ, StoreUnavailable),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable),
        (sqlite3.SQLITE_READONLY, StoreUnavailable),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, None),
        (sqlite3.SQLITE_ERROR, None),
    ],
)
def test_sqlite_codes(code: int, meaning: type[StoreUnavailable] | None) -> None:
    """Each result code of SQLite that is not the caller's fault has its meaning."""
    found = sqlite.translate(sqlite_error(code))
    assert type(found) is (meaning or type(None))


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (asyncpg.DiskFullError("words"), DiskFull),
        (asyncpg.DeadlockDetectedError("words"), StoreBusy),
        (asyncpg.SerializationError("words"), StoreBusy),
        (asyncpg.LockNotAvailableError("words"), StoreBusy),
        (asyncpg.TooManyConnectionsError("words"), StoreUnavailable),
        (asyncpg.AdminShutdownError("words"), StoreUnavailable),
        (asyncpg.CannotConnectNowError("words"), StoreUnavailable),
        (asyncpg.InvalidPasswordError("words"), StoreUnavailable),
        (asyncpg.ReadOnlySQLTransactionError("words"), StoreUnavailable),
        (asyncpg.ConnectionDoesNotExistError("words"), StoreUnavailable),
        (asyncpg.InterfaceError("words"), StoreUnavailable),
        (asyncpg.UniqueViolationError("words"), None),
        (asyncpg.UndefinedTableError("words"), None),
        (ValueError("words"), None),
    ],
)
def test_postgres_codes(error: Exception, meaning: type[StoreUnavailable] | None) -> None:
    """Each SQLSTATE that is not the caller's fault has its meaning."""
    assert type(postgresql.translate(error)) is (meaning or type(None))


def test_meaning_is_found_inside_and_keeps_no_words() -> None:
    """The driver's error is found below a wrapper, and its words are not in the meaning."""

    def fail() -> None:
        try:
            raise sqlite_error(sqlite3.SQLITE_FULL)
        except sqlite3.Error as error:
            raise RuntimeError from error

    with pytest.raises(DiskFull) as caught, mapped(sqlite.translate):
        fail()
    assert str(caught.value) == "DISK_FULL (reason='NAME')"


def test_other_errors_stay_themselves() -> None:
    """An error that no database made passes through."""
    with pytest.raises(ZeroDivisionError), mapped(sqlite.translate):
        raise ZeroDivisionError
