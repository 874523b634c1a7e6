import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.store import Database
from etude.store.errors import StoreBusy
from etude.store.turn import WriteTurn

Run = Callable[..., Any]


def turn(folder: Path, patience_s: float = 30.0) -> WriteTurn:
    made = WriteTurn.beside(str(folder / "etude.db"), patience_s)
    assert made is not None
    return made


def test_two_holders_take_turns(run: Run, tmp_path: Path) -> None:
    """Whoever comes second is let in when the first one goes, and never beside it."""
    one, other = turn(tmp_path), turn(tmp_path)
    seen: list[str] = []

    async def hold(which: WriteTurn, name: str) -> None:
        async with which.taken():
            seen.append(f"{name} in")
            await asyncio.sleep(0.02)
            seen.append(f"{name} out")

    async def both() -> None:
        await asyncio.gather(*(hold(which, name) for which, name in ((one, "a"), (other, "b"))))

    for _ in range(3):
        run(both())
    assert all(seen[at].split()[0] == seen[at + 1].split()[0] for at in range(0, len(seen), 2))
    one.close()
    other.close()


def test_who_waits_too_long_is_told_and_blocks_nobody(run: Run, tmp_path: Path) -> None:
    """`StoreBusy` after the patience is over; given up, the turn is free for the next one."""
    one, other = turn(tmp_path), turn(tmp_path, patience_s=0.05)

    async def story() -> None:
        async with one.taken():
            with pytest.raises(StoreBusy):
                await asyncio.wait_for(other.taken().__aenter__(), 10)
        async with other.taken():
            pass
        async with one.taken():
            pass

    run(story())
    one.close()
    other.close()


def test_a_cancelled_wait_leaves_the_turn_free(run: Run, tmp_path: Path) -> None:
    """A caller that is gone before its turn came does not keep it."""
    one, other, third = turn(tmp_path), turn(tmp_path), turn(tmp_path)

    async def story() -> None:
        async with one.taken():
            waiting = asyncio.create_task(other.taken().__aenter__())
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with asyncio.timeout(10), third.taken():
            pass

    run(story())
    for each in (one, other, third):
        each.close()


def test_where_no_lock_file_can_be_made_the_database_works_all_the_same(
    run: Run, sqlite_url: str, tmp_path: Path
) -> None:
    """The turn is for speed only: a folder in its place changes nothing else."""
    (tmp_path / "etude.db-turn").mkdir()

    async def story() -> int:
        async with await Database.open(sqlite_url) as database, database.transaction() as work:
            rows = await work.connection.exec_driver_sql("SELECT 1")
            return int(rows.scalar_one())

    assert run(story()) == 1
