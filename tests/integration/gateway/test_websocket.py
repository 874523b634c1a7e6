"""The device port over real sockets: who comes in, what is exchanged, how it ends."""

import asyncio
import contextlib
import json
import logging
import socket as sockets
import threading
from pathlib import Path

import pytest
import structlog
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from etude.gateway.errors import DevicePortError
from etude.gateway.handshake import Handshake, Refusal
from etude.gateway.ports import CloseReason, PlaybackEnd
from etude.gateway.websocket import DeviceServer
from etude.testing.clocks import CountingIds
from etude.testing.device_port import DevicePort, run_port, said, until
from etude.testing.memory_wire import NotingPractice, plain_clip
from etude.testing.virtual_time import VirtualTimeLoop
from etude.testing.waiting import within


async def get(port: int, path: str, headers: str = "") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("refusal", [Refusal.UNKNOWN, Refusal.FORBIDDEN, Refusal.NOT_NOW])
def test_who_may_not_come_in_is_refused_before_the_upgrade(refusal: Refusal) -> None:
    """As an HTTP status; no connection, no practice."""

    async def body(port: DevicePort) -> None:
        port.refusal = refusal
        with pytest.raises(InvalidStatus) as caught:
            async with port.device(Authorization="Bearer t"):
                pass
        assert caught.value.response.status_code == refusal
        assert port.seen == [Handshake(device_id="aa:bb", token="t")]
        assert (port.practices, len(port.server.connections)) == ([], 0)

    run_port(body)


def test_an_admission_that_fails_lets_nobody_in() -> None:
    """503: the device comes back later."""

    async def body(port: DevicePort) -> None:
        port.seen = None  # appending to it raises
        with pytest.raises(InvalidStatus) as caught:
            async with port.device():
                pass
        assert caught.value.response.status_code == 503

    run_port(body)


def test_a_device_without_an_id_is_not_asked_for_more() -> None:
    """400, and `admit` is not bothered."""

    async def body(port: DevicePort) -> None:
        with pytest.raises(InvalidStatus) as caught:
            async with connect(f"ws://127.0.0.1:{port.server.port}/", proxy=None):
                pass
        assert (caught.value.response.status_code, port.seen) == (400, [])

    run_port(body)


def test_a_full_house_refuses() -> None:
    """503, while those inside stay."""

    async def body(port: DevicePort) -> None:
        port.server._max_connections = 1
        async with port.device("aa") as inside:
            with pytest.raises(InvalidStatus) as caught:
                async with port.device("bb"):
                    pass
            assert caught.value.response.status_code == 503
            await inside.send(json.dumps({"type": "abort"}))
            await said(inside, "tts")

    run_port(body)


def test_health_is_plain_http() -> None:
    """For a watcher, without a token; nothing else is."""

    async def body(port: DevicePort) -> None:
        async with port.device():
            answer = await get(port.server.port, "/health")
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b'{"status":"ok","devices":1}')
        assert (await get(port.server.port, "/other")).startswith(b"HTTP/1.1 400")
        asked = await get(port.server.port, "/other", "Device-Id: a\r\n")
        assert asked.startswith(b"HTTP/1.1 426")

    run_port(body)


def test_a_conversation() -> None:
    """Hello, listening, sound both ways, the end of a clip."""

    async def body(port: DevicePort) -> None:
        async with port.device(Protocol_Version="3") as toy:
            practice = port.practice("aa:bb")
            await toy.send(json.dumps({"type": "listen", "state": "start", "mode": "auto"}))
            await toy.send(b"\x00\x00\x00\x05voice")
            await until(lambda: practice.names()[-1] == "audio")
            ends: list[PlaybackEnd] = []
            practice.device.play(plain_clip(4), ends.append, "hi")
            got = [await within(toy.recv(), f"message {number} of 7") for number in range(7)]
            assert got[2:6] == [b"\x00\x00\x00\x0bpacket-%04d" % n for n in range(4)]
            assert [json.loads(got[n])["state"] for n in (0, 1, 6)] == [
                "start", "sentence_start", "stop",
            ]  # fmt: skip
            await until(lambda: ends == [PlaybackEnd.COMPLETED])

    run_port(body)


def test_a_device_that_drops_tcp_has_left() -> None:
    """That is how firmware ends: no Close, no error, one reason."""

    async def body(port: DevicePort) -> None:
        async with port.device() as toy:
            toy.transport.abort()
            practice = port.practice("aa:bb")
            await until(lambda: practice.names()[-1] == "closed")
            assert practice.heard[-1] == ("closed", CloseReason.DEVICE_LEFT)
            await until(lambda: len(port.server.connections) == 0)

    run_port(body)


def test_a_device_that_says_goodbye_has_left() -> None:
    """With a Close, as programs do."""

    async def body(port: DevicePort) -> None:
        async with port.device():
            pass
        practice = port.practice("aa:bb")
        await until(lambda: practice.names()[-1] == "closed")
        assert practice.heard[-1] == ("closed", CloseReason.DEVICE_LEFT)

    run_port(body)


