"""A turn assessed: which methods it still lacks, what they find, and the events that say so. Pure.

The id of an event is derived from session, step, method and content, so that the same metric
written twice is one event, whoever writes it when (`docs/rules.md 24`).
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.gate import SILENCE_DB
from etude.assess.listening import SAMPLE_RATE, Heard, Told
from etude.assess.metrics import Method, Metric, nothing
from etude.assess.model_file import shipped_model
from etude.assess.quality import quality_of
from etude.assess.spoken_methods import SpokenMethod, reading_of
from etude.assess.text_methods import CER, COMPLETENESS, SIMILARITY, WER
from etude.assess.words import is_chinese, plain, words_of
from etude.events.canonical import canonical
from etude.sessions.turns import RECOGNISED, Turn
from etude.speech.recognise import Recognised, is_invented

EVENT_TYPE: Final = "audio_observation"
TEXT_SIGNAL: Final = "recognised_text"
PRODUCER: Final = "server"
TEXT_METHODS: Final = frozenset({CER, COMPLETENESS, SIMILARITY, WER})
_NAMESPACE: Final = uuid.UUID("2f1f8c0a-53f7-5b1b-9a55-6f8f5a0f0f6e")

Unread = Literal["off_task", "no_speech"]


def lacking(turn: Turn, methods: Mapping[str, Method]) -> list[str]:
    """Return the methods that have said nothing of a turn; `no_engine` says nothing for good."""
    said = {metric.method for metric in turn.metrics if not is_no_engine(metric.detail)}
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
    Of a recording in which the text was not read, no text method says a number either.

    Args:
        turn: as folded.
        methods: all of them, by name.
        heard: what the engines made of the recording; None = there is none, or no engine.
        audio: the recording; None = there is none.
        sample_rate: of it, in Hz.
    """
    unread = None if heard is None else why_unread(turn.expected_text, heard)
    found: list[Metric] = []
    for name in lacking(turn, methods):
        method = methods[name]
        if isinstance(method, SpokenMethod):
            found += _spoken(method, turn, heard, audio, sample_rate)
        elif heard is None or heard.recognised is None:
            found += method(turn.expected_text, turn.asr_text, audio, sample_rate)
        elif unread is None:
            made = method(turn.expected_text, heard.recognised.text, audio, sample_rate)
            found += [_told_by(heard.recognised, one) for one in made]
        elif name not in TEXT_METHODS:
            found += method(turn.expected_text, None, audio, sample_rate)
        elif words_of(turn.expected_text or ""):
            found.append(nothing(name, unread, **heard.recognised.engines))
    return found


def why_unread(expected_text: str | None, heard: Heard) -> Unread | None:
    """Say why a recording is no reading of the text; None = it is one, or nobody can tell.

    Where no text can be looked for in the sound (nothing was to be read, a language without an
    aligner, a recording that is too long), silence and noise are still told from speech.
    """
    recognised = heard.recognised
    if recognised is None:
        return None
    expected = expected_text or ""
    if heard.aligned and words_of(expected) and not is_chinese(expected):
        why_not = reading_of(expected, heard, shipped_model()).why_not
        return why_not if why_not in {"off_task", "no_speech"} else None
    level_db = quality_of(heard.samples, SAMPLE_RATE)["level_db"]
    silent = level_db < SILENCE_DB or not plain(recognised.text) or is_invented(recognised)
    return "no_speech" if silent else None


def event_line(
    session_id: str, step_index: int, ts_s: float, metric: Metric, *, replaces: str | None = None
) -> bytes:
    """Return a metric as the line of a server event.

    Args:
        session_id: of the session.
        step_index: of the turn.
        ts_s: of the turn, in seconds of the session.
        metric: what was found.
        replaces: id of the event with what the method said before; None = nothing.
    """
    value: dict[str, Any] = {"step_index": step_index, "value": metric.value}
    if metric.unit is not None:
        value["unit"] = metric.unit
    if metric.detail:
        value["detail"] = dict(metric.detail)
    return _line(session_id, ts_s, EVENT_TYPE, metric.method, value, replaces)


def text_line(
    session_id: str,
    step_index: int,
    ts_s: float,
    recognised: Recognised,
    *,
    replaces: str | None = None,
) -> bytes:
    """Return what was heard in a turn's recording as the line of a server event."""
    value = {
        "step_index": step_index,
        "asr_text": plain(recognised.text),
        "language": recognised.language,
        **recognised.engines,
    }
    return _line(session_id, ts_s, RECOGNISED, TEXT_SIGNAL, value, replaces)


def is_no_engine(detail: object) -> bool:
    """Say whether a metric's detail says that there was no engine."""
    return isinstance(detail, Mapping) and detail.get("reason") == "no_engine"


def _line(
    session_id: str,
    ts_s: float,
    event_type: str,
    signal: str,
    value: Mapping[str, Any],
    replaces: str | None,
) -> bytes:
    meta = {"producer": PRODUCER} | ({} if replaces is None else {"replaces": replaces})
    content = {
        "session_id": session_id,
        "ts": ts_s,
        "event_type": event_type,
        "signal": signal,
        "confidence": 1.0,
        "correlation_id": f"{session_id}:{value['step_index']}",
        "value": value,
        "meta": meta,
    }
    event_id = str(uuid.uuid5(_NAMESPACE, canonical(content).decode()))
    return msgspec.json.encode({"event_id": event_id, **content})


def _told_by(recognised: Recognised, metric: Metric) -> Metric:
    """Return a metric of a text with the engine that heard the text."""
    if metric.method not in TEXT_METHODS:
        return metric
    detail = {**metric.detail, **recognised.engines}
    return msgspec.structs.replace(metric, detail=detail)


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
