import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from etude.gateway.ports import ListenMode
from etude.testing.device_frames import pack, unpack
from etude.testing.device_socket import DeviceRefusedError
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Manners, NoHelloError, State
from etude.testing.learner_voice import DTX, Voices
from etude.testing.virtual_time import VirtualTimeLoop

HELLO = {
    "type": "hello",
    "transport": "websocket",
    "session_id": "s1",
    "audio_params": {"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60},
}


class Stub:
    """A server that keeps what it hears and says what the test wants."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.headers = Headers()
        self.socket: ServerConnection | None = None
        self.port = 0
        self.greets = True
        self.status = 101
        self.ended = asyncio.Event()

    def messages(self, kind: str) -> list[Any]:
        return [each for each in self.heard if isinstance(each, dict) and each["type"] == kind]

    @property
    def packets(self) -> list[bytes]:
        return [each for each in self.heard if isinstance(each, bytes)]

    async def say(self, **message: Any) -> None:
        assert self.socket
        await self.socket.send(json.dumps(message))

    async def talk(self, socket: ServerConnection) -> None:
        assert socket.request
        self.socket, self.headers = socket, socket.request.headers
        with contextlib.suppress(ConnectionClosed):
            async for message in socket:
                if isinstance(message, bytes):
                    self.heard.append(message)
                    continue
                with contextlib.suppress(ValueError):
                    message = json.loads(message)  # noqa: PLW2901 - a message is one or the other
                self.heard.append(message)
                if self.greets and isinstance(message, dict) and message["type"] == "hello":
                    await self.say(**HELLO)
        self.ended.set()


@contextlib.asynccontextmanager
async def stub() -> AsyncIterator[Stub]:
    made = Stub()

    def process(_: ServerConnection, __: Request) -> Response | None:
        return None if made.status == 101 else Response(made.status, "No", Headers(), b"")

    async with serve(
        made.talk, "127.0.0.1", 0, process_request=process, compression=None, close_timeout=1
    ) as server:
        made.port = next(iter(server.sockets)).getsockname()[1]
        yield made


def virtually(check: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await check()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_it_introduces_itself_as_the_firmware_does() -> None:
    """Headers, hello and `Host` without a port are the firmware's."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa:bb:cc:dd:ee:01", token="t1", manners=Manners(protocol=3))
            await device.connect("127.0.0.1", server.port)
            hello = server.messages("hello")[0]
            assert hello["version"] == 3
            assert hello["transport"] == "websocket"
            assert hello["features"] == {"mcp": True}
            assert hello["audio_params"]["sample_rate"] == 16000
            assert server.headers["Authorization"] == "Bearer t1"
            assert server.headers["Protocol-Version"] == "3"
            assert server.headers["Device-Id"] == "aa:bb:cc:dd:ee:01"
            assert len(server.headers["Client-Id"]) == 36
            assert server.headers["Host"] == "127.0.0.1"
            assert device.session_id == "s1"
            device.leave()

    virtually(check)


def test_a_refused_handshake_names_its_status() -> None:
    """A 401 before the upgrade is an error with that status."""

    async def check() -> None:
        async with stub() as server:
            server.status = 401
            with pytest.raises(DeviceRefusedError) as refused:
                await FakeDevice("aa").connect("127.0.0.1", server.port)
            assert refused.value.status == 401

    virtually(check)


def test_it_gives_up_without_a_hello() -> None:
    """Ten seconds without the server's hello, and the device is gone."""

    async def check() -> None:
        async with stub() as server:
            server.greets = False
            began = asyncio.get_running_loop().time()
            with pytest.raises(NoHelloError):
                await FakeDevice("aa").connect("127.0.0.1", server.port)
            assert 9.9 < asyncio.get_running_loop().time() - began < 10.5

    virtually(check)


@pytest.mark.parametrize("protocol", [1, 2, 3])
def test_its_microphone_streams_with_dtx(protocol: int) -> None:
    """A listening device sends a packet every 60 ms, silence mostly as one byte."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa", manners=Manners(protocol=protocol))
            await device.connect("127.0.0.1", server.port)
            device.wake("hello")
            await asyncio.sleep(6.03)
            device.leave()
            async with asyncio.timeout(60):
                await server.ended.wait()
            packets = [unpack(protocol, data) for data in server.packets]
            assert 99 <= len(packets) <= 101
            assert packets.count(DTX) > 80
            assert {len(packet or b"") for packet in packets} == {1, 17}

    virtually(check)


def test_it_listens_again_by_itself_after_it_spoke() -> None:
    """In auto mode `listen start` follows `tts stop`; the microphone is off in between."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa")
            await device.connect("127.0.0.1", server.port)
            device.listen()
            await asyncio.sleep(0.2)
            await server.say(type="tts", state="start")
            await asyncio.sleep(0.2)
            before = len(server.packets)
            await asyncio.sleep(1)
            assert device.state is State.SPEAKING
            assert len(server.packets) == before
            await server.say(type="tts", state="stop")
            await asyncio.sleep(1)
            starts = [m for m in server.messages("listen") if m["state"] == "start"]
            assert len(starts) == 2
            assert len(server.packets) > before
            device.leave()

    virtually(check)


