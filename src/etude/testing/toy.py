"""A device for tests of practice without sockets: `gateway.ports.Device`, in the loop's time.

With files it has a card and its tools, else it is stock firmware. What it is told is kept in
`heard`, so that a test can say what a learner never hears.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from etude.gateway.detect import tell_apart
from etude.gateway.ports import (
    CloseReason,
    ListenMode,
    PlaybackEnd,
    Practice,
    Tool,
    ToolFailure,
    ToolResult,
    VoiceEntry,
)
from etude.speech.clips import EncodedClip
from etude.testing.device_tools import ToolRefusedError
from etude.testing.fake_card import FakeCard

DRAIN_S: Final = 0.2
"""How long after the last frame a stream ends."""
REPLY_S: Final = 0.02
"""How long a tool's reply takes."""
VOICE: Final = bytes([0x58, *range(80)])
"""A packet of 60 ms that is large enough to be voice; what it says is noise."""
SILENCE: Final = b"\x58"
"""A packet of 60 ms as DTX sends it."""


class Heard(msgspec.Struct, frozen=True):
    """Something the device was told: `play`, `stop`, `show`, `feel`, `tool`, `mic`, `close`."""

    at_s: float
    kind: str
    what: str


class Toy:
    """A device and its learner's hands.

    Attributes:
        heard: everything that came from the server, in order.
        deaf_tools: tools whose calls are never answered.
        failing_tools: tools that refuse.
        tools: None until `list_tools`.
    """

    def __init__(self, card: FakeCard | None = None, device_id: str = "02:00:00:00:00:01") -> None:
        """Make it in a running loop; `card` = the SD firmware."""
        self._loop = asyncio.get_running_loop()
        self._id = device_id
        self._card = card
        self._streaming: tuple[Callable[[PlaybackEnd], None], asyncio.TimerHandle] | None = None
        self._practice: Practice | None = None
        self.heard: list[Heard] = []
        self.deaf_tools: set[str] = set()
        self.failing_tools: set[str] = set()
        self.tools: Mapping[str, Tool] | None = None
        self.listening: ListenMode | None = ListenMode.AUTO
        if card is not None:
            card.plug_in(self._card_says)

    device_id = property(lambda self: self._id)
    connection_id = property(lambda _self: "connection-1")

    def connect(self, practice: Practice) -> None:
        """Open the connection and answer `tools/list` a moment later."""
        self._practice = practice
        practice.opened()
        self._loop.call_later(REPLY_S, self.list_tools)

    def list_tools(self) -> None:
        """Say which tools there are."""
        found = self._card.tools() if self._card else ()
        self.tools = {tool.name: Tool(name=tool.name) for tool in found}
        self._reached().tools_listed()

    def say(self, text: str) -> None:
        """Send a text as `listen/detect` does, marks and all."""
        detected = tell_apart(text)
        if detected is not None:
            self._reached().detected(detected)

    def press(self, text: str) -> None:
        """Send the text of a voice entry."""
        self._reached().detected(VoiceEntry(text=text))

    def speak(self, packets: int = 1, packet: bytes = VOICE) -> None:
        """Send microphone packets, all at once."""
        for _ in range(packets):
            self._reached().audio(packet, self._loop.time())

    def abort(self, reason: str = "") -> None:
        """Press the button: what streams has been stopped before practice hears of it."""
        self.stop_playing()
        self._reached().aborted(reason)

    def drop(self, reason: CloseReason = CloseReason.DEVICE_LEFT) -> None:
        """Lose the connection."""
        self._end(PlaybackEnd.CLOSED)
        practice, self._practice = self._reached(), None
        practice.closed(reason)

    def times(self, kind: str) -> list[float]:
        """Return when something of a kind was heard."""
        return [one.at_s for one in self.heard if one.kind == kind]

    def played(self) -> list[str]:
        """Return what was played, streamed or from the card, in order."""
        return [one.what for one in self.heard if one.kind == "play"]

    # What practice calls: `gateway.ports.Device`.

    def play(
        self,
        clip: EncodedClip,
        ended: Callable[[PlaybackEnd], None],
        text: str = "",
        *,
        more: bool = False,
    ) -> None:
        """Stream for as long as the packets last."""
        self.stop_playing()
        self._note("play", text)
        lasts_s = clip.packets_ms / 1000 + (0 if more else DRAIN_S)
        timer = self._loop.call_later(lasts_s, self._end, PlaybackEnd.COMPLETED)
        self._streaming = ended, timer

    def stop_playing(self) -> None:
        """Stop streaming."""
        if self._streaming is not None:
            self._note("stop", "")
            self._end(PlaybackEnd.STOPPED)

    def call_tool(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float = 15.0
    ) -> "asyncio.Task[ToolResult]":
        """Run a tool a moment later."""
        self._note("tool", name)
        return self._loop.create_task(self._run(name, arguments, timeout_s))

    def show(self, text: str) -> None:
        """Show a text."""
        self._note("show", text)

    def feel(self, emotion: str) -> None:
        """Set the face."""
        self._note("feel", emotion)

    def reopen_microphone(self) -> None:
        """Listen again."""
        self._note("mic", "")
        self.listening = ListenMode.AUTO

    def close(self, reason: CloseReason) -> None:
        """End the connection."""
        self._note("close", reason.value)

    def _note(self, kind: str, what: str) -> None:
        self.heard.append(Heard(self._loop.time(), kind, what))

    def _reached(self) -> Practice:
        if self._practice is None:
            reason = "not connected"
            raise ConnectionError(reason)
        return self._practice

    def _end(self, how: PlaybackEnd) -> None:
        streaming, self._streaming = self._streaming, None
        if streaming is not None:
            streaming[1].cancel()
            streaming[0](how)

    async def _run(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> ToolResult:
        if name in self.deaf_tools:
            await asyncio.sleep(timeout_s)
            return ToolResult(failure=ToolFailure.TIMEOUT)
        await asyncio.sleep(REPLY_S / 2)
        tools = {tool.name: tool for tool in self._card.tools()} if self._card else {}
        if name in self.failing_tools or name not in tools:
            return ToolResult(failure=ToolFailure.REFUSED)
        tool = tools[name]
        usual = {key: one.default for key, one in tool.properties.items()}
        try:
            text = tool.run({**usual, **arguments})
        except ToolRefusedError as refused:
            return ToolResult(failure=ToolFailure.REFUSED, message=str(refused))
        await asyncio.sleep(REPLY_S / 2)
        return ToolResult(text=text)

    def _card_says(self, event: str, path: str) -> None:
        if event == "begins":
            self._note("play", path)
        elif self._practice is not None:
            self.say(event)
