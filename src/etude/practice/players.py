"""Two ways to play a clip, one face: from the device's card, or streamed.

Which one a task gets: `docs/practice.md §Card or stream`. A player lives as long as its connection
and plays one clip at a time. `ended` is called once for each clip that was not stopped from here,
never from within `play`.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

import msgspec
import structlog

from etude.gateway.ports import Device, PlaybackEnd, SkillEnd, SkillEvent, ToolFailure, ToolResult
from etude.practice.records import LONGEST_CLIP_MS, Clip
from etude.practice.tasks import Task
from etude.speech.clips import EncodedClip

WATCHDOG_MARGIN_S: Final = 5.0
"""How much longer than it lasts a clip may take: the device's queues, its card, the network."""
WATCHDOG_UNKNOWN_S: Final = 120.0
"""How long the end of a clip of unknown length is waited for."""
EARLY_S: Final = 0.5
"""A clip cannot have played longer than since it was asked for, give or take this."""
OWED_S: Final = 5.0
"""How long after a stop the event about it may still come."""

_log = structlog.get_logger(__name__)


class Outcome(StrEnum):
    """How a clip ended."""

    PLAYED = "played"
    STOPPED = "stopped"
    """The learner stopped it."""
    FAILED = "failed"
    """It could not be played, or nothing was heard of it any more. Practice goes on."""


class ClipEnd(msgspec.Struct, frozen=True):
    """A clip has ended; `duration_ms` is 0 if nobody knows how long it is."""

    outcome: Outcome
    duration_ms: int


Ended = Callable[[ClipEnd], None]


class Player(Protocol):
    """Plays clips on one device."""

    backend: str

    def play(self, task: Task, clip: Clip, ended: Ended, repeat: int = 1) -> None:
        """Play a clip `repeat` times. What was playing is stopped, and its `ended` not called."""

    def stop(self) -> None:
        """Stop, without calling `ended`."""

    def skill_event(self, event: SkillEvent) -> None:
        """The device says that a file on its card has ended."""


class _Outstanding(msgspec.Struct, frozen=True, eq=False):
    task: Task
    clip: Clip
    ended: Ended
    asked_s: float
    repeat: int

    @property
    def known_ms(self) -> int | None:
        """How long it plays, None = unknown."""
        known = self.clip.duration_ms
        return known * self.repeat if known else None


class CardPlayer:
    """Plays what is on the card, with the device's tools.

    The reply to a tool call is looked at when it comes and never waited for: the clip's end is the
    skill event, and a watchdog stands in for one that does not come.
    """

    backend = "sd"

    def __init__(self, device: Device, loop: asyncio.AbstractEventLoop) -> None:
        """Play on `device`."""
        self._device = device
        self._loop = loop
        self._current: _Outstanding | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._owed_until_s = -1.0

    def play(self, task: Task, clip: Clip, ended: Ended, repeat: int = 1) -> None:
        """Ask the device to play a file."""
        self._clear()
        current = _Outstanding(task, clip, ended, self._loop.time(), repeat)
        self._current = current
        known_ms = current.known_ms
        wait_s = WATCHDOG_UNKNOWN_S if known_ms is None else known_ms / 1000 + WATCHDOG_MARGIN_S
        self._watchdog = self._loop.call_later(wait_s, self._unheard, current)
        call = self._device.call_tool("self.mp3.play", {"path": clip.path, "repeat": repeat})
        call.add_done_callback(partial(self._replied, current))

    def stop(self) -> None:
        """Ask the device to stop; the event that it sends about it is expected."""
        if self._current is None:
            return
        self._clear()
        self._owed_until_s = self._loop.time() + OWED_S
        self._device.call_tool("self.mp3.stop", {})

    def skill_event(self, event: SkillEvent) -> None:
        """End the clip that plays, if the event can be about it; any other is passed over."""
        current = self._current
        if (
            current is None
            or (event.app_id, event.task_id) != (current.task.app_id, current.task.task_id)
            or self._about_earlier(event, current)
        ):
            _log.info("skill event passed over", action="skill_event.ignored", end=event.end.value)
            return
        if event.end is SkillEnd.STOPPED:
            self._end(current, Outcome.STOPPED, 0)
            return
        measured = round((self._loop.time() - current.asked_s) * 1000)
        reported = event.duration_ms or current.known_ms or min(measured, LONGEST_CLIP_MS)
        self._end(current, Outcome.PLAYED, reported)

    def _about_earlier(self, event: SkillEvent, current: _Outstanding) -> bool:
        """Whether it is the late event of a clip that was stopped, or given up by the watchdog."""
        now_s = self._loop.time()
        if now_s > self._owed_until_s:
            return False
        played_s = now_s - current.asked_s + EARLY_S
        late = event.end is SkillEnd.STOPPED or (event.duration_ms or 0) / 1000 > played_s
        if late:
            self._owed_until_s = -1.0
        return late

    def _replied(self, current: _Outstanding, call: "asyncio.Task[ToolResult]") -> None:
        if current is not self._current or call.cancelled() or call.exception() is not None:
            return
        failure = call.result().failure
        if failure in {ToolFailure.REFUSED, ToolFailure.UNKNOWN_TOOL}:
            _log.warning("the device does not play", action="play.refused", failure=failure.value)
            self._end(current, Outcome.FAILED, current.known_ms or 0)

    def _unheard(self, current: _Outstanding) -> None:
        if current is not self._current:
            return
        _log.warning("no end of a clip was reported", action="play.watchdog")
        self._owed_until_s = self._loop.time() + WATCHDOG_UNKNOWN_S
        known_ms = current.known_ms
        self._end(current, Outcome.PLAYED if known_ms else Outcome.FAILED, known_ms or 0)

    def _end(self, current: _Outstanding, outcome: Outcome, duration_ms: int) -> None:
        self._clear()
        current.ended(ClipEnd(outcome, duration_ms))

    def _clear(self) -> None:
        self._current = None
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None


