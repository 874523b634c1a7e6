"""A device that is not ours: `xiaozhi-sdk` as it is on PyPI, against the device port.

It connects by address (no OTA), offers compression, listens in full duplex at once, answers nothing
to a tool that it does not have, and needs `vision` in `initialize` and every field of the hello.
"""

import asyncio
import math
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from etude.gateway.ports import Device, ListenMode, PlaybackEnd, SkillEnd, SkillEvent, ToolFailure
from etude.gateway.websocket import DeviceServer
from etude.speech.clips import EncodedClip
from etude.speech.opus import OpusDecoder, OpusEncoder
from etude.testing.clocks import CountingIds
from etude.testing.memory_wire import NotingPractice

PATIENCE_S = 30.0
DEVICE = "00:11:22:33:44:55"


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client class; its own old dependencies warn at import, which is not ours to mend."""
    monkeypatch.setenv("NO_PROXY", "*")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xiaozhi_sdk  # noqa: PLC0415 - its dependencies must not warn while tests are gathered

    return xiaozhi_sdk.XiaoZhiWebsocket


def tone(sample_rate: int, length_ms: int) -> bytes:
    count = sample_rate * length_ms // 1000
    return b"".join(
        struct.pack("<h", round(8000 * math.sin(2 * math.pi * 440 * n / sample_rate)))
        for n in range(count)
    )


def encoded(frames: int) -> EncodedClip:
    encoder = OpusEncoder(24_000, 60)
    pcm = tone(24_000, 60)
    packets = tuple(encoder.encode(pcm) for _ in range(frames))
    return EncodedClip(packets=packets, frame_ms=60, sample_rate=24_000, duration_ms=60 * frames)


class Toy:
    """One connected client, its practice, and what each was told."""

    def __init__(self, client: Any, practice: NotingPractice) -> None:
        self.client = client
        self.practice = practice
        self.device = practice.device


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(sdk: Any, told: list[dict[str, Any]], **tools: Any) -> AsyncIterator[Toy]:
    practices: list[NotingPractice] = []

    def make(device: Device) -> NotingPractice:
        practices.append(NotingPractice(device))
        return practices[-1]

    async def hear(message: dict[str, Any]) -> None:
        told.append(message)

    server = DeviceServer(
        "127.0.0.1", 0, admit=lambda _: None, make_practice=make, ids=CountingIds("c")
    )
    await server.start()
    client = sdk(hear, url=f"ws://127.0.0.1:{server.port}/xiaozhi/v1/", audio_sample_rate=16_000)
    await client.set_mcp_tool(
        [
            {"name": name, "description": "", "inputSchema": {"type": "object"}, "tool_func": call}
            for name, call in tools.items()
        ]
    )
    try:
        assert await client.init_connection(DEVICE)
        yield Toy(client, practices[0])
    finally:
        await client.close()
        await server.stop()


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(body())


def test_the_hellos_and_the_microphone(sdk: Any) -> None:
    """It gets a session, listens in full duplex at once, and every packet decodes to 60 ms."""

    async def body() -> None:
        async with connected(sdk, []) as toy:
            assert toy.client.session_id == toy.device.connection_id
            assert toy.device.device_id == DEVICE
            await until(lambda: toy.device.listening is ListenMode.REALTIME)
            pcm = tone(16_000, 60)
            for _ in range(10):
                await toy.client.send_audio(pcm)
            await until(lambda: toy.practice.names().count("audio") == 10)
            decoder = OpusDecoder(16_000)
            heard = [event[1] for event in toy.practice.heard if event[0] == "audio"]
            assert {len(decoder.decode(packet)) for packet in heard} == {1920}

    run(body)


def test_a_clip_is_heard_whole(sdk: Any) -> None:
    """Between `tts start` and `tts stop`, with its text; an abort ends the next one."""

    async def body() -> None:
        told: list[dict[str, Any]] = []
        async with connected(sdk, told) as toy:
            ends: list[PlaybackEnd] = []
            toy.device.play(encoded(10), ends.append, "hello")
            await until(lambda: ends == [PlaybackEnd.COMPLETED])
            await until(lambda: told[-1].get("state") == "stop")
            states = [message["state"] for message in told if message["type"] == "tts"]
            assert states == ["start", "sentence_start", "stop"]
            heard = len(b"".join(bytes(part) for part in toy.client.output_audio_queue))
            assert heard >= 8 * 1920
            toy.device.play(encoded(100), ends.append)
            await until(lambda: told[-1].get("state") == "start")
            await toy.client.send_abort()
            await until(lambda: ends == [PlaybackEnd.COMPLETED, PlaybackEnd.STOPPED])
            await until(lambda: told[-1].get("state") == "stop")

    run(body)


def test_its_tools_are_listed_and_called(sdk: Any) -> None:
    """As a board with a card answers; what fails is refused, what is unknown not asked for."""
    calls: list[dict[str, Any]] = []

    def play(arguments: dict[str, Any]) -> tuple[Any, bool]:
        calls.append(arguments)
        return True, False

    def fail(_: dict[str, Any]) -> tuple[Any, bool]:
        return "no card", True

    async def body() -> None:
        tools = {"self.mp3.play": play, "self.sd.ensure_app": fail}
        async with connected(sdk, [], **tools) as toy:
            await until(lambda: "tools_listed" in toy.practice.names())
            assert set(toy.device.tools or {}) == set(tools)
            arguments = {"path": "/a/b/lessons/1/01.mp3", "repeat": 1}
            played = await toy.device.call_tool("self.mp3.play", arguments)
            assert (played.text, calls) == ("true", [arguments])
            failed = await toy.device.call_tool("self.sd.ensure_app", {"app_id": "a"})
            assert failed.failure is ToolFailure.REFUSED
            unknown = await toy.device.call_tool("self.reboot", {})
            assert unknown.failure is ToolFailure.UNKNOWN_TOOL

    run(body)


def test_a_skill_event_comes_as_one(sdk: Any) -> None:
    """So that it can stand for a board that has played from its card."""

    async def body() -> None:
        async with connected(sdk, []) as toy:
            await toy.client.send_text("[skill_event]audio.completed|english|shadowing|2350")
            await until(lambda: "detected" in toy.practice.names())
            event = SkillEvent(
                end=SkillEnd.COMPLETED, app_id="english", task_id="shadowing", duration_ms=2350
            )
            assert ("detected", event) in toy.practice.heard

    run(body)
