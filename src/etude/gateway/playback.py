"""Streams clips to devices in real time, from packets that were encoded before.

Frame n is due at start + n x frame length on the loop's clock, so an error never adds up. One
`Ticker` wakes for all streams of a loop: what is due within the next few milliseconds goes in one
turn, which costs less than a timer for each frame. The start and the end of a clip, which the step
clock hangs on, have timers of their own.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from etude.gateway.ports import PlaybackEnd
from etude.speech.clips import EncodedClip

_log = structlog.get_logger(__name__)


HOLD_S: Final = 2.0
"""How long a device is kept speaking between two clips of one speech."""


class Pacing(msgspec.Struct, frozen=True, kw_only=True):
    """When what is sent.

    Attributes:
        lead_ms: between `tts start` and the first frame: a device loses frames while it changes
            to speaking.
        tail_ms: between the end of the last frame and `tts stop`: earlier, the last word is cut.
        ahead_frames: frames sent ahead of their time, 0 to 3: more makes small boards stumble.
        burst_frames: frames sent at once after a standstill of ours, `ahead_frames` included; if
            more are late, the rest of the clip moves instead.
    """

    lead_ms: int = 80
    tail_ms: int = 200
    ahead_frames: int = 1
    burst_frames: int = 4


class Ticker:
    """Wakes once for all streams whose next frame is due within the same slot."""

    SLOT_S: Final = 0.005

    def __init__(self) -> None:
        """Wake in the running loop; nothing is scheduled yet."""
        self._loop = asyncio.get_running_loop()
        self._slots: dict[int, list[Callable[[], None]]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def at(self, due_s: float, work: Callable[[], None]) -> None:
        """Call `work` at `due_s` of the loop's time, at most one slot later."""
        slot = int(due_s / self.SLOT_S) + 1
        waiting = self._slots.get(slot)
        if waiting is None:
            self._slots[slot] = [work]
            self._timers[slot] = self._loop.call_at(slot * self.SLOT_S, self._tick, slot)
        else:
            waiting.append(work)

    def _tick(self, slot: int) -> None:
        del self._timers[slot]
        for work in self._slots.pop(slot):
            try:
                work()
            except Exception:  # noqa: BLE001 - one stream's failure must not silence the others
                _log.exception("a stream failed", action="playback.failed")


class _Stream:
    """One clip on its way."""

    __slots__ = ("ended", "frame_s", "handle", "more", "next", "packets", "start_s")

    def __init__(
        self, clip: EncodedClip, ended: Callable[[PlaybackEnd], None], *, more: bool
    ) -> None:
        self.packets = clip.packets
        self.frame_s = clip.frame_ms / 1000
        self.ended = ended
        self.more = more
        self.start_s = 0.0
        self.next = 0
        self.handle: asyncio.TimerHandle | None = None


