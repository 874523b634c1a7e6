"""Waits that end. What ends one says what it waited for, and where everything stood by then.

A test that waits for ever takes the whole run with it. So whatever waits for another process, a
thread, a task or a condition does it through here (or with a bound of its own).
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

PATIENCE_S: Final = 120.0
"""Only a failing test waits as long: far below the time that the test itself has."""
_LOOK_S: Final = 0.02
_DYING_S: Final = 5.0
_LAST_CHARACTERS: Final = 20_000

Found = TypeVar("Found")
Result = TypeVar("Result")


class StuckError(Exception):
    """Something did not come in time; the text says what, and what there was instead."""


def until(
    found: Callable[[], Found],
    what: str,
    *,
    limit_s: float = PATIENCE_S,
    told: Callable[[], str] = str,
) -> Found:
    """Return what `found` returns once that is true.

    Args:
        found: asked every 20 ms.
        what: what is waited for.
        limit_s: how long at most.
        told: what else the error says, as the output of a process.

    Raises:
        StuckError: it stays false.
    """
    until_s = time.monotonic() + limit_s
    while not (it := found()):
        if time.monotonic() > until_s:
            raise StuckError(_text(what, limit_s, told()))
        time.sleep(_LOOK_S)
    return it


async def within(work: Awaitable[Result], what: str, *, limit_s: float = PATIENCE_S) -> Result:
    """Await `work` in the calling task, for `limit_s` of real time at most.

    Raises:
        StuckError: it was cancelled, because it took longer; the text has every task's stack.
    """
    stacks: list[str] = []

    def expire() -> None:
        stacks.append(_stacks_of_tasks())
        limit.reschedule(loop.time())

    loop = asyncio.get_running_loop()
    timer = loop.call_later(limit_s, expire)
    try:
        async with asyncio.timeout(None) as limit:
            return await work
    except TimeoutError as error:
        if not stacks:
            raise  # the work's own
        raise StuckError(_text(what, limit_s, stacks[0])) from error
    finally:
        timer.cancel()


def joined(thread: threading.Thread, *, limit_s: float = PATIENCE_S) -> None:
    """Wait for the end of a thread.

    Raises:
        StuckError: it goes on; the text has its stack.
    """
    thread.join(limit_s)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the documented way
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        raise StuckError(_text(f"the end of thread {thread.name}", limit_s, stack))


def ended(
    process: "subprocess.Popen[Any]",
    *,
    limit_s: float = PATIENCE_S,
    told: Callable[[], str] = str,
) -> int:
    """Return the exit code of a process once it has ended by itself.

    Raises:
        StuckError: it has not, and was ended (see `put_down`); the text has what `told` returns.
    """
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        put_down(process)
        what = f"the end of {_command(process.args)}"
        raise StuckError(_text(what, limit_s, told())) from error


def put_down(process: "subprocess.Popen[Any]") -> None:
    """End a process that does not end: SIGABRT, which lets Python write its stacks, then SIGKILL.

    Stacks are written if `PYTHONFAULTHANDLER` was in its environment.
    """
    if process.poll() is not None:
        return
    for number in (signal.SIGCONT, signal.SIGABRT):
        process.send_signal(number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_S)
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_S)


def run_bounded(
    command: "Sequence[str | Path]",
    *,
    limit_s: float = PATIENCE_S,
    check: bool = False,
    env: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - those of `subprocess.run`
) -> "subprocess.CompletedProcess[Any]":
    """Do what `subprocess.run` does, in a session of its own, for `limit_s` at most.

    Nothing of that session is left behind when the command takes longer or the test ends first.

    Raises:
        StuckError: it took longer; the text has what it wrote, its stacks included.
        subprocess.CalledProcessError: `check`, and it failed.
    """
    environment = {**(os.environ if env is None else env), "PYTHONFAULTHANDLER": "1"}
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    given = options.pop("input", None)
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - what a test made
        command, env=environment, start_new_session=True, **options
    ) as process:
        try:
            out, error = process.communicate(given, timeout=limit_s)
        except subprocess.TimeoutExpired as late:
            put_down(process)
            _kill_session(process.pid)
            raise StuckError(_text(_command(command), limit_s, _rest(process))) from late
        except BaseException:
            _kill_session(process.pid)
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, error)
    if check:
        done.check_returncode()
    return done


def _rest(process: "subprocess.Popen[Any]") -> str:
    """Return what it wrote; a pipe that somebody else holds open is not waited for."""
    try:
        parts = process.communicate(timeout=_DYING_S)
    except subprocess.TimeoutExpired as held:
        parts = (held.output, held.stderr)
    return "\n".join(
        part.decode("utf-8", "replace") if isinstance(part, bytes) else part
        for part in parts
        if part
    )


def _kill_session(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _stacks_of_tasks() -> str:
    lines: list[str] = []
    for task in asyncio.all_tasks():
        lines.append(f"Task {task.get_name()}:\n")
        for frame in task.get_stack():
            lines += traceback.format_stack(frame, 1)
    return "".join(lines)


def _command(arguments: object) -> str:
    if isinstance(arguments, str | bytes | Path) or not isinstance(arguments, Sequence):
        return str(arguments)
    return " ".join(map(str, arguments))


def _text(what: str, limit_s: float, told: str) -> str:
    return f"not within {limit_s:.0f} s: {what}\n{told[-_LAST_CHARACTERS:]}"
