"""What a task says for the record: guarded, so that no fault of keeping reaches the clock.

The positives are about effort and about nothing else (`docs/rules.md 21`).
"""

from collections.abc import Callable
from typing import Final

import structlog

from etude.practice.recorder import Recording
from etude.practice.records import EndReason, Turn

_log = structlog.get_logger(__name__)

FIRST_STREAKS: Final = (3, 5)
"""The streaks of heard turns that are noted first; then each sum of the last two: 8, 13 …"""


class Evidence:
    """The record of one session of a task."""

    def __init__(self, recording: Recording | None, signal: str) -> None:
        """Write to `recording`, None = nowhere; `signal` names what the learner does in a turn."""
        self._recording = recording
        self._signal = signal
        self._streak = 0
        self._noted, self._next = FIRST_STREAKS

    def began(self) -> None:
        """The first step is about to begin: preparation is over."""
        self._keep(lambda record: record.phase("operation"))

    def asked(self, step_index: int, prompt_text: str, expected_text: str | None) -> None:
        """A step has begun."""
        self._keep(lambda to: to.asked(step_index, self._signal, prompt_text, expected_text))

    def window_closed(self, step_index: int, window_ms: int, *, heard: bool) -> None:
        """The clock of a window has run out."""
        self._keep(lambda to: to.window_closed(step_index, self._signal, window_ms, heard))

    def turn(self, turn: Turn) -> None:
        """A turn is over."""
        self._keep(lambda to: to.turn(turn, self._signal))
        self._streak = self._streak + 1 if turn.heard else 0
        if not turn.heard:
            self._noted, self._next = FIRST_STREAKS
        elif self._streak == self._noted:
            name = f"heard_turns_streak_{self._streak}"
            self._positive("streak", name, {"streak_length": self._streak})
            self._noted, self._next = self._next, self._noted + self._next

    def disconnected(self, step_index: int) -> None:
        """The connection is lost; the session may be resumed at this step."""
        self._keep(lambda to: to.disconnected(step_index))

    def ended(self, reason: EndReason) -> None:
        """The task is over."""
        if reason is EndReason.LIST_COMPLETED:
            self._keep(lambda to: to.phase("cleanup"))
            name = "lesson_completed"
            self._positive("achievement", name, {"criteria_met": [name]})
        self._keep(lambda to: to.end(reason))

    def _positive(self, event_type: str, signal: str, value: dict[str, object]) -> None:
        self._keep(lambda to: to.positive(event_type, signal, value))

    def _keep(self, write: Callable[[Recording], None]) -> None:
        if self._recording is None:
            return
        try:
            write(self._recording)
        except Exception:  # noqa: BLE001 - the clock goes on whatever happens to the record
            _log.exception("a part of the record is lost", action="record.failed")
