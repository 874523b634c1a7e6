import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from etude.files import armed
from etude.store import Database
from etude.store.errors import DiskFull, StoreBusy, StoreCorrupt, StoreUnavailable
from etude.store.tables import blob
from etude.testing.waiting import run_bounded, within

Run = Callable[..., Any]


def row(letter: str) -> dict[str, object]:
    return {"sha256": letter * 64, "size": 1, "created_us": 1}


async def add(database: Database, letter: str) -> None:
    async with database.transaction() as work:
        await work.connection.execute(insert(blob), [row(letter)])


async def stored(database: Database) -> set[str]:
    async with database.read() as connection:
        return {digest[0] for digest in await connection.scalars(select(blob.c.sha256))}


async def fail_after_adding(database: Database, letter: str) -> None:
    async with database.transaction() as work:
        await work.connection.execute(insert(blob), [row(letter)])
        raise ZeroDivisionError


def test_commit_is_seen_and_an_error_leaves_nothing(run: Run, database: Database) -> None:
    """A block that ends well is committed; one that raises leaves no trace."""

    async def main() -> None:
        await add(database, "a")
        with pytest.raises(ZeroDivisionError):
            await fail_after_adding(database, "b")
        assert await stored(database) == {"a"}

    run(main())


def test_driver_connection_is_in_the_transaction(run: Run, database: Database) -> None:
    """What bulk code sends to the driver first of all is rolled back with the rest."""

    async def send_and_fail() -> None:
        async with database.transaction() as work:
            await work.driver_connection.execute(
                "INSERT INTO blob VALUES ('" + "a" * 64 + "', 1, 1)"
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(send_and_fail())
    assert run(stored(database)) == set()


def test_reader_cannot_write(run: Run, database: Database) -> None:
    """`read` refuses to write on both databases."""

    async def write() -> None:
        async with database.read() as connection:
            await connection.execute(insert(blob), [row("a")])

    with pytest.raises(StoreUnavailable):
        run(write())
    assert run(stored(database)) == set()


def test_reader_sees_one_snapshot(run: Run, database: Database) -> None:
    """What is committed while a reader reads is not seen by it, and does not wait for it."""

    async def main() -> None:
        async with database.read() as connection:
            before = (await connection.scalars(select(blob.c.sha256))).all()
            await add(database, "a")
            assert (await connection.scalars(select(blob.c.sha256))).all() == before == []
        assert await stored(database) == {"a"}

    run(main())


def test_writers_of_one_process_wait_for_each_other(run: Run, database: Database) -> None:
    """Fifty transactions at once that read, then write, all succeed and lose no update."""

    async def count_up() -> None:
        async with database.transaction() as work:
            lock = select(blob.c.size).where(blob.c.sha256 == "a" * 64).with_for_update()
            size = (await work.connection.execute(lock)).scalar_one()
            await work.connection.execute(blob.update().values(size=size + 1))

    async def main() -> None:
        await add(database, "a")
        await asyncio.gather(*(count_up() for _ in range(50)))
        async with database.read() as connection:
            assert (await connection.execute(select(blob.c.size))).scalar_one() == 51

    run(main())


def test_callbacks_run_in_order_after_the_commit(run: Run, database: Database) -> None:
    """Callbacks see what was committed; a failing one is logged and stops nothing."""
    seen: list[object] = []
    secret = "a child's name"

    async def main() -> None:
        async def look() -> None:
            seen.append(await stored(database))

        def fail() -> None:
            raise ValueError(secret)

        async with database.transaction() as work:
            await work.connection.execute(insert(blob), [row("a")])
            for callback in (look, fail, lambda: seen.append("last")):
                work.after_commit(callback)

    with structlog.testing.capture_logs() as logs:
        run(main())
    assert seen == [{"a"}, "last"]
    assert [entry["error_code"] for entry in logs] == ["ValueError"]
    assert secret not in str(logs)


def test_callbacks_do_not_run_without_a_commit(run: Run, database: Database) -> None:
    """A transaction that is rolled back calls nobody."""
    seen: list[str] = []

    async def main() -> None:
        async with database.transaction() as work:
            work.after_commit(lambda: seen.append("called"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main())
    assert seen == []


@pytest.mark.parametrize(
    ("point", "kept"),
    [("store.transaction.before_commit", set()), ("store.transaction.committed", {"a"})],
)
def test_crash_points_of_a_transaction(
    run: Run, database: Database, point: str, kept: set[str]
) -> None:
    """Before the commit nothing is kept, after it everything is."""

    class Crash(BaseException):
        pass

    def crash(name: str) -> None:
        if name == point:
            raise Crash

    with armed(crash), pytest.raises(Crash):
        run(add(database, "a"))
    assert run(stored(database)) == kept


def test_cancelled_commit_is_carried_to_its_end(run: Run, database: Database) -> None:
    """A task cancelled while it commits has committed, and its callbacks are not half run."""

    async def main() -> None:
        reached = asyncio.Event()

        def note(name: str) -> None:
            if name == "store.transaction.before_commit":
                reached.set()

        with armed(note):
            task = asyncio.create_task(add(database, "a"))
            await within(reached.wait(), "the commit")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await stored(database) == {"a"}
        await add(database, "b")  # and the connection is whole

    run(main())


def test_a_broken_rule_is_the_callers_error(run: Run, database: Database) -> None:
    """A violated constraint stays SQLAlchemy's error, and its text holds no value of the row."""

    async def main() -> None:
        await add(database, "a")
        await add(database, "a")

    with pytest.raises(IntegrityError) as caught:
        run(main())
    assert "'created_us'" not in str(caught.value)
    assert "parameters hidden" in str(caught.value)


def test_sqlite_is_opened_for_durability(run: Run, sqlite_url: str) -> None:
    """Every SQLite connection has the pragmas that durability and erasure rest on."""
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30000,
        "secure_delete": 1,
    }

    async def main() -> None:
        async with (
            await Database.open(sqlite_url) as database,
            database.read() as reader,
            database.transaction() as work,
        ):
            for connection in (reader, work.connection):
                found = {
                    name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
                    for name in wanted
                }
                assert found == wanted

    run(main())


def test_full_sqlite_is_disk_full_and_keeps_nothing(run: Run, sqlite_url: str) -> None:
    """A file that may not grow answers `DISK_FULL` and keeps nothing of the transaction."""

    async def fill(database: Database) -> None:
        async with database.transaction() as work:
            await work.connection.exec_driver_sql("PRAGMA max_page_count = 1")
            rows = [{**row("a"), "sha256": f"{number:064}"} for number in range(20000)]
            await work.connection.execute(insert(blob), rows)

    async def main() -> None:
        async with await Database.open(sqlite_url) as database:
            with pytest.raises(DiskFull) as caught:
                await fill(database)
            assert caught.value.params == {"reason": "SQLITE_FULL"}
            assert await stored(database) == set()

    run(main())


def test_size_limit_of_the_process_is_disk_full(sqlite_url: str) -> None:
    """A process at its file size limit answers `DISK_FULL`; what it committed is there."""
    script = """
import asyncio, resource, sys
from sqlalchemy import insert
from etude.store import Database
from etude.store.errors import DiskFull
from etude.store.tables import blob
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
async def main():
    async with await Database.open(sys.argv[1]) as database:
        count = 0
        try:
            while True:
                numbers = range(count, count + 50)
                rows = [{"sha256": f"{n:064}", "size": 1, "created_us": 1} for n in numbers]
                async with database.transaction() as work:
                    await work.connection.execute(insert(blob), rows)
                count += 50
        except DiskFull as error:
            print(count, error.code)
asyncio.run(main())
"""
    done = run_bounded(
        [sys.executable, "-c", script, sqlite_url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    count, code = done.stdout.split()
    assert code == "DISK_FULL"

    async def main() -> None:
        async with await Database.open(sqlite_url) as database:
            async with database.read() as connection:
                rows = (await connection.scalars(select(blob.c.sha256))).all()
            assert len(rows) == int(count) > 0

    asyncio.run(main())


def test_damaged_file_is_corrupt(run: Run, tmp_path: Path) -> None:
    """A file that is no database is refused with its own code."""
    path = tmp_path / "no.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreCorrupt):
        run(Database.open(f"sqlite:///{path}"))


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all/etude.db",
        "postgresql://postgres@/postgres?host=/nowhere",
        "postgresql://postgres@127.0.0.1:1/postgres",
    ],
)
def test_absent_database_is_unavailable(run: Run, url: str) -> None:
    """A database that does not answer is `STORE_UNAVAILABLE`, on opening."""
    with pytest.raises(StoreUnavailable):
        run(Database.open(url))


def test_unknown_database_on_a_server_is_unavailable(run: Run, postgres_url: str) -> None:
    """A server without the named database is `STORE_UNAVAILABLE` too."""
    with pytest.raises(StoreUnavailable) as caught:
        run(Database.open(postgres_url.replace("etude_test_", "no_such_")))
    assert caught.value.params == {"reason": "3D000"}


def test_server_that_ends_its_sessions_costs_one_error(run: Run, postgres_url: str) -> None:
    """A session that the server ends is `STORE_UNAVAILABLE`; the next one works."""

    async def cut_oneself_off(database: Database) -> None:
        async with database.transaction() as work:
            await work.connection.execute(insert(blob), [row("a")])
            await work.connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    async def main() -> None:
        async with await Database.open(postgres_url) as database:
            with pytest.raises(StoreUnavailable):
                await cut_oneself_off(database)
            await add(database, "b")
            assert await stored(database) == {"b"}

    run(main())


def test_postgres_commits_are_never_lazy(run: Run, postgres_url: str) -> None:
    """A server whose default is not to wait for the disk waits for ours."""

    async def main() -> None:
        async with await Database.open(postgres_url) as database, database.transaction() as work:
            name = postgres_url.partition("/etude_test_")[2].partition("?")[0]
            await work.connection.exec_driver_sql(
                f"ALTER DATABASE etude_test_{name} SET synchronous_commit = off"
            )
        async with await Database.open(postgres_url) as database, database.read() as connection:
            shown = await connection.exec_driver_sql("SHOW synchronous_commit")
            assert shown.scalar_one() == "on"

    run(main())


def test_scrub_leaves_no_trace_of_deleted_rows(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """After `scrub` neither the file nor its log holds what was deleted."""

    async def main() -> None:
        async with await Database.open(sqlite_url) as database:
            await add(database, "e")
            async with database.transaction() as work:
                await work.connection.execute(blob.delete())
            await database.scrub([blob])
            await add(database, "f")  # and the database still works

    run(main())
    for path in tmp_path.glob("etude.db*"):
        assert b"e" * 64 not in path.read_bytes(), path.name


def test_scrub_says_so_when_a_reader_keeps_old_pages(run: Run, sqlite_url: str) -> None:
    """With a snapshot open the log cannot be emptied: `StoreBusy`, and done once it is closed."""

    async def main() -> None:
        async with await Database.open(sqlite_url) as database:
            await add(database, "e")
            async with database.read() as reader:
                await reader.exec_driver_sql("SELECT count(*) FROM blob")
                with pytest.raises(StoreBusy):
                    await database.scrub([blob])
            await database.scrub([blob])

    run(main())


def test_scrub_rewrites_tables_on_postgres(run: Run, postgres_url: str) -> None:
    """`scrub` gives the table a new file, without the dead rows."""

    async def main() -> None:
        async with await Database.open(postgres_url) as database:
            node = "SELECT relfilenode FROM pg_class WHERE relname = 'blob'"
            await add(database, "e")
            async with database.read() as connection:
                before = (await connection.exec_driver_sql(node)).scalar_one()
            await database.scrub([blob])
            async with database.read() as connection:
                assert (await connection.exec_driver_sql(node)).scalar_one() != before
            assert await stored(database) == {"e"}

    run(main())


def test_scrub_says_so_when_a_reader_sees_the_deleted_rows(run: Run, postgres_url: str) -> None:
    """PostgreSQL keeps what a transaction that began before the deletion might still ask for."""

    async def size_bytes(database: Database) -> int:
        async with database.read() as connection:
            found = await connection.exec_driver_sql("SELECT pg_relation_size('blob')")
            return int(found.scalar_one())

    async def main() -> None:
        async with await Database.open(postgres_url) as database:
            await add(database, "a")
            async with database.read() as reader:
                await reader.exec_driver_sql("SELECT count(*) FROM blob_reference")
                async with database.transaction() as work:
                    await work.connection.execute(delete(blob))
                with pytest.raises(StoreBusy):
                    await database.scrub([blob])
            await database.scrub([blob])
            assert await size_bytes(database) == 0

    run(main())
