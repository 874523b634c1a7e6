import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from etude.gateway.bounds import ConnectionRules
from etude.gateway.connection import DeviceConnection
from etude.gateway.errors import ClipFormatError
from etude.gateway.frames import BinaryVersion, pack
from etude.gateway.playback import Ticker
from etude.gateway.ports import (
    AppTask,
    CloseReason,
    ListenMode,
    PlaybackEnd,
    ToolFailure,
    WakeWord,
)
from etude.testing.memory_wire import MemoryWire, NotingPractice, plain_clip
from etude.testing.virtual_time import run

HELLO: dict[str, Any] = {"type": "hello", "version": 1, "features": {}}


class Link:
    """A connection between a wire and a practice that keep everything."""

    def __init__(
        self,
        *,
        version: BinaryVersion | None = None,
        make: Callable[[Any], Any] | None = None,
        rules: ConnectionRules | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.wire = MemoryWire(self.loop.time)
        self.practices: list[NotingPractice] = []
        self.connection = DeviceConnection(
            device_id="aa:bb",
            connection_id="c-1",
            wire=self.wire,
            make_practice=make or self.make,
            ticker=Ticker(),
            version=version,
            rules=rules,
        )

    def make(self, device: Any) -> NotingPractice:
        self.practices.append(NotingPractice(device))
        return self.practices[-1]

    @property
    def practice(self) -> NotingPractice:
        return self.practices[-1]

    def say(self, **message: Any) -> None:
        self.connection.receive(json.dumps(message))

    def hello(self, **more: Any) -> "Link":
        self.say(**{**HELLO, **more})
        return self


def test_the_hello_is_answered_at_once() -> None:
    """Before practice is made, and once more if it is repeated."""

    async def body() -> None:
        seen: list[int] = []

        def make(device: Any) -> NotingPractice:
            seen.append(len(link.wire.sent))
            return link.make(device)

        link = Link(make=make)
        link.hello().hello()
        assert seen == [1]
        assert [m["session_id"] for m in link.wire.said("hello")] == ["c-1", "c-1"]
        assert link.practice.names() == ["opened", "tools_listed"]

    run(body)


@pytest.mark.parametrize(
    ("header", "hello", "used"),
    [
        (None, 3, BinaryVersion.SHORT),
        (BinaryVersion.TIMED, 1, BinaryVersion.TIMED),
        (None, 7, BinaryVersion.BARE),
        (None, None, BinaryVersion.BARE),
    ],
)
def test_the_layout_is_the_headers_or_the_hellos(
    header: BinaryVersion | None, hello: object, used: BinaryVersion
) -> None:
    """And version 1 where neither is known, in both directions."""

    async def body() -> None:
        link = Link(version=header).hello(version=hello)
        link.connection.receive(pack(used, b"voice"))
        link.connection.play(plain_clip(1), lambda _: None)
        await asyncio.sleep(1)
        assert link.wire.said("hello")[0]["version"] == int(used)
        assert link.practice.heard[-1][:2] == ("audio", b"voice")
        assert link.wire.frames()[0][1] == pack(used, b"packet-0000", 0)

    run(body)


def test_nothing_counts_before_the_hello() -> None:
    """Neither words nor sound; the connection waits."""

    async def body() -> None:
        link = Link()
        link.say(type="listen", state="start", mode="auto")
        link.connection.receive(b"voice")
        assert link.wire.sent == []
        link.hello()
        assert link.practice.names() == ["opened", "tools_listed"]

    run(body)


def test_without_a_hello_it_is_closed_after_ten_seconds() -> None:
    """A socket that says nothing is no device."""

    async def body() -> None:
        link = Link()
        await asyncio.sleep(9.9)
        assert link.wire.closed is None
        await asyncio.sleep(0.2)
        assert link.wire.closed is CloseReason.NO_HELLO

    run(body)


def test_practice_is_told_what_the_device_says() -> None:
    """In order, with the time of arrival, and never an empty packet."""

    async def body() -> None:
        link = Link().hello()
        link.say(type="listen", state="detect", text="你好小智")
        link.say(type="listen", state="start", mode="manual")
        assert link.connection.listening is ListenMode.MANUAL
        for packet in (b"", b"\x00", b"voice"):
            link.connection.receive(packet)
        link.say(type="listen", state="stop")
        assert link.connection.listening is None
        link.say(type="listen", state="detect", text="[app_task]chat")
        link.say(type="abort", reason="wake_word_detected")
        assert link.practice.heard[2:] == [
            ("detected", WakeWord(text="你好小智")),
            ("listen_started", ListenMode.MANUAL),
            ("audio", b"\x00", link.loop.time()),
            ("audio", b"voice", link.loop.time()),
            ("listen_stopped",),
            ("detected", AppTask(name="chat", arguments=())),
            ("aborted", "wake_word_detected"),
        ]

    run(body)


def test_an_abort_is_always_answered() -> None:
    """After its button a device waits for `tts stop`; one is enough."""

    async def body() -> None:
        link = Link().hello()
        link.say(type="abort")
        ends: list[PlaybackEnd] = []
        link.connection.play(plain_clip(50), ends.append, "text")
        await asyncio.sleep(1)
        link.say(type="abort")
        sent = len(link.wire.sent)
        await asyncio.sleep(3)
        assert len(link.wire.sent) == sent
        assert ends == [PlaybackEnd.STOPPED]
        words = [word for word in link.wire.order() if word != "frame"]
        assert words == ["hello", "tts stop", "tts start", "tts sentence_start", "tts stop"]

    run(body)


def test_broken_messages_are_ignored() -> None:
    """Unescaped quotes, wrong types, wrong lengths: counted, and the next word counts again."""

    async def body() -> None:
        link = Link(version=BinaryVersion.SHORT).hello()
        for broken in (
            '{"type":"listen","text":"say "hi""}',
            "[]",
            "{}",
            b"\x00",
            b"\x00\x00\xff\xff",
        ):
            link.connection.receive(broken)
        link.say(type="listen", state="start")
        assert link.wire.closed is None
        assert link.practice.names() == ["opened", "tools_listed", "listen_started"]

    run(body)


def test_a_broken_message_now_and_then_is_borne() -> None:
    """One a minute, for an hour."""

    async def body() -> None:
        patient = Link().hello()
        for _ in range(60):
            patient.connection.receive("{")
            patient.say(type="abort")
            await asyncio.sleep(60)
        assert patient.wire.closed is None

    run(body)


def test_thirty_one_broken_messages_at_once_are_malformed() -> None:
    """The thirtieth is still borne."""

    async def body() -> None:
        link = Link().hello()
        for _ in range(30):
            link.connection.receive("{")
        assert link.wire.closed is None
        link.connection.receive("{")
        assert link.wire.closed is CloseReason.MALFORMED
        assert link.practice.heard[-1] == ("closed", CloseReason.MALFORMED)

    run(body)


def test_a_flood_ends_its_connection() -> None:
    """Of messages or of bytes; a device's own queue after a pause is none."""

    async def body() -> None:
        link, heavy = Link().hello(), Link().hello()
        for _ in range(40):
            link.connection.receive(b"voice")
        await asyncio.sleep(1)
        for _ in range(2000):
            link.connection.receive(b"voice")
        assert link.wire.closed is CloseReason.FLOOD
        for _ in range(40):
            heavy.connection.receive(bytes(120_000))
        assert heavy.wire.closed is CloseReason.FLOOD

    run(body)


def test_20_ms_packets_all_day_are_no_flood() -> None:
    """Fifty messages a second for ten minutes."""

    async def body() -> None:
        link = Link().hello()
        for _ in range(600):
            for _ in range(50):
                link.connection.receive(b"v" * 60)
            await asyncio.sleep(1)
        assert link.wire.closed is None

    run(body)


def test_a_slow_device_is_cut() -> None:
    """Once 64 KiB wait for it; what played ends as closed, and nothing more is sent."""

    async def body() -> None:
        link = Link().hello()
        ends: list[PlaybackEnd] = []
        link.connection.play(plain_clip(100), ends.append)
        await asyncio.sleep(1)
        link.wire.unsent = 70_000
        await asyncio.sleep(0.2)
        sent = len(link.wire.sent)
        assert link.wire.closed is CloseReason.SLOW
        assert ends == [PlaybackEnd.CLOSED]
        await asyncio.sleep(5)
        assert len(link.wire.sent) == sent

    run(body)


def test_silence_is_kept_alive_by_the_face() -> None:
    """A device takes a connection for dead after 120 s without data; the face does not change."""

    async def body() -> None:
        link = Link().hello()
        link.practice.busy = True
        link.connection.feel("happy")
        await asyncio.sleep(600)
        times = [at for at, _ in link.wire.sent]
        assert max(b - a for a, b in pairwise(times)) <= 60
        assert {message["emotion"] for message in link.wire.said("llm")} == {"happy"}
        assert link.wire.closed is None

    run(body)


def test_two_minutes_of_nothing_end_it() -> None:
    """Our own keep-alive is no sign of life."""

    async def body() -> None:
        link = Link().hello()
        await asyncio.sleep(119)
        assert link.wire.closed is None
        await asyncio.sleep(7)
        assert link.wire.closed is CloseReason.SILENT

    run(body)


@pytest.mark.parametrize("what", ["busy", "playing", "calling", "words", "voice"])
def test_whatever_happens_keeps_it_open(what: str) -> None:
    """A task, a clip, a call that waits, a word of either side, a voice."""

    async def body() -> None:
        link = Link().hello(features={"mcp": True})
        link.practice.busy = what == "busy"
        if what == "playing":
            link.connection.play(plain_clip(10_000), lambda _: None)
        if what == "calling":
            link.connection.call_tool("self.mp3.play", {}, 600)
        for _ in range(3):
            if what == "words":
                link.connection.show("hi")
            if what == "voice":
                link.connection.receive(b"v" * 90)
            await asyncio.sleep(59)
        assert link.wire.closed is None
        link.connection.close(CloseReason.STOPPING)

    run(body)


def test_a_silent_room_is_no_sign_of_life() -> None:
    """Its one-byte packets and comfort frames come all the time."""

    async def body() -> None:
        link = Link().hello()
        for _ in range(130):
            link.connection.receive(b"\x00")
            link.connection.receive(b"c" * 17)
            await asyncio.sleep(1)
        assert link.wire.closed is CloseReason.SILENT

    run(body)


def test_a_noisy_room_ends_after_half_an_hour() -> None:
    """Sound alone, without a word or a task, is no lesson."""

    async def body() -> None:
        link = Link().hello()
        for _ in range(29 * 60 // 30):
            link.connection.receive(b"n" * 90)
            await asyncio.sleep(30)
        assert link.wire.closed is None
        for _ in range(4):
            link.connection.receive(b"n" * 90)
            await asyncio.sleep(30)
        assert link.wire.closed is CloseReason.SILENT

    run(body)


@pytest.mark.parametrize(
    "method", ["opened", "listen_started", "detected", "audio", "aborted", "tools_listed"]
)
def test_what_practice_raises_ends_its_task_only(method: str) -> None:
    """It is told that it failed; the connection and what the device says next stay."""

    async def body() -> None:
        def make(device: Any) -> NotingPractice:
            practice = link.make(device)
            practice.broken.add(method)
            return practice

        link = Link(make=make)
        link.hello()
        link.say(type="listen", state="start")
        link.say(type="listen", state="detect", text="x")
        link.connection.receive(b"voice")
        link.say(type="abort")
        assert "failed" in link.practice.names()
        assert link.practice.names()[-1] in {"aborted", "failed"}
        assert link.wire.closed is None

    run(body)


def test_even_a_broken_clean_up_is_borne() -> None:
    """`failed`, `closed`, `busy` and the end of a clip may raise, too."""

    async def body() -> None:
        link = Link().hello()
        link.practice.broken |= {"failed", "aborted", "closed"}

        def fail(_: PlaybackEnd) -> None:
            raise RuntimeError

        link.connection.play(plain_clip(1), fail)
        await asyncio.sleep(1)
        link.say(type="abort")
        for _ in range(100):
            link.say(type="abort")
        assert link.wire.closed is None
        link.connection.close(CloseReason.STOPPING)
        assert link.wire.closed is CloseReason.STOPPING

    run(body)


def test_without_practice_there_is_no_connection() -> None:
    """If it cannot be made, the device is sent away and may come back."""

    async def body() -> None:
        def make(_: Any) -> NotingPractice:
            raise RuntimeError

        link = Link(make=make)
        link.hello()
        assert link.wire.closed is CloseReason.FAILED

    run(body)


def test_a_closed_connection_does_nothing() -> None:
    """Whatever is asked of it; the first reason stays, and practice is told once."""

    async def body() -> None:
        link = Link().hello()
        link.connection.close(CloseReason.REVOKED)
        link.connection.close(CloseReason.SLOW)
        link.connection.ended(CloseReason.DEVICE_LEFT)
        sent = len(link.wire.sent)
        ends: list[PlaybackEnd] = []
        link.connection.play(plain_clip(3), ends.append)
        link.connection.stop_playing()
        link.connection.show("x")
        link.connection.feel("sad")
        link.connection.reopen_microphone()
        link.say(type="abort")
        assert link.connection.start_task("a", "b", {}) is False
        result = await link.connection.call_tool("x", {})
        await asyncio.sleep(300)
        assert len(link.wire.sent) == sent
        assert result.failure is ToolFailure.CLOSED
        assert ends == [PlaybackEnd.CLOSED]
        assert link.practice.heard[-1] == ("closed", CloseReason.REVOKED)
        assert link.practice.names().count("closed") == 1
        assert link.connection.close_reason is CloseReason.REVOKED

    run(body)


def test_speaking_mutes_the_microphone() -> None:
    """Until the device says that it listens again; in full duplex it never stops."""

    async def body() -> None:
        link = Link().hello()
        for mode, kept in (("auto", None), ("realtime", ListenMode.REALTIME)):
            link.say(type="listen", state="start", mode=mode)
            link.connection.play(plain_clip(1), lambda _: None)
            assert link.connection.listening is kept
            await asyncio.sleep(1)

    run(body)


def test_the_microphone_is_opened_by_a_start_and_a_stop() -> None:
    """While something plays, its end does the same."""

    async def body() -> None:
        link = Link().hello()
        link.connection.reopen_microphone()
        assert link.wire.order()[1:] == ["tts start", "tts stop"]
        link.connection.play(plain_clip(1), lambda _: None)
        link.connection.reopen_microphone()
        await asyncio.sleep(1)
        assert link.wire.order()[3:] == ["tts start", "frame", "tts stop"]

    run(body)


def test_a_clip_of_another_format_is_not_played() -> None:
    """The device would play noise."""

    async def body() -> None:
        link = Link().hello()
        for clip in (plain_clip(sample_rate=16_000), plain_clip(frame_ms=20)):
            with pytest.raises(ClipFormatError):
                link.connection.play(clip, lambda _: None)

    run(body)


def test_version_2_numbers_its_frames_in_time() -> None:
    """The device hands the time back beside what it recorded meanwhile."""

    async def body() -> None:
        link = Link(version=BinaryVersion.TIMED).hello()
        link.connection.play(plain_clip(3), lambda _: None)
        await asyncio.sleep(1)
        stamps = [int.from_bytes(frame[8:12], "big") for _, frame in link.wire.frames()]
        assert stamps == [0, 60, 120]

    run(body)


def test_json_in_a_binary_message_is_read() -> None:
    """Version 2, type 1."""

    async def body() -> None:
        link = Link(version=BinaryVersion.TIMED).hello()
        text = b'{"type":"listen","state":"stop"}'
        head = bytes.fromhex("0002 0001 00000000 00000000") + len(text).to_bytes(4, "big")
        link.connection.receive(head + text)
        assert link.practice.names()[-1] == "listen_stopped"

    run(body)


def test_tools_are_asked_for_without_waiting() -> None:
    """The receive loop goes on, and practice hears of them when they are there."""

    async def body() -> None:
        link = Link().hello(features={"mcp": True})
        for result in ({}, {"tools": [{"name": "self.mp3.play"}]}):
            await asyncio.sleep(0.01)
            asked = link.wire.said("mcp")[-1]["payload"]
            link.say(
                type="mcp", payload={"jsonrpc": "2.0", "id": asked.get("id"), "result": result}
            )
            await asyncio.sleep(0.01)
        assert list(link.connection.tools or {}) == ["self.mp3.play"]
        assert link.practice.names() == ["opened", "tools_listed"]

    run(body)


def test_a_person_can_start_a_task() -> None:
    """Practice is told; before the hello, nobody is."""

    async def body() -> None:
        link = Link()
        assert link.connection.start_task("a", "b", {}) is False
        link.hello()
        assert link.connection.start_task("a", "b", {"loop": 2}) is True
        assert link.practice.heard[-1] == ("start_task", "a", "b", {"loop": 2})

    run(body)
