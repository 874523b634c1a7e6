"""Lessons that come from web are on the gateway's disk before a toy asks for them.

What is assigned is fetched in the background when the news of it arrives, again and again, later
and later, until it is there. A toy that asks before that has its lesson fetched at once, and waits
for it a few seconds: before the clock of its lesson starts, never after.
"""

import asyncio
import contextlib
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

import structlog

from etude.errors import EtudeError

FIRST_PAUSE_S: Final = 2.0
LONGEST_PAUSE_S: Final = 300.0
DEMAND_S: Final = 10.0
"""How long a toy that asks for its lesson waits for it to be fetched."""
HELD_S: Final = 3600.0
"""For so long whoever asked for a lesson may still be about to begin it."""
_AT_ONCE: Final = 2

_log = structlog.get_logger(__name__)

Wanted = TypeVar("Wanted", bound=Hashable)
Had = TypeVar("Had")


class LessonSupply(Generic[Wanted, Had]):
    """See the module. Belongs to one event loop; `close` it there.

    Args:
        make: returns a lesson, fetched if need be; raises what keeps it from that.
        at_hand: returns one that may be played although web may have a newer one, which is then
            fetched for the next time; None = what was made is never another one.
    """

    def __init__(
        self,
        make: Callable[[Wanted], Had],
        at_hand: Callable[[Wanted], Had | None] | None = None,
    ) -> None:
        """Nothing is fetched before it is wanted."""
        self._make = make
        self._at_hand = at_hand
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lessons")
        self._news = asyncio.Event()
        self._trying: dict[Wanted, asyncio.Task[None]] = {}
        self._under_way: dict[Wanted, asyncio.Future[Had | None]] = {}
        self._leaving: dict[Wanted, asyncio.Future[None]] = {}
        self._asked_at_s: dict[Wanted, float] = {}

    def want(self, wanted: Iterable[Wanted]) -> None:
        """Take these for all that is assigned: fetch what is not there, give up the others.

        What could not be had is tried again at once: the link tells everything when web is back.
        """
        now = set(wanted)
        self._news.set()
        self._news = asyncio.Event()
        for one in self._trying.keys() - now:
            self._trying.pop(one).cancel()
        for one in now - self._trying.keys():
            self._trying[one] = asyncio.create_task(self._keep_trying(one))

    async def get(self, wanted: Wanted) -> Had | None:
        """Return a lesson, fetched now if need be; None if it cannot be had in `DEMAND_S`."""
        loop = asyncio.get_running_loop()
        self._asked_at_s[wanted] = loop.time()
        if self._at_hand is not None:
            await self._gone(wanted)
            found = await loop.run_in_executor(self._threads, self._at_hand, wanted)
            if found is not None:
                self._begun(wanted)
                return found
        try:
            async with asyncio.timeout(DEMAND_S):
                return await self._had(wanted)
        except TimeoutError:
            _log.warning("a lesson is not there yet", action="lesson_supply.late")
            return None

    async def let_go(self, unwanted: Wanted, remove: Callable[[], None]) -> bool:
        """Have a lesson removed in a thread, unless it is wanted; return whether it was.

        Whoever asks for it meanwhile waits until it is gone, and has it fetched.

        Raises:
            OSError: the disk does not take it.
        """
        loop = asyncio.get_running_loop()
        for one, at_s in tuple(self._asked_at_s.items()):
            if at_s < loop.time() - HELD_S:
                del self._asked_at_s[one]
        busy = (self._trying, self._under_way, self._leaving, self._asked_at_s)
        if any(unwanted in one for one in busy):
            return False
        leaving = self._leaving[unwanted] = loop.run_in_executor(self._threads, remove)
        leaving.add_done_callback(lambda _: self._leaving.pop(unwanted, None))
        await asyncio.shield(leaving)
        return True

    async def close(self) -> None:
        """Fetch nothing more; what is under way in a thread ends by itself."""
        for task in self._trying.values():
            task.cancel()
        await asyncio.gather(*self._trying.values(), return_exceptions=True)
        self._trying.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _keep_trying(self, wanted: Wanted) -> None:
        pause_s = FIRST_PAUSE_S
        while await self._had(wanted) is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._news.wait()
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _had(self, wanted: Wanted) -> Had | None:
        await self._gone(wanted)
        return await asyncio.shield(self._begun(wanted))

    async def _gone(self, wanted: Wanted) -> None:
        """Wait until what is being removed is gone."""
        leaving = self._leaving.get(wanted)
        if leaving is not None:
            await asyncio.wait({leaving})

    def _begun(self, wanted: Wanted) -> "asyncio.Future[Had | None]":
        """Make a lesson in a thread; whoever asks meanwhile shares the attempt."""
        running = self._under_way.get(wanted)
        if running is None:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._threads, self._attempt, wanted)
            self._under_way[wanted] = running
            running.add_done_callback(lambda _: self._under_way.pop(wanted, None))
        return running

    def _attempt(self, wanted: Wanted) -> Had | None:
        try:
            return self._make(wanted)
        except (EtudeError, OSError) as error:
            code = error.code if isinstance(error, EtudeError) else type(error).__name__
            _log.warning("a lesson is not had", action="lesson_supply.refused", error_code=code)
        except Exception:  # noqa: BLE001 - what comes over the network comes from outside
            _log.exception("a lesson is not had", action="lesson_supply.failed")
        return None
