"""Events and sessions for tests, benches and demonstrations: plausible, the same each time.

event(confidence=0.4)                 # one event, everything else usual
session(200)                          # a whole practice of 200 events
lines(session(12, session_id="s-2"))  # as the journal has it
"""

import random
from collections.abc import Iterable
from typing import Any, Final

from etude.events.model import TIER_MEDIUM_FROM, Event
from etude.events.ndjson import encode_event

SESSION_ID: Final = "s-test-1"


def event(
    event_id: str = "e1",
    *,
    session_id: str = SESSION_ID,
    ts: float = 1.0,
    event_type: str = "posture_observation",
    signal: str = "bow_hold_check",
    value: Any = None,  # noqa: ANN401 - any JSON value
    confidence: float | None = 0.9,
    **others: Any,  # noqa: ANN401 - the rest of `Event`'s fields
) -> Event:
    """Return a good event: a bow hold that is right, unless said otherwise."""
    return Event(
        event_id=event_id,
        session_id=session_id,
        ts=ts,
        event_type=event_type,
        signal=signal,
        value={"correct": True} if value is None else value,
        confidence=confidence,
        **{"phase": "operation", **others},
    )


def session(count: int = 12, session_id: str = SESSION_ID, seed: int = 0) -> list[Event]:
    """Return a practice of `count` (at least 4) events with `seq`, as an edge would record it.

    The first tenth is preparation, the last cleanup; about one observation in eight is doubtful.
    """
    chance = random.Random(seed)  # noqa: S311 - seeded, so that every run sees the same session
    to_operation, to_cleanup = max(1, count // 10), count - max(2, count // 10)
    events = []
    for seq in range(1, count + 1):
        moved = {to_operation + 1: "operation", to_cleanup + 1: "cleanup"}.get(seq)
        phase = _phase(seq, to_operation, to_cleanup)
        if seq == 1:
            fields = _start()
        elif seq == count:
            fields = _end(float(count))
        elif moved is not None:
            fields = _transition("preparation" if moved == "operation" else "operation", moved)
        else:
            fields = _observation(chance)
        events.append(
            Event(
                event_id=f"{session_id}-{seq:05}",
                session_id=session_id,
                ts=float(seq - 1),
                phase=phase,
                seq=seq,
                **fields,
            )
        )
    return events


def lines(events: Iterable[Event]) -> list[bytes]:
    """Return events as lines without line ends."""
    return [encode_event(one) for one in events]


def body(events: Iterable[Event]) -> bytes:
    """Return events as the body of an upload."""
    return b"".join(encode_event(one) + b"\n" for one in events)


def _phase(seq: int, to_operation: int, to_cleanup: int) -> str:
    if seq <= to_operation:
        return "preparation"
    return "operation" if seq <= to_cleanup else "cleanup"


def _start() -> dict[str, Any]:
    return {
        "event_type": "session_start",
        "signal": "session_begin",
        "value": {"instrument": "violin", "piece": "twinkle_twinkle", "rubric_version": "v1.2"},
        "confidence": 1.0,
        "meta": {"started_at": "2026-03-01T08:00:00+08:00", "device": "edge-test"},
    }


def _end(total_s: float) -> dict[str, Any]:
    return {
        "event_type": "session_end",
        "signal": "session_complete",
        "value": {"total_duration_s": total_s},
        "confidence": 1.0,
    }


def _transition(before: str, after: str) -> dict[str, Any]:
    return {
        "event_type": "phase_transition",
        "signal": f"{before}_to_{after}",
        "value": {"from": before, "to": after},
        "confidence": 0.9,
        "transition_source": "ai_detected",
    }


def _observation(chance: random.Random) -> dict[str, Any]:
    confidence = round(chance.uniform(0.43, 0.99), 2)
    accuracy = round(chance.uniform(0.6, 1.0), 2)
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("posture_observation", "bow_hold_check", {"correct": chance.random() < accuracy}),
        ("audio_observation", "pitch_accuracy", {"measure": 3, "accuracy": accuracy}),
        ("audio_observation", "tone_quality", {"quality": "good", "bow_speed": "stable"}),
        ("streak", "correct_notes_streak_8", {"streak_length": 8}),
        (
            "improvement",
            "pitch_improved",
            {"previous_accuracy": 0.6, "current_accuracy": accuracy},
        ),
    ]
    event_type, signal, value = chance.choice(kinds)
    return {
        "event_type": event_type,
        "signal": signal,
        "value": value,
        "confidence": confidence,
        "cloud_review_available": confidence < TIER_MEDIUM_FROM,
        "perception_level": "L1",
    }
