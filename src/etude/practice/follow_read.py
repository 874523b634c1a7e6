"""Follow-read: clip, window, clip, on the clock alone.

The protocol: `docs/practice.md §The clock of follow-read`. What was said, whether it was
recognised, kept or right changes nothing about when the next clip begins: a window is closed by its
timer, and the timer is set when the end of the clip arrives. Nothing here awaits anything.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from etude.practice.evidence import Evidence
from etude.practice.follow_read_moves import Move, Progress, State
from etude.practice.phrases import is_echo
from etude.practice.players import ClipEnd, Outcome, Player
from etude.practice.records import Clip, EndReason
from etude.practice.tasks import Task
from etude.practice.windows import GRACE_S, Window, window_ms

_log = structlog.get_logger(__name__)


def resolve_listen_ratio(learner_key: int | None, task: Task) -> float:
    """Return how much longer than a clip its window is: the task's own ratio, for every learner.

    Here a learner's level may choose it one day (`docs/practice.md §The clock of follow-read`).
    """
    del learner_key
    return task.listen_ratio


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step: a clip (None = just a window), and what is read in it (None = unknown)."""

    clip: Clip | None
    expected_text: str | None

    @property
    def prompt_text(self) -> str:
        """The clip's path. Compared with nothing."""
        return self.clip.path if self.clip else ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a follow-read does: its steps, from which on, and how long its windows are."""

    task: Task
    steps: tuple[Step, ...]
    ratio: float
    first: int = 0

    def window_ms(self, duration_ms: int) -> int:
        """Return how long the window after a clip is."""
        return self.task.window_ms or window_ms(duration_ms, self.ratio)


class FollowRead:
    """One follow-read on one device; used up when it is over."""

    def __init__(
        self,
        plan: Plan,
        player: Player,
        evidence: Evidence,
        finished: Callable[[EndReason], None],
        stepped: Callable[[float], None] = lambda _: None,
        *,
        bounded: Callable[[], None] = lambda: None,
    ) -> None:
        """Make it, in the loop it will run in. `finished` is called once, unless it disconnects.

        `stepped` is called when the next clip has been sent, with the time it was due at; `bounded`
        when a window has opened and, after the next clip has been sent, when it has closed.
        """
        self._plan = plan
        self._player = player
        self._evidence = evidence
        self._finished = finished
        self._stepped = stepped
        self._bounded = bounded
        self._loop = asyncio.get_running_loop()
        self._progress = Progress(len(plan.steps), plan.first)
        self._window: Window | None = None
        self._closed: Window | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def state(self) -> State:
        """Where it is."""
        return self._progress.state

    @property
    def step(self) -> int:
        """The first step whose window has not closed."""
        return self._progress.step

    def begin(self) -> None:
        """Begin with the first step; one that was lost after its last step ends at once."""
        self._evidence.began()
        if self._progress.exhausted:
            self._finish(EndReason.LIST_COMPLETED)
        else:
            self._next()

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """File a packet into the window that it arrived for; outside of windows it is nobody's."""
        window = self._window_at(arrived_s)
        if window is not None:
            window.hear(packet, arrived_s)

    def recognised(self, text: str, at_s: float) -> None:
        """File what was said at `at_s`; the last text of a window stays. It steps nothing."""
        window = self._window_at(at_s)
        if window is not None and text and not is_echo(text, self._plan.task.enter_prompt):
            window.text = text
            window.heard = True

    def listen_stopped(self) -> None:
        """The clock alone closes a window."""

    def aborted(self) -> None:
        """Somebody stopped it."""
        self.leave(EndReason.PLAY_STOPPED)

    def leave(self, reason: EndReason) -> None:
        """End it at once: nothing plays any more, and the last turn is written first."""
        if self.state is State.OVER:
            return
        self._quiet()
        if self._window is not None:
            self._cut_short(self._window, reason)
        self._finish(reason)

    def disconnect(self) -> None:
        """The connection is gone: keep what is complete; the step itself can be resumed."""
        if self.state is State.OVER:
            return
        self._quiet()
        self._progress.make(Move.LEAVE)
        self._evidence.disconnected(self.step)

    def _next(self) -> None:
        step = self._plan.steps[self.step]
        self._evidence.asked(self.step, step.prompt_text, step.expected_text)
        if step.clip is None:
            self._open(0)
            return
        self._progress.make(Move.PLAY)
        try:
            self._player.play(self._plan.task, step.clip, self._clip_ended)
        except Exception:  # noqa: BLE001 - whatever cannot be played, the clock goes on
            _log.exception("a clip could not be played", action="play.failed")
            self._open(step.clip.duration_ms or 0)

    def _clip_ended(self, end: ClipEnd) -> None:
        if self.state is not State.PLAYING:
            return
        if end.outcome is Outcome.STOPPED:
            self.leave(EndReason.PLAY_STOPPED)
        else:
            self._open(end.duration_ms)

    def _open(self, duration_ms: int) -> None:
        self._progress.make(Move.OPEN)
        length_ms = self._plan.window_ms(duration_ms)
        window = Window(self.step, duration_ms, length_ms, self._loop.time())
        self._window = window
        self._timers["window"] = self._loop.call_at(window.closes_s, self._close, window)
        self._bounded()

    def _close(self, window: Window) -> None:
        self._progress.make(Move.CLOSE)
        self._evidence.window_closed(window.step_index, window.length_ms, heard=window.heard)
        self._window, self._closed = None, window
        self._timers["grace"] = self._loop.call_at(window.closes_s + GRACE_S, self._settle)
        if not self._progress.exhausted:
            self._next()
            self._stepped(window.closes_s)
        self._bounded()

    def _settle(self) -> None:
        """Write the turn of the closed window: what was late for it has come."""
        window, self._closed = self._closed, None
        if window is None:
            return
        self._write(window)
        if self._progress.exhausted and self.state is State.READY:
            self._finish(EndReason.LIST_COMPLETED)

    def _cut_short(self, window: Window, reason: EndReason) -> None:
        """Keep what was said in the open window. A voice alone may have been the exit phrase."""
        self._window = None
        if window.text is None and (reason is EndReason.EXIT_PHRASE or not window.heard):
            return
        window.cut_short(self._loop.time())
        self._evidence.window_closed(window.step_index, window.length_ms, heard=window.heard)
        self._write(window)

    def _write(self, window: Window) -> None:
        step = self._plan.steps[window.step_index]
        self._evidence.turn(window.turn(step.prompt_text, step.expected_text))

    def _window_at(self, at_s: float) -> Window | None:
        for window in (self._window, self._closed):
            if window is not None and window.takes(at_s):
                return window
        return None

    def _quiet(self) -> None:
        """Stop timers and sound, and write the turn that waited for what was late."""
        for timer in self._timers.values():
            timer.cancel()
        self._player.stop()
        window, self._closed = self._closed, None
        if window is not None:
            self._write(window)

    def _finish(self, reason: EndReason) -> None:
        self._progress.make(Move.LEAVE)
        self._evidence.ended(reason)
        self._finished(reason)
