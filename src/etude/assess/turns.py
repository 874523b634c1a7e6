"""A turn assessed: which methods it still lacks, what they find, and the events that say so. Pure.

The id of an event is derived from session, step, method and content, so that the same metric
written twice is one event, whoever writes it when (`rulings.md` 24).
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.listening import Heard, Told
from etude.assess.metrics import Method, Metric, nothing
from etude.assess.spoken_methods import SpokenMethod
from etude.events.canonical import canonical
from etude.sessions.turns import Turn

EVENT_TYPE: Final = "audio_observation"
PRODUCER: Final = "server"
_NAMESPACE: Final = uuid.UUID("2f1f8c0a-53f7-5b1b-9a55-6f8f5a0f0f6e")


def lacking(turn: Turn, methods: Mapping[str, Method]) -> list[str]:
    """Return the methods that have said nothing of a turn; `no_engine` says nothing for good."""
    said = {metric.method for metric in turn.metrics if not _is_no_engine(metric.detail)}
    return [name for name in methods if name not in said]


def assess_turn(
    turn: Turn,
    methods: Mapping[str, Method],
    heard: Heard | None,
    audio: NDArray[np.float32] | None,
    sample_rate: int,
) -> list[Metric]:
    """Return what the methods that a turn lacks find.

    Texts are compared with what is heard in the whole recording. What was recognised live may be a
    part of it, and whether it came in time depends on the load: it counts where nothing else does.

    Args:
        turn: as folded.
        methods: all of them, by name.
        heard: what the engines made of the recording; None = there is none, or no engine.
        audio: the recording; None = there is none.
        sample_rate: of it, in Hz.
    """
    recognised = None if heard is None else heard.recognised
    text = turn.asr_text if recognised is None else recognised.text
    found: list[Metric] = []
    for name in lacking(turn, methods):
        method = methods[name]
        if isinstance(method, SpokenMethod):
            found += _spoken(method, turn, heard, audio, sample_rate)
        else:
            found += method(turn.expected_text, text, audio, sample_rate)
    return found


def event_line(session_id: str, step_index: int, ts_s: float, metric: Metric) -> bytes:
    """Return a metric as the line of a server event."""
    value: dict[str, Any] = {"step_index": step_index, "value": metric.value}
    if metric.unit is not None:
        value["unit"] = metric.unit
    if metric.detail:
        value["detail"] = dict(metric.detail)
    content = {
        "session_id": session_id,
        "ts": ts_s,
        "event_type": EVENT_TYPE,
        "signal": metric.method,
        "confidence": 1.0,
        "correlation_id": f"{session_id}:{step_index}",
        "value": value,
        "meta": {"producer": PRODUCER},
    }
    event_id = str(uuid.uuid5(_NAMESPACE, canonical(content).decode()))
    return msgspec.json.encode({"event_id": event_id, **content})


def _spoken(
    method: SpokenMethod,
    turn: Turn,
    heard: Heard | None,
    audio: NDArray[np.float32] | None,
    sample_rate: int,
) -> Sequence[Metric]:
    if audio is None:
        return []
    if heard is None:
        return [nothing(method.name, "no_engine")] if turn.expected_text else []
    return method.heard_by(Told(heard))(turn.expected_text, turn.asr_text, audio, sample_rate)


def _is_no_engine(detail: object) -> bool:
    return isinstance(detail, Mapping) and detail.get("reason") == "no_engine"
