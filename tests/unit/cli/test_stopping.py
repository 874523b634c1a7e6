"""The order to stop is carried out, whatever a part of the process does about it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from structlog.testing import capture_logs

from etude.cli import stopping, worker
from etude.cli.supervisor import Child, Supervisor
from etude.jobs import Runner
from etude.speech.pool import SpeechPool

Run = Callable[[Coroutine[Any, Any, Any]], Any]
END_S = 60.0

# A process as `worker` and `gateway` are: one of its threads never ends.
STUCK = """
import asyncio, sys, threading
from etude.cli import lifeline, stopping

stopping.STOP_WITHIN_S = stopping.SUPERVISED_S = 600.0
if len(sys.argv) > 1:
    stopping.SUPERVISED_S = 1.0
    lifeline.watch(int(sys.argv[1]))
else:
    stopping.STOP_WITHIN_S = 1.0

def wait_for_ever() -> None:
    threading.Event().wait()

async def main() -> None:
    asked = stopping.stop_signal()
    asyncio.get_running_loop().run_in_executor(None, wait_for_ever)
    print("ready", flush=True)
    await asked.wait()
    print("stopping", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("supervised", [False, True])
def test_a_process_with_a_thread_that_never_ends_ends_all_the_same(*, supervised: bool) -> None:
    """After its own time, or a child's shorter one: exit code 1, and stderr names the place."""
    reading, writing = os.pipe()
    command = [sys.executable, "-c", STUCK, *([str(reading)] if supervised else [])]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=(reading,)
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.terminate()
            assert process.stdout.readline() == "stopping\n"
            _, said = process.communicate(timeout=END_S)
        finally:
            process.kill()
            os.close(reading)
            os.close(writing)
    assert process.returncode == 1
    assert "wait_for_ever" in said


# A process that is asked to stop where Python drops `KeyboardInterrupt`: in a finaliser.
LOADING = """
import signal, sys, time
from etude.cli import serve

signal.signal(signal.SIGINT, signal.default_int_handler)
serve.require_folder = lambda _: None
serve._start("worker")

class Dropped:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(60)

Dropped()
print("lost", flush=True)
"""


def test_ctrl_c_while_a_process_loads_is_not_lost() -> None:
    """It has begun nothing yet, so it ends at once, wherever Python stands."""
    command = [sys.executable, "-c", LOADING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own interpreter
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=END_S)
        finally:
            process.kill()
    assert (process.returncode, said) == (-signal.SIGINT, "")


def test_a_second_order_gives_no_more_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time runs from the first signal."""
    begun: list[bool] = []
    monkeypatch.setattr(stopping, "bound_the_end", lambda: begun.append(True))

    async def story() -> None:
        asked = stopping.stop_signal()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
            async with asyncio.timeout(END_S):
                await asked.wait()
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    run(story())
    assert begun == [True]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_task_that_loses_a_cancellation_gets_another(
    lost: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `asyncio.wait_for` in a library may lose it before Python 3.12."""
    monkeypatch.setattr(stopping, "CANCEL_AGAIN_S", 0.05)

    async def story() -> bool:
        task = asyncio.create_task(_deaf(lost))
        await asyncio.sleep(0)
        async with asyncio.timeout(END_S):
            await stopping.end(task)
        return task.cancelled()

    assert run(story())


def test_a_task_that_never_ends_is_left_and_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything behind it is stopped in order; the bound of the process ends it."""
    monkeypatch.setattr(stopping, "CANCEL_AGAIN_S", 0.05)

    async def story() -> None:
        task = asyncio.create_task(_deaf(2), name="deaf")
        await asyncio.sleep(0)
        async with asyncio.timeout(END_S):
            await stopping.end(task)
        assert not task.done()
        await stopping.end(task)

    with capture_logs() as logs:
        run(story())
    assert [line["task"] for line in logs] == ["deaf"]


async def _deaf(times: int) -> None:
    for _ in range(times):
        try:
            await asyncio.sleep(END_S)
        except asyncio.CancelledError:
            continue
    await asyncio.sleep(END_S)


def test_a_task_that_fails_while_it_ends_stops_nobody(run: Run) -> None:
    """Its error is not raised where others are to be stopped after it."""

    async def broken() -> None:
        try:
            await asyncio.sleep(END_S)
        finally:
            raise ZeroDivisionError

    async def story() -> None:
        task = asyncio.create_task(broken())
        await asyncio.sleep(0)
        await stopping.end(task)
        assert task.done()

    run(story())


def test_what_is_done_aside_raises_where_it_is_waited_for(run: Run) -> None:
    """As if it had been done there."""

    def fails() -> None:
        raise ZeroDivisionError

    async def story() -> None:
        with pytest.raises(ZeroDivisionError):
            await stopping.aside(fails)

    run(story())


class _Engines(SpeechPool):
    """A pool whose closing ends what waits for it."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class _Waiting(Runner):
    """A runner with a job in a thread that waits for an engine."""

    def __init__(self, engines: _Engines) -> None:
        self._engines = engines
        self.stopped = False

    async def stop(self, grace_s: float = 10.0) -> None:
        await asyncio.to_thread(self._engines.closed.wait, grace_s + END_S)
        self.stopped = self._engines.closed.is_set()


def test_jobs_that_wait_for_an_engine_hold_up_no_worker(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace the engines are closed, even where every thread of the loop waits for one."""
    monkeypatch.setattr(worker, "PUT_BACK_S", 0.05)
    engines = _Engines()

    async def story() -> list[bool]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        runners = [_Waiting(engines), _Waiting(engines)]
        async with asyncio.timeout(END_S / 2):
            await worker.stop_all(runners, engines, grace_s=0.05)
        return [runner.stopped for runner in runners]

    began = time.monotonic()
    assert run(story()) == [True, True]
    assert time.monotonic() - began < END_S / 2


# A child that hears no SIGTERM, as one that was started with it ignored.
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def test_a_child_that_starts_after_the_order_is_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order came while it was being started: nobody tells it again, so it is ended hard."""
    real = asyncio.create_subprocess_exec
    started: list[asyncio.subprocess.Process] = []
    release = asyncio.Event()

    async def slow(*_: Any, **others: Any) -> asyncio.subprocess.Process:
        await release.wait()
        others["pass_fds"] = ()
        process = await real(
            sys.executable, "-c", DEAF + "\n", stdout=asyncio.subprocess.DEVNULL, **others
        )
        await asyncio.sleep(1)  # until it is deaf
        started.append(process)
        return process

    async def story() -> None:
        supervisor = Supervisor(children=(Child(name="late", arguments=()),), grace_s=0.1)
        running = asyncio.create_task(supervisor.run())
        await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.2)
        release.set()
        try:
            async with asyncio.timeout(20):
                await running
            assert started[0].returncode == -signal.SIGKILL
        finally:
            if started[0].returncode is None:
                started[0].kill()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    run(story())
