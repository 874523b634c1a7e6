"""An event loop whose clock jumps: an hour of practice passes in the time its work takes.

While a callback is ready or a socket has something, time stands still; when all that is left is to
wait, the clock jumps to the next timer. What runs in the loop's executor holds the clock, too. So
latencies are those of the design, not those of a busy machine, and a test needs no wall-clock
bound. Everything that waits must be in the loop: peers in the same process, their sockets included.

>>> run(lambda: asyncio.sleep(3600))
"""

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

STILL_S: Final = 120.0
"""How long the loop may stand still, in real time. Only a failing test stands still as long."""
_GRACE_S: Final = 0.001  # real time for bytes on the loopback to arrive before the clock jumps
_HELD_S: Final = 0.05  # how often a held clock is looked at again


class StandstillError(Exception):
    """Everything in the loop waits for what does not come; the text says for how long."""


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for descriptors only as long as bytes may be on their way, then jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.holders = 0
        self._held_since_s: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # Nothing can come but from another thread, or never.
            found = super().select(STILL_S)
            if not found:
                message = f"nothing is due, and nothing came within {STILL_S:.0f} s of real time"
                raise StandstillError(message)
            return found
        if timeout <= 0:
            return super().select(timeout)
        found = super().select(_HELD_S if self.holders else _GRACE_S)
        if found or not self.holders:
            self._held_since_s = None
        if not found and not self.holders:
            self.now_s += timeout
        elif not found:
            self._still_held()
        return found

    def _still_held(self) -> None:
        now_s = time.monotonic()
        if self._held_since_s is None:
            self._held_since_s = now_s
        elif now_s - self._held_since_s > STILL_S:
            message = f"the clock was held for {STILL_S:.0f} s of real time"
            raise StandstillError(message)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A selector loop with its own time, which starts at 1000 s."""

    def __init__(self) -> None:
        """Make it; for `asyncio.Runner(loop_factory=VirtualTimeLoop)`."""
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds."""
        return self._jumping.now_s

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Let no time pass while the block waits for something outside the loop."""
        self._jumping.holders += 1
        try:
            yield
        finally:
            self._jumping.holders -= 1

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[*_Arguments], _Result],
        *args: *_Arguments,
    ) -> "asyncio.Future[_Result]":
        """Run it in a thread; the clock stands still until it is done."""
        running: Any = super().run_in_executor(executor, func, *args)
        self._jumping.holders += 1
        running.add_done_callback(self._let_go)
        return running  # type: ignore[no-any-return] # the same future

    def _let_go(self, _: object) -> None:
        self._jumping.holders -= 1


def run(play: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run what `play` makes in a loop of its own, to its end."""

    async def body() -> _Result:
        return await play()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(body())


class LoopClock:
    """A `Clock` that goes with an event loop's time, virtual or not."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        start: datetime = datetime(2026, 3, 1, 9, 0, tzinfo=UTC),
    ) -> None:
        """Say `start` (aware) now, and later what has passed in the loop since."""
        self._loop = loop
        self._start = start
        self._zero_s = loop.time()

    def now(self) -> datetime:
        """Wall-clock time."""
        return self._start + timedelta(seconds=self._loop.time() - self._zero_s)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._loop.time()
