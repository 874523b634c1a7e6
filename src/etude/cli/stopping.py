"""The order to stop, for processes that run until they are told to, and that it is carried out.

Each part of a process stops within a time of its own. Where one does not, because of a library, a
disk or a fault of ours, the process ends all the same, and says where it stood: like `kill -9` this
loses nothing that was answered, and a service manager need not wait for its own patience to end.
"""

import asyncio
import contextlib
import faulthandler
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

import structlog

from etude.cli import lifeline

STOP_WITHIN_S: Final = 25.0
"""Less than a service manager's patience (`docs/operations.md`)."""
SUPERVISED_S: Final = lifeline.GRACE_S - 1.0
"""Of a process below `serve`, which kills it a second later: then nobody would know why."""
CANCEL_AGAIN_S: Final = 6.0
"""Longer than any clean-up of a link or a broker takes."""
_CANCEL_TIMES: Final = 2
_STDERR: Final = 2  # the descriptor: what stands for it in Python may be closed by then

log = structlog.get_logger("etude.serve")


def end_at_ctrl_c() -> None:
    """Let SIGINT end this process at once until it has begun something; in the main thread.

    Python would raise `KeyboardInterrupt` wherever it stands, and drops that in a finaliser or a
    callback of the import system: the process would go on to start, and never stop.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; to be called in the loop's thread.

    From the first of them on the process has its time, see `bound_the_end`.
    """
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            bound_the_end()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopping


def bound_the_end(within_s: float | None = None) -> None:
    """End this process hard if it still runs after `within_s`: exit code 1, stacks on stderr.

    None: `SUPERVISED_S` below `serve`, else `STOP_WITHIN_S`.

    The clock is the system's: neither a thread that keeps the interpreter nor one that is waited
    for at its very end holds it up. The stacks name functions and lines, no values.
    """
    if within_s is None:
        within_s = SUPERVISED_S if lifeline.watched() else STOP_WITHIN_S
    faulthandler.dump_traceback_later(within_s, exit=True, file=_STDERR)


async def end(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait until it is over; what it raises is not of interest any more.

    A library that loses the cancellation gets another; a task that outlives that one is left.
    """
    for _ in range(_CANCEL_TIMES):
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)
        if task.done():
            break
    else:
        log.error("a task does not end", action="serve.task_left", task=task.get_name())
        return
    if not task.cancelled():
        task.exception()  # looked at, so that nobody complains that it was not


async def aside(work: Callable[[], None]) -> None:
    """Do `work` in a thread of its own and wait for it.

    For what ends that which other threads wait for: the loop's own may all be among those.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001 - it is raised where it is waited for
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="stopping", daemon=True).start()
    await done
