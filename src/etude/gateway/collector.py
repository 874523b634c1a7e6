"""Python's collector of cycles, kept from stopping the clock.

A full collection looks at every object: with 500 devices connected that takes over 100 ms, in which
no step is made and no frame is sent. Young objects are still collected as they come, a few
thousand at a time. The full collections are run from here: when nobody practises, or after ten
minutes at the latest, so that what closed connections leave behind cannot gather without bound.
"""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Final

LOOK_S: Final = 30.0
LATEST_S: Final = 600.0

_YOUNG: Final = 1_000
_MIDDLE: Final = 5
_NEVER: Final = 1_000_000_000


@contextlib.contextmanager
def collecting_calmly(busy: Callable[[], bool]) -> Iterator[None]:
    """Run the full collections of this process from here while the block runs, in a loop.

    What is there already (modules, settings, prompts) is not looked at again until the end.

    Args:
        busy: whether anybody practises now.
    """
    loop = asyncio.get_running_loop()
    before = gc.get_threshold()
    collected_s = loop.time()
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal timer, collected_s
        if not busy() or loop.time() - collected_s >= LATEST_S:
            gc.collect()
            collected_s = loop.time()
        timer = loop.call_later(LOOK_S, look)

    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    timer = loop.call_later(LOOK_S, look)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        gc.set_threshold(*before)
        gc.unfreeze()
