import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from etude.testing.waiting import StuckError, ended, joined, run_bounded, until, within

# Starts a child that keeps its pipes, says so, and waits, deaf to all but the last signals.
STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
def stands_here():
    time.sleep(600)
stands_here()
"""
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_command_is_run_as_subprocess_does_it() -> None:
    """Output, input, exit code, and `check`."""
    words = [sys.executable, "-c", "print(input()); raise SystemExit(3)"]
    done = run_bounded(words, capture_output=True, text=True, input="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "hello\n", "")
    with pytest.raises(subprocess.CalledProcessError):
        run_bounded(words, capture_output=True, input=b"hello\n", check=True)


def test_a_command_that_hangs_is_ended_with_its_children() -> None:
    """The error has what it wrote and its stack; the child that has its pipe is gone, too."""
    with pytest.raises(StuckError) as stuck:
        run_bounded([sys.executable, "-c", STUBBORN], capture_output=True, text=True, limit_s=5)
    said = str(stuck.value)
    assert "not within 5 s" in said
    assert "in stands_here" in said
    child = re.search(r"^child (\d+)$", said, re.MULTILINE)
    assert child is not None
    until(lambda: not runs(int(child[1])), "the end of the child", limit_s=30)


def test_a_process_that_does_not_end_is_ended() -> None:
    """Even a stopped one; the text has what the caller tells."""
    process = subprocess.Popen(SLEEPS)  # noqa: S603 - our own words
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(StuckError, match="its log"):
        ended(process, limit_s=0.1, told=lambda: "its log")
    assert process.poll() is not None


def test_a_condition_that_stays_false_is_named() -> None:
    """What is true at last is returned; else the error says what was waited for, and what was."""
    looks = iter(["", "", "a bus"])
    assert until(lambda: next(looks), "a bus") == "a bus"
    with pytest.raises(StuckError, match=r"(?s)not within 0 s: a bus.*rain"):
        until(lambda: False, "a bus", limit_s=0.05, told=lambda: "rain")


def test_a_thread_that_goes_on_shows_its_stack() -> None:
    """One that ends is waited for."""
    go_on = threading.Event()

    def holds_on() -> None:
        go_on.wait(60)

    thread = threading.Thread(target=holds_on, daemon=True)
    thread.start()
    with pytest.raises(StuckError, match="in holds_on"):
        joined(thread, limit_s=0.05)
    go_on.set()
    joined(thread)


def test_a_task_that_is_late_is_cancelled_and_all_stacks_are_shown() -> None:
    """A result passes, and so does a time-out of the work's own."""

    async def waits_for_nobody() -> None:
        await asyncio.Event().wait()

    async def late() -> None:
        other = asyncio.create_task(waits_for_nobody())
        with pytest.raises(StuckError, match=r"(?s)not within 0 s: a word.*waits_for_nobody"):
            await within(asyncio.sleep(60), "a word", limit_s=0.05)
        other.cancel()

    async def own() -> int:
        with pytest.raises(TimeoutError):
            await within(asyncio.wait_for(asyncio.sleep(60), 0.01), "a word")
        return await within(asyncio.sleep(0, 7), "a number")

    began_s = time.monotonic()
    asyncio.run(late())
    assert asyncio.run(own()) == 7
    assert time.monotonic() - began_s < 30