class Player:
    """What one connection plays. All methods return at once.

    A stream that is not the current one any more sends nothing: every callback compares. So nothing
    stale leaves after a stop, whatever was scheduled.

    Args:
        ticker: shared by all connections of the loop.
        pacing: when what is sent.
        send: sends one Opus packet, with its place in the clip in milliseconds.
        started: sends `tts start` and the text.
        sentence: sends the text of a clip that goes on with what is being said.
        stopped: sends `tts stop`.
        guard: calls what others gave us; their errors are theirs.
    """

    def __init__(
        self,
        ticker: Ticker,
        pacing: Pacing,
        *,
        send: Callable[[bytes, int], None],
        started: Callable[[str], None],
        sentence: Callable[[str], None],
        stopped: Callable[[], None],
        guard: Callable[[Callable[[PlaybackEnd], None], PlaybackEnd], None],
    ) -> None:
        """Play nothing yet."""
        self._loop = asyncio.get_running_loop()
        self._ticker = ticker
        self._pacing = pacing
        self._send = send
        self._started = started
        self._sentence = sentence
        self._stopped = stopped
        self._guard = guard
        self._current: _Stream | None = None
        self._held: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def playing(self) -> bool:
        """Whether a clip is on its way, its tail included, or is to follow."""
        return self._current is not None or self._held is not None

    def play(
        self,
        clip: EncodedClip,
        ended: Callable[[PlaybackEnd], None],
        text: str,
        *,
        more: bool = False,
    ) -> None:
        """See `Device.play`."""
        if self._closed:
            self._later(ended, PlaybackEnd.CLOSED)
            return
        before = self._take()
        if before:
            self._stopped()
            self._later(before.ended, PlaybackEnd.STOPPED)
        stream = _Stream(clip, ended, more=more)
        self._current = stream
        if self._let_go():
            self._sentence(text)
            stream.start_s = self._loop.time()
        else:
            self._started(text)
            stream.start_s = self._loop.time() + self._pacing.lead_ms / 1000
        stream.handle = self._loop.call_at(stream.start_s, self._send_due, stream)

    def stop(self) -> bool:
        """Stop what plays, with `STOPPED`; False if nothing did, and nothing was sent."""
        stream, held = self._take(), self._let_go()
        if stream is None and not held:
            return False
        self._stopped()
        if stream is not None:
            self._guard(stream.ended, PlaybackEnd.STOPPED)
        return True

    def close(self) -> None:
        """The connection has ended: what plays ends with `CLOSED`, nothing is sent."""
        self._closed = True
        self._let_go()
        stream = self._take()
        if stream:
            self._guard(stream.ended, PlaybackEnd.CLOSED)

    def _take(self) -> _Stream | None:
        stream, self._current = self._current, None
        if stream and stream.handle:
            stream.handle.cancel()
        return stream

    def _let_go(self) -> bool:
        """Hold the device's speech no longer; whether it was held."""
        held, self._held = self._held, None
        if held:
            held.cancel()
        return held is not None

    def _not_followed(self) -> None:
        self._held = None
        self._stopped()

    def _later(self, ended: Callable[[PlaybackEnd], None], how: PlaybackEnd) -> None:
        self._loop.call_soon(self._guard, ended, how)

    def _send_due(self, stream: _Stream) -> None:
        """Send the frames that are due, and see to the next one or to the end."""
        if stream is not self._current:
            return
        due = self._due(stream)
        while stream.next < due and stream is self._current:  # a slow device is cut while sending
            packet = stream.packets[stream.next]
            at_ms = round(stream.next * stream.frame_s * 1000)
            stream.next += 1
            self._send(packet, at_ms)
        if stream is self._current:
            self._schedule(stream)

    def _due(self, stream: _Stream) -> int:
        """Return how many frames should have been sent by now; after a standstill, move the clip.

        A device that got nothing for a while has run dry and plays the rest later, so the end moves
        too; sending it all at once would overflow small boards.
        """
        passed_s = self._loop.time() - stream.start_s
        due = int(passed_s / stream.frame_s + 1e-6) + 1 + self._pacing.ahead_frames
        late = due - stream.next - self._pacing.burst_frames
        if late > 0:
            stream.start_s += late * stream.frame_s
            due -= late
        return min(due, len(stream.packets))

    def _schedule(self, stream: _Stream) -> None:
        if stream.next < len(stream.packets):
            ahead = stream.next - self._pacing.ahead_frames
            due_s = stream.start_s + ahead * stream.frame_s
            self._ticker.at(due_s, lambda: self._send_due(stream))
            return
        end_s = stream.start_s + len(stream.packets) * stream.frame_s
        if not stream.more:
            end_s += self._pacing.tail_ms / 1000
        stream.handle = self._loop.call_at(end_s, self._finish, stream)

    def _finish(self, stream: _Stream) -> None:
        if stream is self._current:
            self._current = None
            if stream.more:
                self._held = self._loop.call_later(HOLD_S, self._not_followed)
            else:
                self._stopped()
            self._guard(stream.ended, PlaybackEnd.COMPLETED)