class StreamPlayer:
    """Streams clips that the server has encoded; the stream's end is the clip's."""

    backend = "stream"

    def __init__(
        self,
        device: Device,
        loop: asyncio.AbstractEventLoop,
        encoded: Callable[[Clip], EncodedClip | None],
    ) -> None:
        """Stream to `device`; `encoded` looks a clip up in memory."""
        self._device = device
        self._loop = loop
        self._encoded = encoded
        self._current: _Outstanding | None = None

    def play(self, task: Task, clip: Clip, ended: Ended, repeat: int = 1) -> None:
        """Stream a clip; one that is not there is a failure, and practice goes on."""
        self._begin(_Outstanding(task, clip, ended, self._loop.time(), repeat), repeat)

    def stop(self) -> None:
        """Stop streaming."""
        if self._current is not None:
            self._current = None
            self._device.stop_playing()

    def skill_event(self, event: SkillEvent) -> None:
        """Pass over: what is streamed has no event of the card."""
        _log.info("skill event passed over", action="skill_event.ignored", end=event.end.value)

    def _begin(self, current: _Outstanding, left: int) -> None:
        self._current = current
        encoded = self._encoded(current.clip)
        if encoded is None:
            _log.warning("a clip is not there", action="play.missing")
            self._loop.call_soon(self._end, current, Outcome.FAILED, current.known_ms or 0)
            return
        ended = partial(self._streamed, current, encoded.duration_ms, left)
        self._device.play(encoded, ended, text=current.clip.expected_text or "")

    def _streamed(
        self, current: _Outstanding, duration_ms: int, left: int, end: PlaybackEnd
    ) -> None:
        if current is not self._current or end is PlaybackEnd.CLOSED:
            return
        if end is PlaybackEnd.STOPPED:
            self._end(current, Outcome.STOPPED, 0)
        elif left > 1:
            self._begin(current, left - 1)
        else:
            self._end(current, Outcome.PLAYED, duration_ms)

    def _end(self, current: _Outstanding, outcome: Outcome, duration_ms: int) -> None:
        if current is self._current:
            self._current = None
            current.ended(ClipEnd(outcome, duration_ms))


def plays_card(task: Task, tools: Mapping[str, object] | None) -> bool:
    """Whether a device plays a task's files from its card, by the tools that it has."""
    wanted = ("self.mp3.get_list", "self.mp3.play", "self.mp3.stop")
    return tools is not None and all(tool in tools and task.allows(tool) for tool in wanted)
