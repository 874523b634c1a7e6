"""The JSON messages of the wire: lenient in what is read, strict in what is written.

Firmware glues some of its messages together without escaping, so broken JSON is normal and never a
reason to end a connection: `read_message` returns why a message says nothing instead of raising.
What is written is never longer than a device's memory takes (8 KB).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from etude.gateway.errors import DeviceMessageTooLongError
from etude.gateway.frames import BinaryVersion, binary_version
from etude.gateway.ports import ListenMode

LONGEST_DOWNLINK_BYTES: Final = 8_192
_TEXT_BYTES: Final = 6_000
"""Of a text to be shown, as JSON: leaves room for the rest of its message."""
_CUT_CHARACTERS: Final = 990
"""However its characters are written as JSON (six bytes at most), such a text fits."""
_REASON_CHARACTERS: Final = 64


class AudioParams(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream of Opus packets is made of. The downlink's is the truth about what we send."""

    sample_rate: int = 24_000
    frame_ms: int = 60
    channels: int = 1


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The device's first message.

    Attributes:
        version: the layout of binary messages, None if it names none that is known.
        mcp: whether the device has tools.
        audio: what its microphone sends; firmware's own values where it does not say.
    """

    version: BinaryVersion | None = None
    mcp: bool = False
    audio: AudioParams = AudioParams(sample_rate=16_000)


class ListenStart(msgspec.Struct, frozen=True):
    """The microphone streams."""

    mode: ListenMode


class ListenStop(msgspec.Struct, frozen=True):
    """The microphone has been stopped by hand."""


class ListenDetect(msgspec.Struct, frozen=True):
    """A wake word or another text."""

    text: str


class Abort(msgspec.Struct, frozen=True):
    """Stop speaking."""

    reason: str


class Mcp(msgspec.Struct, frozen=True):
    """A reply or notification of the device's tools (JSON-RPC 2.0)."""

    payload: Mapping[str, Any]


class Nothing(StrEnum):
    """Why a message says nothing."""

    BROKEN_JSON = "broken_json"
    NO_OBJECT = "no_object"
    NO_TYPE = "no_type"
    WRONG_FIELD = "wrong_field"
    NOT_OURS = "not_ours"
    """Well-formed, but of a kind that means nothing here: `iot`, `ping`, `goodbye`, a fork's."""

    @property
    def malformed(self) -> bool:
        """Whether a device that is sound would not have sent it."""
        return self is not Nothing.NOT_OURS


DeviceMessage = Hello | ListenStart | ListenStop | ListenDetect | Abort | Mcp


def read_message(text: str | bytes) -> DeviceMessage | Nothing:
    """Return what a device says, or why it says nothing. Never raises."""
    try:
        message = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return Nothing.BROKEN_JSON
    if not isinstance(message, dict):
        return Nothing.NO_OBJECT
    kind = message.get("type")
    if not isinstance(kind, str):
        return Nothing.NO_TYPE
    reader = _READERS.get(kind)
    return reader(message) if reader else Nothing.NOT_OURS


def _hello(message: Mapping[str, Any]) -> Hello:
    features = _object(message.get("features"))
    return Hello(
        version=binary_version(message.get("version")),
        mcp=features.get("mcp") is True,
        audio=_audio(_object(message.get("audio_params"))),
    )


def _audio(params: Mapping[str, Any]) -> AudioParams:
    return AudioParams(
        sample_rate=_whole(params.get("sample_rate"), 8_000, 48_000, 16_000),
        frame_ms=_whole(params.get("frame_duration"), 5, 120, 60),
        channels=_whole(params.get("channels"), 1, 2, 1),
    )


def _listen(message: Mapping[str, Any]) -> DeviceMessage | Nothing:
    state = message.get("state")
    if state == "start":
        return ListenStart(_mode(message.get("mode")))
    if state == "stop":
        return ListenStop()
    text = message.get("text")
    if state == "detect" and isinstance(text, str):
        return ListenDetect(text)
    return Nothing.WRONG_FIELD


def _mode(value: object) -> ListenMode:
    """Return the mode; clients that name none mean the server's end of a turn."""
    if isinstance(value, str) and value in set(ListenMode):
        return ListenMode(value)
    return ListenMode.AUTO


def _abort(message: Mapping[str, Any]) -> Abort:
    reason = message.get("reason")
    return Abort(reason[:_REASON_CHARACTERS] if isinstance(reason, str) else "")


def _mcp(message: Mapping[str, Any]) -> Mcp | Nothing:
    payload = message.get("payload")
    return Mcp(payload) if isinstance(payload, dict) else Nothing.WRONG_FIELD


_READERS: Final = {"hello": _hello, "listen": _listen, "abort": _abort, "mcp": _mcp}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: object, lowest: int, highest: int, otherwise: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return otherwise
    return value if lowest <= value <= highest else otherwise


class Downlink:
    """Writes the messages of one connection; each carries its `session_id` (CVE-2026-13491)."""

    def __init__(self, session_id: str) -> None:
        """Write for the connection `session_id`."""
        self._session_id = session_id
        self.tts_start: Final = self._write("tts", state="start")
        self.tts_stop: Final = self._write("tts", state="stop")

    def hello(self, audio: AudioParams, version: BinaryVersion) -> str:
        """Answer the device's hello; `audio` is what will be sent. Firmware needs every field."""
        return self._write(
            "hello",
            version=int(version),
            transport="websocket",
            audio_params={
                "format": "opus",
                "sample_rate": audio.sample_rate,
                "channels": audio.channels,
                "frame_duration": audio.frame_ms,
            },
        )

    def stt(self, text: str) -> str:
        """Show what was understood; a text that is too long is cut."""
        return self._write("stt", text=_fitting(text))

    def sentence_start(self, text: str) -> str:
        """Show what is being said; a text that is too long is cut."""
        return self._write("tts", state="sentence_start", text=_fitting(text))

    def llm(self, emotion: str, text: str = "") -> str:
        """Set the face."""
        return self._write("llm", emotion=emotion, text=_fitting(text))

    def mcp(self, payload: Mapping[str, Any]) -> str:
        """Carry a JSON-RPC request to the device's tools.

        Raises:
            DeviceMessageTooLongError: more than a device takes.
        """
        return self._write("mcp", payload=payload)

    def reboot(self) -> str:
        """Restart the device: the only `system` command that firmware knows."""
        return self._write("system", command="reboot")

    def alert(self, status: str, message: str, emotion: str) -> str:
        """Show a text with a sound; firmware needs all three."""
        return self._write(
            "alert", status=_fitting(status)[:64], message=_fitting(message), emotion=emotion
        )

    def custom(self, payload: Mapping[str, Any]) -> str:
        """Send what only builds with `RECEIVE_CUSTOM_MESSAGE` take.

        Raises:
            DeviceMessageTooLongError: more than a device takes.
        """
        return self._write("custom", payload=payload)

    def _write(self, kind: str, **fields: object) -> str:
        message = msgspec.json.encode({"type": kind, "session_id": self._session_id, **fields})
        if len(message) > LONGEST_DOWNLINK_BYTES:
            raise DeviceMessageTooLongError(
                type=kind, size_bytes=len(message), limit_bytes=LONGEST_DOWNLINK_BYTES
            )
        return message.decode()


def _fitting(text: str) -> str:
    """Return as much of a text as one message holds, without halves of surrogate pairs."""
    text = text.encode("utf-8", "replace").decode()
    fits = len(text) <= _CUT_CHARACTERS or len(msgspec.json.encode(text)) <= _TEXT_BYTES
    return text if fits else text[:_CUT_CHARACTERS] + "…"
