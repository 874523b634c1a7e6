"""Work in a thread that can be stopped: told to, and waited for, so that it writes no more."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class StoppedError(Exception):
    """Nobody wants the result any more."""


async def stoppable(work: Callable[[threading.Event], Result]) -> Result:
    """Do work in a thread; when cancelled, tell it and wait for its end: it writes no more."""
    stop = threading.Event()
    doing = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # looked at, so that nobody complains that it was not
        raise
