"""Keep the processes of an installation running: start, restart with growing pauses, stop together.

A child that ends by itself is started again after 0.5, 1, 2, 4 … at most 30 s; a minute of running
clears the count. A child that cannot run as it was asked to (exit code 2), or that failed ten times
in a row, ends the whole: a service manager should see it.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import structlog

from etude.cli import exits
from etude.errors import UnavailableError

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
STEADY_AFTER_S: Final = 60.0
MOST_FAILURES: Final = 10
GRACE_S: Final = 15.0  # longer than the 10 s that web gives its requests

log = structlog.get_logger("etude.serve")


class ChildFailedError(UnavailableError):
    """A process ended again and again soon after its start; its own lines say why."""

    code = "CHILD_FAILED"


@dataclass(frozen=True, kw_only=True)
class Child:
    """A process to keep running."""

    name: str
    arguments: tuple[str, ...]
    """What follows `python -m etude`; `--lifeline FD` is added."""
    pass_fds: tuple[int, ...] = ()


@dataclass(kw_only=True)
class Restarts:
    """How often a child has failed in a row, and how long to wait before the next start."""

    failures: int = 0

    def ended(self, exit_code: int, ran_s: float) -> float | None:
        """Count one end; return the pause in seconds before the next start, None to give up."""
        self.failures = 1 if ran_s >= STEADY_AFTER_S else self.failures + 1
        if exit_code == exits.USAGE or self.failures >= MOST_FAILURES:
            return None
        return float(min(FIRST_PAUSE_S * 2 ** (self.failures - 1), LONGEST_PAUSE_S))


@dataclass(kw_only=True)
class Supervisor:
    """Runs its children until SIGTERM or SIGINT, or until one of them cannot be kept running."""

    children: Sequence[Child]
    on_stop: Callable[[], None] = lambda: None
    """Called first when stopping (closes the listening socket, so that nobody new queues)."""
    command: tuple[str, ...] = (sys.executable, "-m", "etude")
    grace_s: float = GRACE_S
    _running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Return once everything has stopped because it was asked to.

        Raises:
            ChildFailedError: a child could not be kept running; the others were stopped.
        """
        with _lifeline() as lifeline, self._signals():
            keepers = [
                asyncio.create_task(self._keep(child, lifeline), name=child.name)
                for child in self.children
            ]
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait([*keepers, stopping], return_when=asyncio.FIRST_COMPLETED)
            await self._stop()
            stopping.cancel()
            failures = await asyncio.gather(*keepers, return_exceptions=True)
        for failure in failures:
            if isinstance(failure, BaseException):
                raise failure

    async def _keep(self, child: Child, lifeline: int) -> None:
        restarts = Restarts()
        while not self._stopping.is_set():
            started = monotonic()
            exit_code = await self._run_once(child, lifeline)
            if self._stopping.is_set():
                return
            pause_s = restarts.ended(exit_code, monotonic() - started)
            log.error(
                "process ended",
                action="serve.child_ended",
                child=child.name,
                exit_code=exit_code,
                failures=restarts.failures,
                restart_after_s=pause_s,
            )
            if pause_s is None:
                raise ChildFailedError(name=child.name, times=restarts.failures)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def _run_once(self, child: Child, lifeline: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *self.command,
            *child.arguments,
            "--lifeline",
            str(lifeline),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(lifeline, *child.pass_fds),
            process_group=0,  # Ctrl-C reaches the supervisor alone, which passes it on in order
        )
        self._running[child.name] = process
        log.info(
            "process started", action="serve.child_started", child=child.name, child_pid=process.pid
        )
        if self._stopping.is_set():
            # The order to stop came while it was being started. It has begun nothing that could be
            # ended in order, and may not hear another signal: nobody counts its grace any more.
            process.kill()
        try:
            return await process.wait()
        finally:
            del self._running[child.name]

    async def _stop(self) -> None:
        self._stopping.set()
        self.on_stop()
        self._tell(signal.SIGTERM)
        ends = [asyncio.create_task(child.wait()) for child in self._running.values()]
        if ends:
            await asyncio.wait(ends, timeout=self.grace_s)
        for name in self._running:
            log.error("process killed", action="serve.child_killed", child=name)
        self._tell(signal.SIGKILL)
        log.info("stopped", action="serve.stopped")

    def _tell(self, number: signal.Signals) -> None:
        for process in list(self._running.values()):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """Open the pipe whose reading end the children watch (`etude.cli.lifeline`)."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)