def test_in_realtime_mode_the_microphone_stays_on() -> None:
    """A full-duplex device streams while it speaks and sends no second `listen start`."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa", manners=Manners(listen=ListenMode.REALTIME))
            await device.connect("127.0.0.1", server.port)
            device.listen()
            await server.say(type="tts", state="start")
            await asyncio.sleep(0.1)
            before = len(server.packets)
            await asyncio.sleep(1)
            assert len(server.packets) - before > 14
            await server.say(type="tts", state="stop")
            await asyncio.sleep(0.5)
            assert len([m for m in server.messages("listen") if m["state"] == "start"]) == 1
            device.leave()

    virtually(check)


def test_audio_is_played_only_while_speaking_and_only_what_the_queue_holds() -> None:
    """Frames outside `speaking` are lost, and of a burst of 60 all beyond 40 are dropped."""

    async def check() -> None:
        packets = Voices().say("one", 3600)
        async with stub() as server:
            device = FakeDevice("aa", book=ClipBook({"01.mp3": packets}))
            await device.connect("127.0.0.1", server.port)
            assert server.socket
            await server.socket.send(packets[0])
            await server.say(type="tts", state="start")
            await asyncio.sleep(0.1)
            for packet in packets:
                await server.socket.send(packet)
            await asyncio.sleep(0)
            await server.say(type="tts", state="stop")
            await asyncio.sleep(5)
            assert device.frames.unheard == 1
            assert 40 <= device.frames.played <= 45  # the clock may move while they are sent
            assert device.frames.overflowed == 60 - device.frames.played
            assert [seen.detail for seen in device.timeline if seen.what == "clip"] == ["01.mp3"]
            device.leave()

    virtually(check)


def test_it_leaves_without_a_close_frame() -> None:
    """The server sees the connection end abnormally, as with every real device."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa")
            await device.connect("127.0.0.1", server.port)
            device.leave()
            async with asyncio.timeout(60):
                await server.ended.wait()
            assert server.socket
            assert server.socket.close_code == 1006

    virtually(check)


def test_it_does_not_answer_a_close() -> None:
    """After the server's Close the device keeps TCP open and says nothing more."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa")
            await device.connect("127.0.0.1", server.port)
            device.listen()
            await asyncio.sleep(0.2)
            assert server.socket
            began = asyncio.get_running_loop().time()
            await server.socket.close(1001)
            assert asyncio.get_running_loop().time() - began > 0.9
            assert not device.connected
            assert [seen.what for seen in device.timeline].count("closed") == 1
            device.leave()

    virtually(check)


def test_text_is_glued_together_without_escaping() -> None:
    """A quote in a detected text makes the message no JSON, as with the firmware."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa")
            await device.connect("127.0.0.1", server.port)
            device.detect('say "hi"')
            await asyncio.sleep(0.1)
            assert any(isinstance(each, str) and '"hi"' in each for each in server.heard)
            device.leave()

    virtually(check)


def test_tools_are_answered_as_strictly_as_by_the_firmware() -> None:
    """Text ids get silence, unknown tools an error without a code, calls a text."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa", card=FakeCard({"/a/b/lessons/l/01.mp3": 900}))
            await device.connect("127.0.0.1", server.port)

            async def ask(number: object, method: str, **params: Any) -> None:
                payload = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                await server.say(type="mcp", payload=payload)

            await ask("1", "tools/list")
            await ask(2, "tools/call", name="self.none", arguments={})
            await ask(3, "tools/call", name="self.mp3.get_list", arguments={"path": "/a/"})
            volume = {"name": "self.audio_speaker.set_volume", "arguments": {"volume": "7"}}
            await ask(4, "tools/call", **volume)
            await asyncio.sleep(0.1)
            replies = {m["payload"]["id"]: m["payload"] for m in server.messages("mcp")}
            assert set(replies) == {2, 3, 4}
            assert replies[2]["error"] == {"message": "Unknown tool: self.none"}
            said = json.loads(replies[3]["result"]["content"][0]["text"])
            assert said == ["/a/b/lessons/l/01.mp3"]
            assert "Invalid type" in replies[4]["error"]["message"]
            device.leave()

    virtually(check)


def test_a_card_takes_the_time_of_its_file_and_tells_its_end() -> None:
    """`self.mp3.play` is answered at once; the completion comes after the file has played."""

    async def check() -> None:
        async with stub() as server:
            device = FakeDevice("aa", card=FakeCard({"/a/b/lessons/l/01.mp3": 900}))
            await device.connect("127.0.0.1", server.port)
            arguments = {"path": "/a/b/lessons/l/01.mp3", "repeat": 2}
            params = {"name": "self.mp3.play", "arguments": arguments}
            payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            await server.say(type="mcp", payload=payload)
            await asyncio.sleep(1.7)
            assert server.messages("mcp")
            assert not server.messages("listen")
            await asyncio.sleep(0.3)
            detected = server.messages("listen")[0]
            assert detected["text"] == "[skill_event]audio.completed|a|b|1830"
            device.leave()

    virtually(check)


@pytest.mark.parametrize("protocol", [1, 2, 3])
def test_frames_come_back_as_packed(protocol: int) -> None:
    """`unpack` undoes `pack`, and refuses a length that would read out of bounds."""
    assert unpack(protocol, pack(protocol, b"packet")) == b"packet"
    if protocol > 1:
        assert unpack(protocol, pack(protocol, b"packet")[:-1]) is None


def test_voices_are_told_apart() -> None:
    """The packets of a text lead back to it; silence leads nowhere."""
    voices = Voices()
    one, two = voices.say("one", 600), voices.say("two", 600)
    assert voices.said_in(one) == "one"
    assert voices.said_in((DTX, *two, DTX)) == "two"
    assert voices.said_in((DTX, DTX)) is None
