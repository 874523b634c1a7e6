"""A device that speaks the wire as the firmware does (`docs/gateway.md`).

It listens again by itself after each `tts stop` (auto mode), plays audio only in `speaking`, loses
what arrives while it changes its state, holds 40 packets and drops the newest beyond, sends what
its microphone hears every 60 ms, answers MCP, and leaves by dropping TCP. It keeps a timeline of
all that it saw; a learner (`etude.testing.learners_acting`) watches the timeline and acts.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from etude.gateway.ports import ListenMode
from etude.testing import device_socket, learner_voice
from etude.testing.device_frames import pack, unpack
from etude.testing.device_socket import DeviceSocket, Line
from etude.testing.device_sound import ClipBook, FramesHeard, Microphone, Speaker
from etude.testing.device_tools import ToolServer, stock_tools
from etude.testing.fake_card import FakeCard

HELLO_S: Final = 10.0
REPLY_S: Final = 0.01  # a tool runs on the device's main task


class NoHelloError(Exception):
    """The server did not answer the device's hello in 10 s: the firmware gives up."""


class State(StrEnum):
    """The firmware's states that matter here."""

    IDLE = "idle"
    LISTENING = "listening"
    SPEAKING = "speaking"


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between devices and firmware versions.

    Attributes:
        protocol: the layout of binary frames: 1, 2 or 3.
        listen: how the microphone streams; in realtime mode also while the device speaks.
        queue_packets: what the decoder holds; the newest beyond is dropped.
        speaking_s: how long entering `speaking` takes; frames are lost in it.
        drains: whether the queue is played out before listening again (firmware since 2.2).
        microphone_beside_card: whether the microphone streams while the card plays.
    """

    protocol: int = 1
    listen: ListenMode = ListenMode.AUTO
    queue_packets: int = 40
    speaking_s: float = 0.02
    drains: bool = True
    microphone_beside_card: bool = False


class Seen(msgspec.Struct, frozen=True):
    """One thing on the timeline: the loop's time, what it was, and its text."""

    at_s: float
    what: str
    detail: str = ""


