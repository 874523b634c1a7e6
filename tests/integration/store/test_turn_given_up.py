"""A wait for the turn that is given up: the caller goes on at once, and the process can end."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from etude.store.errors import StoreBusy
from etude.store.turn import WriteTurn

END_S = 20.0
Run = Callable[..., Any]

# Waits for the turn of the database named, gives up, and ends.
GIVES_UP = """
import asyncio, sys
from etude.store.errors import StoreBusy
from etude.store.turn import WriteTurn

async def wait() -> None:
    turn = WriteTurn.beside(sys.argv[1], 0.1)
    try:
        async with turn.taken():
            print("taken")
    except StoreBusy:
        print("given up", flush=True)
    turn.close()

asyncio.run(wait())
"""


def turn(folder: Path, patience_s: float = 30.0) -> WriteTurn:
    made = WriteTurn.beside(str(folder / "etude.db"), patience_s)
    assert made is not None
    return made


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the turn as another process would: by an open file of its own."""
    descriptor = os.open(folder / "etude.db-turn", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    descriptor = os.open(folder / "etude.db-turn", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


async def until_free(folder: Path) -> None:
    async with asyncio.timeout(10):
        while not is_free(folder):  # noqa: ASYNC110 - a thread gives it back
            await asyncio.sleep(0.01)


def test_a_process_ends_although_another_keeps_the_turn(tmp_path: Path) -> None:
    """Who gave up waiting ends at once, even if the turn never comes."""
    command = [sys.executable, "-c", GIVES_UP, str(tmp_path / "etude.db")]
    with held(tmp_path), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own interpreter
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "given up\n"
            assert process.wait(END_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("steps", range(6))
def test_a_cancellation_that_comes_with_the_turn_is_not_lost(
    steps: int, run: Run, tmp_path: Path
) -> None:
    """However near the two are: a job that is told to stop, stops, and the turn is free."""
    one = turn(tmp_path)

    async def story() -> None:
        entered = False

        async def enter() -> None:
            nonlocal entered
            async with one.taken():
                entered = True
                await asyncio.sleep(60)

        with held(tmp_path):
            waiting = asyncio.create_task(enter())
            while one._taking is None:  # noqa: ASYNC110 - it is another task that asks
                await asyncio.sleep(0)
        taking = one._taking
        while not taking.done():  # noqa: ASYNC110 - the thread settles it
            await asyncio.sleep(0)
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting}, timeout=10)
        assert waiting.cancelled(), f"entered: {entered}"
        await until_free(tmp_path)

    run(story())
    one.close()


def test_a_wait_that_was_given_up_serves_the_next_one(run: Run, tmp_path: Path) -> None:
    """The turn that comes late is kept by whoever wants it then, and given back after that."""
    one = turn(tmp_path, patience_s=0.05)

    async def story() -> None:
        with held(tmp_path):
            with pytest.raises(StoreBusy):
                await one.taken().__aenter__()
            first = one._taking
            one._patience_s = 10
            entering = one.taken()
            waiting = asyncio.ensure_future(entering.__aenter__())
            await asyncio.sleep(0.05)
            assert one._taking is first
        await waiting
        assert not is_free(tmp_path)
        await entering.__aexit__(None, None, None)
        await until_free(tmp_path)

    run(story())
    one.close()


def test_a_turn_that_comes_after_the_end_touches_no_other_file(run: Run, tmp_path: Path) -> None:
    """The descriptor's number may be another file's by then, with a lock of its own."""
    one = turn(tmp_path, patience_s=0.05)

    async def story() -> int:
        with held(tmp_path):
            with pytest.raises(StoreBusy):
                await one.taken().__aenter__()
            late = one._taking
            assert late is not None
            number = one._descriptor
            one.close()
            other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
            if other != number:
                os.dup2(other, number)
                os.close(other)
            fcntl.flock(number, fcntl.LOCK_EX)
        async with asyncio.timeout(10):
            await late
        await asyncio.sleep(0.01)
        return number

    number = run(story())
    probe = os.open(tmp_path / "other", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(probe)
    os.close(number)
