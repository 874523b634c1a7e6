"""What connection and practice offer to each other (`docs/rules.md 47`).

`Practice` is fulfilled by `etude.practice.runtime`, `Device` by `etude.gateway.connection`. Every
method of `Practice` is called in the event loop's thread, in the order things happened, and returns
at once: it may schedule, it may not wait. An error it raises is logged and ends the task that runs
on the connection, never the connection and never another device's.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from etude.speech.clips import EncodedClip


class ListenMode(StrEnum):
    """How the device streams its microphone (`listen/start`)."""

    AUTO = "auto"
    MANUAL = "manual"
    REALTIME = "realtime"


class CloseReason(StrEnum):
    """Why a connection ended; one is kept and logged for each."""

    DEVICE_LEFT = "device_left"
    REPLACED = "replaced"
    SILENT = "silent"
    SLOW = "slow"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    FLOOD = "flood"
    NO_HELLO = "no_hello"
    REVOKED = "revoked"
    STOPPING = "stopping"
    FAILED = "failed"


class SkillEnd(StrEnum):
    """How playback on the device's card ended."""

    COMPLETED = "audio.completed"
    STOPPED = "audio.stopped"


class SkillEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`[skill_event]audio.completed|app|task|ms`: the card has played, or was stopped.

    `duration_ms` is None when missing, unreadable or not in 1 to 600,000 (`docs/rules.md 15`).
    """

    end: SkillEnd
    app_id: str
    task_id: str
    duration_ms: int | None


class AppTask(msgspec.Struct, frozen=True, kw_only=True):
    """`[app_task]name|…`: start a task by name, or `chat` (`docs/rules.md 23`)."""

    name: str
    arguments: tuple[str, ...]


class VoiceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`[voice_entry]text`: counts as a recognised entry phrase (`docs/rules.md 23`)."""

    text: str


class WakeWord(msgspec.Struct, frozen=True, kw_only=True):
    """Any other text of `listen/detect`: the wake word, or a text that somebody typed."""

    text: str


Detected = SkillEvent | AppTask | VoiceEntry | WakeWord


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the device, as its MCP `tools/list` names it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = {}


class ToolFailure(StrEnum):
    """Why a call of a tool brought no result."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    CLOSED = "closed"
    UNKNOWN_TOOL = "unknown_tool"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of a tool came to: `text`, or why there is none. Calls never raise."""

    text: str | None = None
    failure: ToolFailure | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the device did it."""
        return self.failure is None


class PlaybackEnd(StrEnum):
    """How a streamed clip ended."""

    COMPLETED = "completed"
    """`tts stop` has just been sent: the last frame was due, and 200 ms have passed."""
    STOPPED = "stopped"
    """Somebody asked (`abort`, exit phrase, another clip); `tts stop` was sent at once."""
    CLOSED = "closed"
    """The connection ended."""


class Device(Protocol):
    """One connected device. Lives as long as its connection; after `closed`, calls do nothing."""

    @property
    def device_id(self) -> str:
        """The device's id (its hardware address, lower case)."""

    @property
    def connection_id(self) -> str:
        """The id of this connection; also the wire's `session_id`."""

    @property
    def tools(self) -> Mapping[str, Tool] | None:
        """The device's tools by name; None until they were listed, or asked for in vain."""

    @property
    def listening(self) -> ListenMode | None:
        """How its microphone is streaming, None while it is not."""

    def play(
        self,
        clip: EncodedClip,
        ended: Callable[[PlaybackEnd], None],
        text: str = "",
        *,
        more: bool = False,
    ) -> None:
        """Stream a clip between `tts start` and `tts stop`, paced on the monotonic clock.

        What was playing is stopped first. `ended` is called exactly once, never from within `play`.
        `text` is sent as `sentence_start`, empty = none. With `more`, another clip is to follow in
        the same `tts`: `ended` comes with its last frame, `tts stop` only if nothing follows soon.
        """

    def stop_playing(self) -> None:
        """Stop what is being streamed; `ended` is called with `STOPPED` before this returns."""

    def call_tool(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float = 15.0
    ) -> "asyncio.Task[ToolResult]":
        """Call a tool of the device. The task never fails: look at `ToolResult.failure`."""

    def show(self, text: str) -> None:
        """Show what was understood (`stt`)."""

    def feel(self, emotion: str) -> None:
        """Set the face (`llm`)."""

    def reopen_microphone(self) -> None:
        """Send `tts start` and `tts stop`, after which stock firmware listens again."""

    def close(self, reason: CloseReason) -> None:
        """End the connection."""


class Practice(Protocol):
    """What runs on one connection. See the module for the rules of its methods."""

    @property
    def busy(self) -> bool:
        """Whether a task runs: a connection on which nothing else happens is kept open for it."""
        return False

    def failed(self) -> None:
        """A method, or a callback given to `Device`, has raised: end the task with `error`."""

    def opened(self) -> None:
        """The hellos have been exchanged."""

    def tools_listed(self) -> None:
        """`Device.tools` is known from now on."""

    def listen_started(self, mode: ListenMode) -> None:
        """The microphone streams."""

    def listen_stopped(self) -> None:
        """The device has stopped its microphone (manual mode)."""

    def detected(self, detected: Detected) -> None:
        """A text of `listen/detect`, told apart."""

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """One Opus packet of the microphone, never empty; `arrived_s` is the loop's time."""

    def aborted(self, reason: str) -> None:
        """The device asked to stop speaking. What was streamed has been stopped already."""

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> None:
        """A person or program asked for a task (`START_APP_TASK` for a stock device)."""

    def closed(self, reason: CloseReason) -> None:
        """The connection is over; nothing can be sent any more."""


PracticeFactory = Callable[[Device], Practice]
"""Makes what runs on a connection, once the client's hello has come."""