class FakeDevice:
    """One device. `connect` it, and it does the rest.

    Attributes:
        timeline: all it saw and did, in order.
        state: the firmware's state.
        session_id: of the server's hello.
    """

    def __init__(
        self,
        device_id: str,
        *,
        manners: Manners | None = None,
        card: FakeCard | None = None,
        book: ClipBook | None = None,
        token: str = "",
    ) -> None:
        """Make a device that is switched on and not connected.

        Args:
            device_id: its hardware address.
            manners: what kind it is.
            card: the SD firmware's card; None = stock firmware.
            book: the clips it may be sent, so that the timeline can name them.
            token: what OTA gave it; empty = no `Authorization` header.
        """
        self.device_id = device_id
        self.manners = manners or Manners()
        self.card = card
        self.timeline: list[Seen] = []
        self.watchers: list[Callable[[Seen], None]] = []
        self.state = State.IDLE
        self.session_id = ""
        self.token = token
        self.client_id = str(uuid.uuid5(uuid.NAMESPACE_OID, device_id))
        self.tools = ToolServer((*stock_tools(), *(card.tools() if card else ())))
        self._book = book or ClipBook()
        self._socket: DeviceSocket | None = None
        self._line: Line | None = None
        self._hello: asyncio.Future[None] | None = None
        self._frozen: list[DeviceSocket] = []
        self._connected = False
        self._speaker = Speaker(self.manners.queue_packets)
        self._microphone = Microphone(self._send_packet)
        self._clip: str | None = None
        self._framed: dict[bytes, bytes] = {}
        if card is not None:
            card.plug_in(self._card_tells)

    # --- what a person or a scenario makes it do -------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the channel is open, as far as the device knows."""
        return self._connected

    @property
    def frames(self) -> FramesHeard:
        """What became of the audio it was sent."""
        return self._speaker.frames

    async def connect(self, host: str, port: int, path: str = "/xiaozhi/v1/") -> None:
        """Open the audio channel: handshake and hello.

        Raises:
            DeviceRefusedError: the handshake was refused.
            NoHelloError: no hello came back.
        """
        headers = {
            "Protocol-Version": str(self.manners.protocol),
            "Device-Id": self.device_id,
            "Client-Id": self.client_id,
        }
        if self.token:
            headers = {"Authorization": f"Bearer {self.token}"} | headers
        if self._line is not None:  # of the channel before; nothing of it counts any more
            self._line.cut()
        if self._socket is not None:
            self._socket.drop()
        self._line = line = Line(self)
        self._hello = asyncio.get_running_loop().create_future()
        self._socket = await DeviceSocket.connect(host, port, path, headers, line)
        self._connected = True
        self._see("connected")
        self._send(
            type="hello",
            version=self.manners.protocol,
            transport="websocket",
            features={"mcp": True},
            audio_params={
                "format": "opus",
                "sample_rate": learner_voice.SAMPLE_RATE,
                "channels": 1,
                "frame_duration": learner_voice.FRAME_MS,
            },
        )
        try:
            async with asyncio.timeout(HELLO_S):
                await self._hello
        except TimeoutError as error:
            self.leave()
            raise NoHelloError(self.device_id) from error

    def wake(self, text: str) -> None:
        """Send what the wake word, or anything else that enters as one, detected; then listen."""
        self.detect(text)
        self.listen()

    def detect(self, text: str) -> None:
        """Send `listen/detect`, built as the firmware does: without JSON escaping."""
        self._see("detect", text)
        self.send_raw(
            f'{{"session_id":"{self.session_id}","type":"listen","state":"detect","text":"{text}"}}'
        )

    def listen(self) -> None:
        """Enter `listening`: the microphone streams."""
        self.state = State.LISTENING
        self._see("listen")
        self._send(type="listen", state="start", mode=self.manners.listen.value)
        self._microphone.open()

    def stop_listening(self) -> None:
        """Release the talk button (manual mode)."""
        self._microphone.close()
        self.state = State.IDLE
        self._see("listen_stop")
        self._send(type="listen", state="stop")

    def abort(self, reason: str = "") -> None:
        """Press the button while it speaks; with a reason, the wake word was heard."""
        self._see("abort", reason)
        self._send(type="abort", **({"reason": reason} if reason else {}))

    def speak(self, packets: Sequence[bytes]) -> None:
        """Let the microphone hear these packets from now on, if it streams."""
        self._see("speaks")
        self._microphone.hear(packets)

    def leave(self) -> None:
        """Drop TCP, as at the end of a session or out of range."""
        self._end_channel("left")
        if self._socket is not None:
            self._socket.drop()

    def freeze(self) -> None:
        """Lose power: TCP stays half open, nothing is read or sent any more."""
        self._end_channel("frozen")
        if self.card is not None:
            self.card.power_off()
        if self._socket is not None:
            self._socket.freeze()
            self._frozen.append(self._socket)
            self._socket = None

    def scrap(self) -> None:
        """Let go of everything, at the end of a test."""
        if self._connected:
            self.leave()
        for socket in self._frozen:
            socket.scrap()

    def send_raw(self, text: str) -> None:
        """Send any text, well-formed or not."""
        if self._socket is not None:
            self._socket.send_text(text)

    def send_raw_binary(self, data: bytes) -> None:
        """Send any binary message, a valid frame or not."""
        if self._socket is not None:
            self._socket.send_binary(data)

    # --- what the server makes it do --------------------------------------------------------------

    def text_came(self, text: str) -> None:
        """Handle a text message; what the firmware does not know it ignores."""
        try:
            message = msgspec.json.decode(text)
        except msgspec.DecodeError:
            self._see("broken", text)
            return
        kind = message.get("type") if isinstance(message, dict) else None
        handle = getattr(self, f"_on_{kind}", None) if kind in _KNOWN else None
        if handle is None:
            self._see("unknown", text)
            return
        handle(message)

    def binary_came(self, data: bytes) -> None:
        """Decode a packet, if the device is speaking."""
        packet = unpack(self.manners.protocol, data)
        if packet is None:
            self._see("bad_frame", data[:16].hex())
            return
        if self.state is not State.SPEAKING:
            self.frames.unheard += 1
        elif self._speaker.take(asyncio.get_running_loop().time()):
            name = self._book.name_of(packet)
            if name is not None and name != self._clip:
                self._clip = name
                self._see("clip", name)

    def close_came(self, code: int) -> None:
        """Mark the channel as closed; the firmware neither answers nor closes TCP."""
        self._end_channel("closed", str(code))

    def lost(self) -> None:
        """Notice that TCP is gone."""
        self._end_channel("lost")
        if self._hello is not None and not self._hello.done():
            self._hello.set_exception(NoHelloError(self.device_id))

    def _end_channel(self, how: str, detail: str = "") -> None:
        self._connected = False
        self._microphone.close()
        self.state = State.IDLE
        self._clip = None
        self._see(how, detail)

    def _on_hello(self, message: Mapping[str, Any]) -> None:
        self.session_id = str(message.get("session_id", ""))
        wanted = message.get("transport") == "websocket" and isinstance(
            message.get("audio_params"), dict
        )
        self._see("hello" if wanted else "bad_hello")
        if self._hello is not None and not self._hello.done():
            self._hello.set_result(None)

    def _on_tts(self, message: Mapping[str, Any]) -> None:
        state = message.get("state")
        if state == "start":
            self._begin_speaking()
        elif state == "stop":
            self._see("tts_stop")
            if self._clip is not None:
                self._see("clip_over", self._clip)
                self._clip = None
            if self.state is State.SPEAKING:
                self._end_speaking()
        elif state == "sentence_start":
            self._see("sentence", str(message.get("text", "")))

    def _on_stt(self, message: Mapping[str, Any]) -> None:
        self._see("stt", str(message.get("text", "")))

    def _on_llm(self, message: Mapping[str, Any]) -> None:
        self._see("emotion", str(message.get("emotion", "")))

    def _on_alert(self, message: Mapping[str, Any]) -> None:
        self._see("alert", str(message.get("message", "")))

    def _on_system(self, message: Mapping[str, Any]) -> None:
        self._see("system", str(message.get("command", "")))

    def _on_custom(self, message: Mapping[str, Any]) -> None:
        self._see("custom", str(message.get("payload", "")))

    def _on_mcp(self, message: Mapping[str, Any]) -> None:
        asyncio.get_running_loop().call_later(REPLY_S, self._answer_tool, message.get("payload"))

    def _answer_tool(self, request: object) -> None:
        if not isinstance(request, dict):
            return
        before = len(self.tools.calls)
        said = self.tools.answer(request)
        for name, _ in self.tools.calls[before:]:
            self._see("tool", name)
        if said is not None:
            self._send(type="mcp", payload=said)

    def _begin_speaking(self) -> None:
        self._see("tts_start")
        if self.state is State.SPEAKING:
            return
        if self.manners.listen is not ListenMode.REALTIME:
            self._microphone.close()
        self.state = State.SPEAKING
        self._speaker.reset(asyncio.get_running_loop().time() + self.manners.speaking_s)
        self._clip = None

    def _end_speaking(self) -> None:
        loop = asyncio.get_running_loop()
        self.state = State.IDLE
        if self.manners.listen is ListenMode.REALTIME:
            self.state = State.LISTENING
        elif self.manners.listen is ListenMode.AUTO:
            left_s = self._speaker.left_s(loop.time()) if self.manners.drains else 0.0
            loop.call_later(left_s, self._listen_again)

    def _listen_again(self) -> None:
        if self.state is State.IDLE and self.connected:
            self.listen()

    def _send_packet(self, packet: bytes) -> None:
        """Send one packet; frames are made once, so that a thousand devices cost little."""
        if self._socket is None:
            return
        ready = self._framed.get(packet)
        if ready is None:
            data = pack(self.manners.protocol, packet)
            ready = self._framed[packet] = device_socket.frame(device_socket.BINARY, data)
        self._socket.send(ready)

    def _card_tells(self, event: str, path: str) -> None:
        name = path.rpartition("/")[2]
        if event == "begins":
            self._see("clip", name)
            if not self.manners.microphone_beside_card:
                self._microphone.close()
            return
        self.detect(event)
        self._see("clip_over", name)
        if self.connected and not self._microphone.is_open:
            self.listen()

    def _send(self, **message: Any) -> None:  # noqa: ANN401 - members of a JSON object
        self.send_raw(msgspec.json.encode({"session_id": self.session_id, **message}).decode())

    def _see(self, what: str, detail: str = "") -> None:
        seen = Seen(asyncio.get_running_loop().time(), what, detail)
        self.timeline.append(seen)
        for watcher in tuple(self.watchers):
            watcher(seen)


_KNOWN: Final = frozenset({"hello", "tts", "stt", "llm", "alert", "system", "custom", "mcp"})
