"""The event types of the protocol: family, usual signals, version (`docs/events.md §Vocabulary`).

An unknown type is stored and linted, never dropped; an unknown signal is normal.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Family = Literal["lifecycle", "observation", "positive", "triple", "server"]


class EventType(msgspec.Struct, frozen=True):
    """A word of the vocabulary. `since` is the protocol version that brought it."""

    name: str
    family: Family
    since: str
    signals: tuple[str, ...] = ()


VOCABULARY: Final[Mapping[str, EventType]] = {
    kind.name: kind
    for kind in (
        EventType("session_start", "lifecycle", "0.1", ("session_begin",)),
        EventType("session_focus", "lifecycle", "0.4", ("focus_completed",)),
        EventType("session_end", "lifecycle", "0.1", ("session_complete",)),
        EventType(
            "phase_transition",
            "lifecycle",
            "0.1",
            ("preparation_to_operation", "operation_to_cleanup"),
        ),
        EventType(
            "phase_timeout", "lifecycle", "0.4", ("preparation_timeout", "operation_timeout")
        ),
        EventType(
            "posture_observation", "observation", "0.1", ("bow_hold_check", "left_hand_position")
        ),
        EventType(
            "audio_observation",
            "observation",
            "0.1",
            ("pitch_accuracy", "rhythm_stability", "tone_quality"),
        ),
        EventType("tempo_observation", "observation", "0.1", ("tempo_consistency", "tempo_change")),
        EventType(
            "technique_observation",
            "observation",
            "0.1",
            ("vibrato_detected", "shift_detected", "self_assessment"),
        ),
        EventType(
            "achievement",
            "positive",
            "0.3",
            ("intonation_stable_30s", "bow_straight_10s", "preparation_posture_ready"),
        ),
        EventType("improvement", "positive", "0.3", ("pitch_improved", "rhythm_more_stable")),
        EventType("streak", "positive", "0.3", ("correct_notes_streak_8",)),
        EventType("signal_check_requested", "triple", "0.5"),
        EventType("signal_observation", "triple", "0.5"),
        EventType("signal_detected", "triple", "0.5"),
        EventType("signal_contested", "triple", "0.5"),
        EventType("signal_reviewed", "server", "0.5"),
        EventType("speech_recognised", "server", "0.5", ("recognised_text",)),
        EventType("listen_window_closed", "lifecycle", "0.5"),
        EventType("task_event", "lifecycle", "0.5", ("reported",)),
        EventType("chat_message", "lifecycle", "0.5", ("user", "agent", "tool")),
        EventType("connection_lost", "lifecycle", "0.5", ("connection_lost",)),
        EventType("connection_resumed", "lifecycle", "0.5", ("connection_resumed",)),
    )
}

TRANSITION_TYPES: Final = frozenset({"phase_transition", "phase_timeout"})
"""The only types that `transition_source` belongs to."""


def family_of(event_type: str) -> Family | None:
    """Return the family of an event type, `None` for one that the vocabulary lacks."""
    kind = VOCABULARY.get(event_type)
    return None if kind is None else kind.family
