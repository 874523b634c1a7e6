import asyncio
import threading
import time

import pytest

from etude.testing import virtual_time
from etude.testing.virtual_time import LoopClock, StandstillError, VirtualTimeLoop


def test_an_hour_passes_at_once() -> None:
    """Waiting takes no real time, and the loop's clock and the wall clock agree on how long."""

    async def wait() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        began, wall = loop.time(), clock.now()
        await asyncio.sleep(3600)
        return loop.time() - began, (clock.now() - wall).total_seconds()

    real = time.monotonic()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        passed, wall_passed = runner.run(wait())
    assert 3600 <= passed < 3600.001
    assert abs(passed - wall_passed) < 0.001
    assert time.monotonic() - real < 1000


def test_timers_fire_in_order_at_their_time() -> None:
    """Each timer sees exactly the time it was due at."""

    async def run() -> list[float]:
        loop = asyncio.get_running_loop()
        began, seen = loop.time(), []
        for due in (3.0, 1.0, 2.0):
            loop.call_at(began + due, lambda: seen.append(loop.time() - began))
        await asyncio.sleep(5)
        return seen

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert [round(at, 6) for at in runner.run(run())] == [1.0, 2.0, 3.0]


def test_a_thread_holds_the_clock() -> None:
    """While the executor works, no timer fires, however soon it is due."""
    release = threading.Event()

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        threading.Timer(0.2, release.set).start()
        await asyncio.to_thread(release.wait)
        return loop.time() - began

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(run()) < 0.001


def test_sockets_are_served_before_the_clock_jumps() -> None:
    """Two peers over the loopback exchange a thousand messages while a long timer waits."""

    async def run() -> float:
        loop = asyncio.get_running_loop()

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        began = loop.time()
        timer = loop.call_later(60, lambda: None)
        for _ in range(1000):
            writer.write(b"one\n")
            await reader.readline()
        passed = loop.time() - began
        timer.cancel()
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return passed

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(run()) < 61


def test_a_held_clock_stands_still() -> None:
    """What waits for something outside the loop keeps time from passing."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        began = loop.time()
        ready = asyncio.Event()
        threading.Timer(0.1, loop.call_soon_threadsafe, [ready.set]).start()
        with loop.holding():
            timer = loop.call_later(0.01, lambda: None)
            await ready.wait()
            timer.cancel()
        return loop.time() - began

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(run()) < 0.001


@pytest.mark.parametrize("held", [False, True])
def test_a_loop_in_which_nothing_can_come_ends(
    monkeypatch: pytest.MonkeyPatch, *, held: bool
) -> None:
    """Without a timer, or with a clock that is held for ever: an error, not a hang."""
    monkeypatch.setattr(virtual_time, "STILL_S", 0.2)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        with loop.holding():
            if held:
                await asyncio.sleep(60)
            await asyncio.Event().wait()

    with (
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
        pytest.raises(StandstillError, match="of real time"),
    ):
        runner.run(run())
