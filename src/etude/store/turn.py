"""Whose turn it is to write: how the processes on one SQLite file wait for each other."""

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import AsyncIterator
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
        self._wanted = self._closed = False
        self._taking: asyncio.Future[None] | None = None

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
        self._wanted = True
        try:
            if not self._take_at_once():
                await self._wait()
            yield
        finally:
            self._wanted = False
            self._give()

    def close(self) -> None:
        """Give everything back."""
        self._closed = True
        os.close(self._descriptor)

    def _take_at_once(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    async def _wait(self) -> None:
        taking = self._under_way()
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancellation that comes with the turn.
            async with asyncio.timeout(self._patience_s):
                await asyncio.shield(taking)
        except BaseException as end:
            # The thread may get it yet; then it is for whoever asks meanwhile, or for nobody.
            taking.add_done_callback(lambda _: self._give())
            if isinstance(end, TimeoutError):
                raise StoreBusy(reason="turn") from end
            raise

    def _under_way(self) -> asyncio.Future[None]:
        """Return the wait in a thread: the one that somebody gave up, if it still goes on."""
        loop = asyncio.get_running_loop()
        taking = self._taking
        if taking is None or taking.done() or taking.get_loop() is not loop:
            taking = self._taking = loop.create_future()
            # A daemon: what holds the turn may hold it for ever, and must not keep us from ending.
            threading.Thread(
                target=self._take, args=(loop, taking), name="etude-turn", daemon=True
            ).start()
        return taking

    def _take(self, loop: asyncio.AbstractEventLoop, taking: "asyncio.Future[None]") -> None:
        error: OSError | None = None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as refused:
            error = refused
        try:
            loop.call_soon_threadsafe(_settle, taking, error)
        except RuntimeError:  # the loop has ended, and everybody who could want it
            self._give()

    def _give(self) -> None:
        # Closed, it was given back; the number may be another file's by now.
        if not self._wanted and not self._closed:
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)


def _settle(taking: "asyncio.Future[None]", error: OSError | None) -> None:
    if taking.done():
        return
    if error is None:
        taking.set_result(None)
    else:
        taking.set_exception(error)
