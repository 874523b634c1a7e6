"""What a practice session writes as protocol events, and how it is read back: pure.

The other half, the fold of these events into turns, is `etude.sessions.turns` (`docs/rules.md 22`).
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from etude.edge.session_writer import Observation
from etude.events.model import Event
from etude.practice.records import EndReason, SessionStart, Turn

PRODUCER: Final = "gateway"
"""`meta.producer` of a session that a gateway wrote."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's recording on the disk."""

    sha256: str
    duration_ms: int


def start_value(start: SessionStart) -> dict[str, Any]:
    """Return the `value` of `session_start`; what is not known is left out."""
    value = {
        "app_id": start.app_id,
        "task_id": start.task_id,
        "mode": start.mode.value,
        "lesson_id": start.lesson_id,
        "lesson_title": start.lesson_title,
        "clip_count": start.clip_count,
        "backend": start.backend,
        "listen_ratio": start.listen_ratio,
        "instrument": start.task_id,
        "piece": start.lesson_title or start.lesson_id or start.app_id,
    }
    return _known(value)


def start_meta(start: SessionStart) -> dict[str, Any]:
    """Return the `meta` of `session_start`."""
    meta = {
        "device_id": start.device_id,
        "producer": PRODUCER,
        "rubric": dict(start.rubric) if start.rubric else None,
        "assignment_id": start.assignment_id,
        "courseware": dict(start.courseware) if start.courseware else None,
        "assessment": dict(start.assessment) if start.assessment else None,
        "resumes": start.resumes,
    }
    return _known(meta)


def start_of(event: Event) -> SessionStart | None:
    """Return what a `session_start` says; None unless a gateway wrote it."""
    meta = event.meta or {}
    if event.event_type != "session_start" or meta.get("producer") != PRODUCER:
        return None
    names = SessionStart.__struct_fields__
    said = {**meta, **event.value} if isinstance(event.value, dict) else meta
    try:
        return msgspec.convert({key: said[key] for key in names if key in said}, SessionStart)
    except msgspec.ValidationError:
        return None


def asked(
    session_id: str, step_index: int, signal: str, prompt_text: str, expected_text: str | None
) -> Observation:
    """Return what is written when a step begins."""
    return Observation(
        event_type="signal_check_requested",
        signal=signal,
        value={
            "step_index": step_index,
            "prompt_text": prompt_text,
            "expected_text": expected_text,
        },
        correlation_id=correlation_id(session_id, step_index),
    )


def window_closed(
    session_id: str, step_index: int, signal: str, window_ms: int, *, heard: bool
) -> Observation:
    """Return what the clock of a window writes at its end (`docs/rules.md 16`)."""
    return Observation(
        event_type="listen_window_closed",
        signal=signal,
        value={"step_index": step_index, "window_ms": window_ms, "heard": heard},
        correlation_id=correlation_id(session_id, step_index),
    )


def turn_seen(
    session_id: str, turn: Turn, signal: str, kept: Kept | None, lost: str | None
) -> Observation:
    """Return the one event of a turn; `kept` is its recording, `lost` why there is none."""
    value = {
        "step_index": turn.step_index,
        "prompt_text": turn.prompt_text,
        "expected_text": turn.expected_text,
        "asr_text": turn.asr_text,
        "duration_ms": turn.duration_ms,
        "window_ms": turn.window_ms,
        "heard": turn.heard,
        "audio_id": kept.sha256 if kept else None,
    }
    if turn.detail is not None:
        value["detail"] = dict(turn.detail)
    meta: dict[str, Any] = {}
    if kept:
        part = {"sha256": kept.sha256, "start_s": 0.0, "end_s": kept.duration_ms / 1000}
        meta["media"] = [part]
    if lost:
        meta["audio_lost"] = lost
    return Observation(
        event_type="signal_observation",
        signal=signal,
        value=value,
        meta=meta or None,
        correlation_id=correlation_id(session_id, turn.step_index),
    )


def connection(event_type: str, step_index: int) -> Observation:
    """Return `connection_lost` or `connection_resumed`, at the step where it is."""
    return Observation(event_type=event_type, signal=event_type, value={"step_index": step_index})


def end_value(reason: EndReason) -> dict[str, Any]:
    """Return what a practice session adds to the `value` of `session_end`."""
    status = "completed" if reason.completed else "cancelled"
    return {"end_reason": reason.value, "status": status}


def correlation_id(session_id: str, step_index: int) -> str:
    """Return what the events of one step share."""
    return f"{session_id}:{step_index}"


def _known(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in value.items() if one is not None}
