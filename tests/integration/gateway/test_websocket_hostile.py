"""What no device should send: each ends at most its own connection, and none another's."""

import asyncio
import contextlib
import json
import os
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from etude.gateway.bounds import ConnectionRules
from etude.gateway.ports import CloseReason
from etude.testing.device_port import DevicePort, run_port, said, until
from etude.testing.memory_wire import plain_clip


async def drained(toy: Any) -> int | None:
    """Return the code with which the server ended a connection."""
    async with asyncio.timeout(30):
        try:
            while True:
                await toy.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x83\x80abcd", CloseReason.MALFORMED),  # a reserved opcode
        (b"\x81\x03abc", CloseReason.MALFORMED),  # not masked
        (b"\xf1\x80abcd", CloseReason.MALFORMED),  # reserved bits
        (b"\x89\xfe\x01\x00abcd" + bytes(256), CloseReason.MALFORMED),  # a long control frame
        (b"\x80\x80abcd", CloseReason.MALFORMED),  # a continuation of nothing
        (b"\x81\x81\x00\x00\x00\x00\xff", CloseReason.MALFORMED),  # no UTF-8
        (b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffabcd", CloseReason.TOO_LARGE),
    ],
)
def test_a_broken_frame_ends_its_own_connection(raw: bytes, reason: CloseReason) -> None:
    """With a reason; the neighbour's goes on."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as neighbour, port.device("bb") as toy:
            toy.transport.write(raw)
            await drained(toy)
            practice = port.practice("bb")
            await until(lambda: practice.names()[-1] == "closed")
            assert practice.heard[-1] == ("closed", reason)
            await neighbour.send(json.dumps({"type": "abort"}))
            await said(neighbour, "tts")

    run_port(body)


def test_a_message_of_a_mebibyte_is_too_large() -> None:
    """1009, whole or in fragments; nothing of it reaches practice."""

    async def body(port: DevicePort) -> None:
        for fragmented in (False, True):
            async with port.device("aa") as toy:
                message = bytes(1_048_576)
                with contextlib.suppress(ConnectionClosed):
                    await toy.send([message[:65_536]] * 16 if fragmented else message)
                assert await drained(toy) in {1009, None}
                practice = port.practice("aa")
                await until(lambda now=practice: now.names()[-1] == "closed")
                assert practice.heard[-1] == ("closed", CloseReason.TOO_LARGE)
                assert "audio" not in practice.names()

    run_port(body)


def test_firmwares_longest_message_is_taken() -> None:
    """65,535 bytes, in fragments too."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as toy:
            text = json.dumps({"type": "listen", "state": "detect", "text": "x" * 65_000})
            await toy.send(text)
            await toy.send([text[:100], text[100:30_000], text[30_000:]])
            practice = port.practice("aa")
            await until(lambda: practice.names().count("detected") == 2)

    run_port(body)


@pytest.mark.parametrize(("frame_ms", "size"), [(20, 40), (40, 80), (60, 120), (120, 240)])
def test_packets_of_every_length_arrive_as_they_are(frame_ms: int, size: int) -> None:
    """Nothing is assumed of what a packet lasts; one byte of silence is a packet, none is none."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa", hello=False) as toy:
            params = {"sample_rate": 16_000, "channels": 1, "frame_duration": frame_ms}
            await toy.send(json.dumps({"type": "hello", "audio_params": params}))
            packets = [os.urandom(size), b"\x00", os.urandom(size), b"", b"\x08"]
            for packet in packets:
                await toy.send(packet)
            await until(lambda: len(port.practices) == 1)
            practice = port.practices[0]
            await until(lambda: practice.names().count("audio") == 4)
            heard = [event[1] for event in practice.heard if event[0] == "audio"]
            assert heard == [packet for packet in packets if packet]

    run_port(body)


def test_unescaped_quotes_cost_nothing() -> None:
    """Firmware glues the wake word in as it is; the next message counts."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as toy:
            await toy.send('{"session_id":"","type":"listen","state":"detect","text":"say "hi""}')
            await toy.send(json.dumps({"type": "listen", "state": "start", "mode": "auto"}))
            practice = port.practice("aa")
            await until(lambda: practice.names()[-1] == "listen_started")

    run_port(body)


def test_a_flood_ends_its_own_connection() -> None:
    """While a neighbour's clip keeps its pace."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as neighbour, port.device("bb") as toy:
            ends: list[Any] = []
            port.practice("aa").device.play(plain_clip(5), ends.append)
            frame = Frame(Opcode.BINARY, b"voice").serialize(mask=True)
            toy.transport.write(frame * 3_000)
            practice = port.practice("bb")
            await until(lambda: practice.names()[-1] == "closed")
            assert practice.heard[-1] == ("closed", CloseReason.FLOOD)
            await until(lambda: bool(ends))
            assert (await said(neighbour, "tts"))["state"] == "start"

    run_port(body)


def test_a_storm_of_aborts_is_answered() -> None:
    """A hundred, a clip started before each: each has its `tts stop`, and no frame follows."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as toy:
            practice = port.practice("aa")
            ends: list[Any] = []
            for _ in range(100):
                practice.device.play(plain_clip(50), ends.append)
                await toy.send(json.dumps({"type": "abort"}))
                await said(toy, "tts")
            await until(lambda: len(ends) == 100)
            await until(lambda: practice.names().count("aborted") == 100)
            last: Any = None
            try:
                async with asyncio.timeout(0.5):
                    while True:
                        last = await toy.recv()
            except TimeoutError:
                pass
            assert last is not None
            assert json.loads(last)["state"] == "stop"

    run_port(body)


def test_a_client_that_does_not_read_is_cut() -> None:
    """Its buffer is bounded, the kernel's included; the neighbour hears every frame."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa") as neighbour, port.device("bb") as deaf:
            deaf.transport.pause_reading()
            practice = port.practice("bb")
            big = "x" * 900
            for _ in range(20_000):
                practice.device.show(big)
                if practice.names()[-1] == "closed":
                    break
                await asyncio.sleep(0)
            assert practice.heard[-1] == ("closed", CloseReason.SLOW)
            await neighbour.send(json.dumps({"type": "abort"}))
            await said(neighbour, "tts")
            deaf.transport.abort()

    run_port(body, ConnectionRules(unsent_bytes=16_384))


def test_a_socket_that_never_says_hello_is_closed() -> None:
    """And frees its place."""

    async def body(port: DevicePort) -> None:
        async with port.device("aa", hello=False) as toy:
            assert await drained(toy) == 1008
            await until(lambda: len(port.server.connections) == 0)
            assert port.practices == []

    run_port(body, ConnectionRules(hello_s=0.2))


def test_half_a_handshake_holds_nothing() -> None:
    """Bytes that are no request, a request that ends nowhere, a socket that says nothing."""

    async def body(port: DevicePort) -> None:
        for sent in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\nHost", b""):
            _, writer = await asyncio.open_connection("127.0.0.1", port.server.port)
            writer.write(sent)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        async with port.device("aa"):
            assert len(port.server.connections) == 1

    run_port(body)