def test_a_device_without_power_is_noticed() -> None:
    """TCP stays, no ping is answered: within a minute the connection is over, in a clip or not."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as toy:
            toy.transport.pause_reading()
            practice = port.practice("aa")
            practice.busy = True
            await asyncio.sleep(60)
            assert practice.heard[-1] == ("closed", CloseReason.SILENT)
            assert len(port.server.connections) == 0
            toy.transport.abort()

    run_port(body, loop_factory=VirtualTimeLoop)


def test_a_device_that_answers_pings_stays() -> None:
    """An hour in which nothing else happens but a task."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as toy:
            practice = port.practice("aa")
            practice.busy = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(3600):
                    async for message in toy:
                        assert json.loads(message)["type"] == "llm"
            assert practice.names()[-1] != "closed"

    run_port(body, loop_factory=VirtualTimeLoop)


def test_a_half_open_socket_blocks_no_return() -> None:
    """The device comes back 50 times without ending any of its sockets; one stays."""

    async def body(port: DevicePort) -> None:
        opened = []
        for _ in range(50):
            context = port.device("aa")
            toy = await context.__aenter__()
            toy.transport.pause_reading()  # it answers no Close
            opened.append(toy)
        newest = port.server.connection("aa")
        assert newest is port.practices[-1].device
        reasons = [practice.heard[-1] for practice in port.practices[:-1]]
        assert reasons == [("closed", CloseReason.REPLACED)] * 49
        await until(lambda: len(port.server.connections) == 1)
        assert newest.close_reason is None
        for toy in opened:
            toy.transport.abort()
        await until(lambda: len(port.server.connections) == 0)
        await until(lambda: not port.server._closers)

    run_port(body)


@pytest.mark.parametrize("times", [50, pytest.param(2_000, marks=pytest.mark.soak)])
def test_reconnects_leave_nothing_behind(times: int) -> None:
    """No descriptor, no task, no thread, no connection: every other one just drops TCP."""

    async def body(port: DevicePort) -> None:
        async def visit(number: int) -> None:
            async with port.device("aa") as toy:
                await toy.send(b"voice")
                if number % 2:
                    toy.transport.abort()

        async def held() -> tuple[int, int, int]:
            await until(lambda: len(port.server.connections) == 0)
            await until(lambda: not port.server._closers)
            await asyncio.sleep(0.05)
            return open_descriptors(), len(asyncio.all_tasks()), threading.active_count()

        await visit(0)
        before = await held()
        for number in range(times):
            await visit(number)
        assert await held() == before
        assert {practice.names()[-1] for practice in port.practices} == {"closed"}

    run_port(body)


def test_two_devices_hear_only_their_own() -> None:
    """Sound in both directions, at once; what one does stops nothing of the other."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as one, port.device("bb") as two:
            for toy, word in ((one, b"one"), (two, b"two")):
                for _ in range(20):
                    await toy.send(word)
            mine, other = port.practice("aa"), port.practice("bb")
            mine.device.play(plain_clip(5), lambda _: None)
            ends: list[PlaybackEnd] = []
            other.device.play(plain_clip(8), ends.append)
            await one.send(json.dumps({"type": "abort"}))
            await said(one, "tts")
            one.transport.abort()
            await until(lambda: ends == [PlaybackEnd.COMPLETED])
            await until(lambda: other.names().count("audio") == 20)
            assert {heard[1] for heard in mine.heard if heard[0] == "audio"} == {b"one"}
            assert {heard[1] for heard in other.heard if heard[0] == "audio"} == {b"two"}
            frames = []
            while len(frames) < 8:
                message = await within(two.recv(), f"frame {len(frames)} of 8")
                frames += [message] if isinstance(message, bytes) else []
            assert frames == list(plain_clip(8).packets)

    run_port(body)


def test_stop_closes_everybody() -> None:
    """With a reason, in bounded time, a device that does not answer included."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as polite, port.device("bb") as deaf:
            deaf.transport.pause_reading()
            await port.server.stop()
            assert [practice.heard[-1] for practice in port.practices] == [
                ("closed", CloseReason.STOPPING)
            ] * 2
            with pytest.raises(ConnectionClosed) as caught:
                await within(polite.recv(), "the Close")
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1001
            deaf.transport.abort()
        await port.server.stop()

    run_port(body)


def test_a_port_that_is_taken_is_a_typed_error() -> None:
    """Which names the address."""

    async def body(port: int) -> None:
        server = DeviceServer(
            "127.0.0.1",
            port,
            admit=lambda _: None,
            make_practice=NotingPractice,
            ids=CountingIds(),
        )
        with pytest.raises(DevicePortError) as caught:
            await server.start()
        assert caught.value.params["port"] == port

    with sockets.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(body(taken.getsockname()[1]))


def test_no_token_gets_into_a_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neither from a header nor from the address, at any level."""
    caplog.set_level(logging.DEBUG)

    async def body(port: DevicePort) -> None:
        async with port.device(Authorization="Bearer tell-nobody") as toy:
            await toy.send("{")
            toy.transport.abort()
        port.refusal = Refusal.UNKNOWN
        with pytest.raises(InvalidStatus):
            async with port.device(Authorization="Bearer tell-nobody"):
                pass
        await until(lambda: len(port.server.connections) == 0)

    with structlog.testing.capture_logs() as lines:
        run_port(body)
    ours = [str(record.__dict__) for record in caplog.records if "client" not in record.name]
    assert {line["action"] for line in lines} >= {"device.closed", "device.refused"}
    for words in (*ours, str(lines)):
        assert "tell-nobody" not in words
        assert "secret" not in words
