"""Whose turn it is to write: how the processes on one SQLite file wait for each other."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from etude.store.errors import StoreBusy


class WriteTurn:
    """A lock file beside the database, taken around each transaction for writing.

    SQLite's own lock decides; but who waits for it polls with growing pauses, and two busy
    processes then leave the file idle a third of the time. The kernel wakes whoever waits for this
    lock at once. It ends with its process, however that ends. One waits at a time in each process:
    the pool of the one writing connection sees to that.
    """

    def __init__(self, descriptor: int, patience_s: float) -> None:
        """Wrap the open lock file; use `beside`."""
        self._descriptor = descriptor
        self._patience_s = patience_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="etude-turn")

    @classmethod
    def beside(cls, database: str, patience_s: float) -> Self | None:
        """Use `<database>-turn`, waiting at most `patience_s`; None where no file can be made.

        Nothing depends on it but speed: without it SQLite's own lock still decides.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return cls(os.open(f"{database}-turn", flags, 0o600), patience_s)
        except OSError:
            return None

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold the turn; `StoreBusy` if another process keeps it for too long."""
        if not self._take_at_once():
            await self._wait()
        try:
            yield
        finally:
            self._give()

    def close(self) -> None:
        """Give everything back."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        os.close(self._descriptor)

    def _take_at_once(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    async def _wait(self) -> None:
        taking = asyncio.get_running_loop().run_in_executor(
            self._thread, fcntl.flock, self._descriptor, fcntl.LOCK_EX
        )
        try:
            await asyncio.wait_for(asyncio.shield(taking), self._patience_s)
        except BaseException as end:
            # The thread may get it yet; then nobody here wants it any more.
            taking.add_done_callback(lambda _: self._give())
            if isinstance(end, TimeoutError):
                raise StoreBusy(reason="turn") from end
            raise

    def _give(self) -> None:
        with contextlib.suppress(OSError):  # closed meanwhile, which gave it back
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
