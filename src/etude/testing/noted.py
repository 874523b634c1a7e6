"""A record that is kept in memory, for tests of what practice writes; or that always fails."""

from collections.abc import Mapping
from typing import Any

from etude.practice.recorder import Recording
from etude.practice.records import EndReason, Turn


class NotedRecording(Recording):
    """Notes each call as a tuple: its name, then what was said.

    Attributes:
        notes: the calls in order.
        turns: the turns among them.
        broken: every call raises, after it was noted.
    """

    def __init__(self, session_id: str = "session-1", *, broken: bool = False) -> None:
        """Begin with nothing."""
        self.session_id = session_id
        self.notes: list[tuple[Any, ...]] = []
        self.turns: list[Turn] = []
        self.broken = broken

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """Return what was said in the calls of one name."""
        return [note[1:] for note in self.notes if note[0] == name]

    def phase(self, to: str) -> None:
        """Note it."""
        self._note("phase", to)

    def asked(
        self, step_index: int, signal: str, prompt_text: str, expected_text: str | None
    ) -> None:
        """Note it."""
        self._note("asked", step_index, signal, prompt_text, expected_text)

    def window_closed(self, step_index: int, signal: str, window_ms: int, heard: bool) -> None:  # noqa: FBT001 - as `Recording`
        """Note it."""
        self._note("window_closed", step_index, signal, window_ms, heard)

    def turn(self, turn: Turn, signal: str) -> None:
        """Note it, and keep the turn."""
        self.turns.append(turn)
        self._note("turn", turn.step_index, signal)

    def positive(self, event_type: str, signal: str, value: Mapping[str, Any]) -> None:
        """Note it."""
        self._note("positive", event_type, signal, dict(value))

    def disconnected(self, step_index: int) -> None:
        """Note it."""
        self._note("disconnected", step_index)

    def end(self, reason: EndReason) -> None:
        """Note it."""
        self._note("end", reason)

    def _note(self, *note: Any) -> None:  # noqa: ANN401 - whatever is said
        self.notes.append(note)
        if self.broken:
            reason = "the record is broken"
            raise OSError(reason)
