"""The order to stop, for processes that run until they are told to."""

import asyncio
import signal


def stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; to be called in the loop's thread."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping
