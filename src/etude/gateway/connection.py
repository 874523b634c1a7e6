"""One device's connection: reads what it says, tells practice, and does what practice asks.

It knows nothing of sockets: `Wire` is what it sends through, `receive` what the socket's loop
calls. Everything happens in the event loop's thread and returns at once. Whatever practice raises
is logged and told to it (`Practice.failed`); the connection stays. Whatever a device sends can end
no other connection than its own, and ends that one only when it breaks WebSocket itself or a bound.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import structlog

from etude.gateway.border import PracticeBorder
from etude.gateway.bounds import Bucket, ConnectionRules
from etude.gateway.detect import tell_apart
from etude.gateway.errors import ClipFormatError, DeviceFrameError
from etude.gateway.frames import BinaryVersion, PacketKind, pack, unpack
from etude.gateway.mcp import McpClient
from etude.gateway.messages import (
    Abort,
    AudioParams,
    DeviceMessage,
    Downlink,
    Hello,
    ListenDetect,
    ListenStart,
    ListenStop,
    Mcp,
    Nothing,
    read_message,
)
from etude.gateway.playback import Pacing, Player, Ticker
from etude.gateway.ports import (
    CloseReason,
    ListenMode,
    PlaybackEnd,
    Practice,
    PracticeFactory,
    Tool,
    ToolResult,
)
from etude.speech.clips import EncodedClip

COMFORT_NOISE_BYTES: Final = 20
"""Packets up to this length are a silent room's (DTX): no sign that anybody is there."""

_log = structlog.get_logger(__name__)


class Wire(Protocol):
    """The socket below a connection. Sending never waits and never raises."""

    def send(self, message: str | bytes) -> None:
        """Send a text or a binary message; on a closed socket, nothing."""

    def unsent_bytes(self) -> int:
        """Return how much the device has not taken yet."""

    def close(self, reason: CloseReason) -> None:
        """End the connection, in the background."""


class DeviceConnection:
    """Fulfils `ports.Device` for one socket. See the module.

    Args:
        device_id: whose connection, admitted already.
        connection_id: also the wire's `session_id`.
        wire: the socket.
        make_practice: called once the hello has come.
        ticker: shared by all connections of the loop.
        version: from the `Protocol-Version` header, None if it has none that is known.
        audio: what clips are encoded as; declared in our hello.
        rules: the bounds.
        pacing: when what is sent.
        greeted: called with this connection before practice is made, at the first hello.
    """

    def __init__(  # noqa: PLR0913 - what one connection is made of, all by name
        self,
        *,
        device_id: str,
        connection_id: str,
        wire: Wire,
        make_practice: PracticeFactory,
        ticker: Ticker,
        version: BinaryVersion | None = None,
        audio: AudioParams | None = None,
        rules: ConnectionRules | None = None,
        pacing: Pacing | None = None,
        greeted: Callable[["DeviceConnection"], None] = lambda _: None,
    ) -> None:
        """Wait for the hello."""
        self._device_id = device_id
        self._connection_id = connection_id
        self._wire = wire
        self._make_practice = make_practice
        self._version = version
        self._audio = audio or AudioParams()
        self._rules = rules or ConnectionRules()
        self._greeted = greeted
        self._loop = asyncio.get_running_loop()
        self._downlink = Downlink(connection_id)
        self._border = PracticeBorder(connection_id)
        self._mcp = McpClient(self._send_mcp, self._tools_listed)
        self._player = Player(
            ticker,
            pacing or Pacing(),
            send=self._send_packet,
            started=self._tts_started,
            sentence=self._tts_sentence,
            stopped=partial(self._send, self._downlink.tts_stop),
            guard=self._border.played,
        )
        self._listening: ListenMode | None = None
        self._emotion = "neutral"
        self._ended: CloseReason | None = None
        self._malformed = 0
        now_s = self._loop.time()
        rules = self._rules
        self._messages = Bucket(rules.messages_per_s, rules.messages_at_once, now_s)
        self._bytes = Bucket(rules.bytes_per_s, rules.bytes_at_once, now_s)
        self._broken = Bucket(rules.malformed / 60, rules.malformed, now_s)
        self._opened_s = self._sent_s = self._worded_s = self._voiced_s = now_s
        self._timer = self._loop.call_later(rules.hello_s, self._look)

    # ports.Device

    @property
    def device_id(self) -> str:
        """See `Device`."""
        return self._device_id

    @property
    def connection_id(self) -> str:
        """See `Device`."""
        return self._connection_id

    @property
    def tools(self) -> Mapping[str, Tool] | None:
        """See `Device`."""
        return self._mcp.tools

    @property
    def listening(self) -> ListenMode | None:
        """See `Device`."""
        return self._listening

    def play(
        self,
        clip: EncodedClip,
        ended: Callable[[PlaybackEnd], None],
        text: str = "",
        *,
        more: bool = False,
    ) -> None:
        """See `Device`.

        Raises:
            ClipFormatError: the clip is not what our hello has declared.
        """
        declared = self._audio
        if (clip.sample_rate, clip.frame_ms) != (declared.sample_rate, declared.frame_ms):
            raise ClipFormatError(
                sample_rate=clip.sample_rate,
                frame_ms=clip.frame_ms,
                declared_rate=declared.sample_rate,
                declared_frame_ms=declared.frame_ms,
            )
        self._player.play(clip, ended, text, more=more)

    def stop_playing(self) -> None:
        """See `Device`."""
        self._player.stop()

    def call_tool(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float = 15.0
    ) -> "asyncio.Task[ToolResult]":
        """See `Device`."""
        return self._mcp.call(name, arguments, timeout_s)

    def show(self, text: str) -> None:
        """See `Device`."""
        self._act(self._downlink.stt(text))

    def feel(self, emotion: str) -> None:
        """See `Device`."""
        self._emotion = emotion
        self._act(self._downlink.llm(emotion))

    def reopen_microphone(self) -> None:
        """See `Device`. While something plays, its end does the same."""
        if not self._player.playing:
            self._tts_started("")
            self._send(self._downlink.tts_stop)

    def close(self, reason: CloseReason) -> None:
        """See `Device`."""
        if self._ended is None:
            self.ended(reason)
            self._wire.close(reason)

    # What the socket tells

    @property
    def close_reason(self) -> CloseReason | None:
        """Why it ended; None while it is open."""
        return self._ended

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> bool:
        """Pass on that somebody wants a task started; False if no practice is there to do it."""
        if self._border.practice is None or self._ended:
            return False
        self._worded_s = self._loop.time()
        self._border.tell(self._border.practice.start_task, app_id, task_id, arguments)
        return True

    def receive(self, message: str | bytes) -> None:
        """Take one message of the device. Never raises."""
        if self._ended:
            return
        now_s = self._loop.time()
        size = len(message)
        if not (self._messages.takes(1, now_s) and self._bytes.takes(size, now_s)):
            self.close(CloseReason.FLOOD)
        elif isinstance(message, bytes):
            self._receive_binary(message, now_s)
        else:
            self._receive_text(message)

    def ended(self, reason: CloseReason) -> None:
        """Take that the connection is over. The first reason counts and is logged."""
        if self._ended:
            return
        self._ended = reason
        self._timer.cancel()
        self._listening = None
        self._player.close()
        self._mcp.close()
        if self._border.practice:
            self._border.tell(self._border.practice.closed, reason)
        self._border.practice = None
        _log.info(
            "device left",
            action="device.closed",
            device=self._device_id,
            connection=self._connection_id,
            reason=str(reason),
            seconds=round(self._loop.time() - self._opened_s, 1),
            malformed=self._malformed,
            failures=self._border.failures,
        )

    # Receiving

    def _receive_binary(self, message: bytes, now_s: float) -> None:
        try:
            packet = unpack(self._version or BinaryVersion.BARE, message)
        except DeviceFrameError as error:
            self._ignore("frame", str(error.params["field"]))
            return
        if packet.kind is PacketKind.JSON:
            self._receive_text(packet.payload)
        elif (
            packet.payload and self._border.practice
        ):  # an empty one would decode to invented sound
            if len(packet.payload) > COMFORT_NOISE_BYTES:
                self._voiced_s = now_s
            self._border.tell(self._border.practice.audio, packet.payload, now_s)

    def _receive_text(self, text: str | bytes) -> None:
        message = read_message(text)
        if isinstance(message, Nothing):
            if message.malformed:
                self._ignore("message", str(message))
            return
        self._worded_s = self._loop.time()
        if isinstance(message, Hello):
            self._receive_hello(message)
        elif self._border.practice:
            self._dispatch(message, self._border.practice)

    def _receive_hello(self, hello: Hello) -> None:
        """Answer at once, before anything else; one that is repeated is answered again."""
        version = self._version or hello.version or BinaryVersion.BARE
        self._version = version
        self._send(self._downlink.hello(self._audio, version))
        if self._border.practice or self._ended:
            return
        self._greeted(self)
        if self._ended:  # a newer connection of the device is there already
            return
        try:
            practice = self._border.practice = self._make_practice(self)
        except Exception:  # noqa: BLE001 - the border: practice's errors are its own
            _log.exception("no practice", action="practice.failed", connection=self._connection_id)
            self.close(CloseReason.FAILED)
            return
        self._border.tell(practice.opened)
        if hello.mcp:
            self._mcp.start()
        else:
            self._mcp.start_without()

    def _dispatch(self, message: DeviceMessage, practice: Practice) -> None:
        match message:
            case ListenStart(mode):
                self._listening = mode
                self._border.tell(practice.listen_started, mode)
            case ListenStop():
                self._listening = None
                self._border.tell(practice.listen_stopped)
            case ListenDetect(text):
                detected = tell_apart(text)
                if detected is None:
                    self._ignore("detect", "unreadable")
                else:
                    self._border.tell(practice.detected, detected)
            case Abort(reason):
                self._abort(reason, practice)
            case Mcp(payload):
                self._mcp.receive(payload)

    def _abort(self, reason: str, practice: Practice) -> None:
        """Stop, and always answer: after its button a device waits for `tts stop`."""
        if not self._player.stop():
            self._send(self._downlink.tts_stop)
        self._border.tell(practice.aborted, reason)

    def _tools_listed(self) -> None:
        if self._border.practice:
            self._border.tell(self._border.practice.tools_listed)

    def _ignore(self, what: str, why: str) -> None:
        """Count what cannot be read; too much of it ends the connection."""
        self._malformed += 1
        _log.debug("ignored", action="device.ignored", what=what, why=why)
        if not self._broken.takes(1, self._loop.time()):
            self.close(CloseReason.MALFORMED)

    # Sending

    def _send(self, message: str | bytes) -> None:
        if self._ended:
            return
        self._sent_s = self._loop.time()
        self._wire.send(message)
        if self._wire.unsent_bytes() > self._rules.unsent_bytes:
            self.close(CloseReason.SLOW)

    def _send_packet(self, packet: bytes, at_ms: int) -> None:
        self._send(pack(self._version or BinaryVersion.BARE, packet, at_ms))

    def _act(self, message: str) -> None:
        self._worded_s = self._loop.time()
        self._send(message)

    def _send_mcp(self, payload: Mapping[str, Any]) -> None:
        self._send(self._downlink.mcp(payload))

    def _tts_started(self, text: str) -> None:
        """Make the device speak, which mutes its microphone unless it is full duplex."""
        if self._listening is not ListenMode.REALTIME:
            self._listening = None
        self._act(self._downlink.tts_start)
        self._tts_sentence(text)

    def _tts_sentence(self, text: str) -> None:
        if text:
            self._send(self._downlink.sentence_start(text))

    # The clock

    @property
    def in_use(self) -> bool:
        """Whether a clip plays, a tool works or a task runs."""
        return self._player.playing or self._mcp.calling or self._border.busy()

    def _silent(self, now_s: float) -> bool:
        """Whether nothing happens: neither side says a word, and there is no voice, or only that.

        A microphone that streams is no sign of a lesson for ever, and a silent room none of its end
        while a clip or a task runs.
        """
        unheard_s = now_s - max(self._worded_s, self._voiced_s)
        unsaid_s = now_s - self._worded_s
        return unheard_s >= self._rules.idle_s or unsaid_s >= self._rules.noise_s

    def _look(self) -> None:
        """Close what is silent, and keep alive what is not."""
        now_s = self._loop.time()
        if self._border.practice is None:
            if now_s - self._opened_s >= self._rules.hello_s:
                self.close(CloseReason.NO_HELLO)
        elif self.in_use:
            self._worded_s = now_s
        elif self._silent(now_s):
            self.close(CloseReason.SILENT)
        if self._ended:
            return
        if now_s - self._sent_s >= self._rules.keep_alive_s:
            self._send(self._downlink.llm(self._emotion))
        self._timer = self._loop.call_later(self._rules.look_s, self._look)
