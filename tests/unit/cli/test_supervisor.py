"""The supervisor: restarts, gives up, stops together, and never leaves a child behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.supervisor import (
    LONGEST_PAUSE_S,
    MOST_FAILURES,
    STEADY_AFTER_S,
    Child,
    ChildFailedError,
    Restarts,
    Supervisor,
)
from etude.testing.waiting import within

DEADLINE_S = 60.0
Run = Callable[[Coroutine[Any, Any, Any]], Any]

# A child: notes its process id, then does what it is told; the lifeline is as in the product.
CHILD = """
import os, signal, sys, time
from pathlib import Path
from etude.cli import lifeline
folder, name, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
lifeline.watch(int(sys.argv[sys.argv.index("--lifeline") + 1]))
if what == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder / f"{name}.{os.getpid()}").touch()
if what.startswith("exit"):
    sys.exit(int(what[4:]))
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "child.py"
    path.write_text(CHILD)
    return path


def child(folder: Path, name: str, what: str = "run") -> Child:
    return Child(name=name, arguments=(str(folder), name, what))


def pids(folder: Path, name: str) -> list[int]:
    return [int(path.suffix[1:]) for path in folder.glob(f"{name}.[0-9]*")]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - it depends on other processes
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_pauses_grow_and_end() -> None:
    """0.5, 1, 2 … at most 30 s; a minute of running starts anew; ten failures in a row end it."""
    restarts = Restarts()
    pauses = [restarts.ended(1, ran_s=0.1) for _ in range(MOST_FAILURES)]
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(pause for pause in pauses if pause is not None) == LONGEST_PAUSE_S
    assert pauses[-1] is None
    restarts = Restarts(failures=MOST_FAILURES - 1)
    assert restarts.ended(-9, ran_s=STEADY_AFTER_S) == 0.5


def test_a_wrong_setting_is_not_tried_again() -> None:
    """Exit code 2 means that the next start would fail in the same way."""
    assert Restarts().ended(exits.USAGE, ran_s=0.1) is None


def test_a_killed_child_is_started_again(run: Run, tmp_path: Path, program: Path) -> None:
    """`kill -9` of one child: a new one with another process id; its sibling is left alone."""

    async def watch() -> None:
        supervisor = Supervisor(
            children=(child(tmp_path, "a"), child(tmp_path, "b")),
            command=(sys.executable, str(program)),
        )
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(pids(tmp_path, "a")) == 1 and len(pids(tmp_path, "b")) == 1)
        (first,) = pids(tmp_path, "a")
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(pids(tmp_path, "a")) == 2)
        assert len(pids(tmp_path, "b")) == 1
        os.kill(os.getpid(), signal.SIGTERM)
        await within(running, "the end of the supervisor", limit_s=DEADLINE_S)
        assert [pid for name in "ab" for pid in pids(tmp_path, name) if alive(pid)] == []

    run(watch())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_passed_on(
    number: signal.Signals, run: Run, tmp_path: Path, program: Path
) -> None:
    """SIGTERM and SIGINT: first the door is closed, then every child is told, then it returns."""

    async def watch() -> None:
        closed: list[bool] = []
        supervisor = Supervisor(
            children=(child(tmp_path, "a"), child(tmp_path, "b")),
            command=(sys.executable, str(program)),
            on_stop=lambda: closed.append(all(alive(pid) for pid in pids(tmp_path, "a"))),
        )
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(pids(tmp_path, "a")) == 1 and len(pids(tmp_path, "b")) == 1)
        os.kill(os.getpid(), number)
        await within(running, "the end of the supervisor", limit_s=DEADLINE_S)
        assert closed == [True]
        assert [pid for name in "ab" for pid in pids(tmp_path, name) if alive(pid)] == []

    run(watch())


def test_a_child_that_does_not_stop_is_killed(run: Run, tmp_path: Path, program: Path) -> None:
    """After the grace, SIGKILL."""

    async def watch() -> None:
        supervisor = Supervisor(
            children=(child(tmp_path, "a", "deaf"),),
            command=(sys.executable, str(program)),
            grace_s=0.2,
        )
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(pids(tmp_path, "a")) == 1)
        os.kill(os.getpid(), signal.SIGTERM)
        await within(running, "the end of the supervisor", limit_s=DEADLINE_S)
        assert not alive(pids(tmp_path, "a")[0])

    run(watch())


def test_a_child_that_cannot_run_ends_the_whole(run: Run, tmp_path: Path, program: Path) -> None:
    """Giving one up stops the others, and the error names it."""

    async def watch() -> None:
        supervisor = Supervisor(
            children=(child(tmp_path, "a", "exit2"), child(tmp_path, "b")),
            command=(sys.executable, str(program)),
        )
        with pytest.raises(ChildFailedError) as raised:
            await within(supervisor.run(), "the end of the supervisor", limit_s=DEADLINE_S)
        assert raised.value.params == {"name": "a", "times": 1}
        assert [pid for pid in pids(tmp_path, "b") if alive(pid)] == []

    run(watch())


def test_children_end_with_a_killed_supervisor(tmp_path: Path, program: Path) -> None:
    """`kill -9` of the supervisor: nothing of it is left behind."""
    script = tmp_path / "supervisor.py"
    arguments = json.dumps([str(tmp_path), sys.executable, str(program)])
    script.write_text(f"""
import asyncio, sys
from etude.cli.supervisor import Child, Supervisor
folder, *command = {arguments}
children = tuple(Child(name=n, arguments=(folder, n, "run")) for n in "ab")
asyncio.run(Supervisor(children=children, command=tuple(command)).run())
""")
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as supervisor:  # noqa: S603 - ours
        deadline = time.monotonic() + DEADLINE_S
        while not (pids(tmp_path, "a") and pids(tmp_path, "b")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        supervisor.kill()
    children = pids(tmp_path, "a") + pids(tmp_path, "b")
    while any(alive(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.01)
