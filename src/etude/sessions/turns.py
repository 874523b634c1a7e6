"""A session's events as the task that was done: a fold, with no state but the events.

Toys, phones and browsers write the same events; another server's `PUT` becomes such events too
(`etude.sessions.instance_puts`). Nothing here is stored: who asks for an instance gets the fold of
what is stored just then, so no writer can take another's turn away (`docs/rules.md 22`).

The order is the producer's `seq`, and for events without one (metrics, a `PUT`) the number of
receipt, after all others. Neither depends on when or how often something was uploaded.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import msgspec

from etude.events.model import Event
from etude.sessions.assessment import NEVER, NO_ASSESSMENT, Assessment, declared

Status = Literal["running", "completed", "cancelled"]
MAX_STEP: Final = 100_000
"""Steps from this number on belong to no lesson: their events make no turn."""

COMPLETED: Final = frozenset({"play_completed", "list_completed"})
DISCONNECTED: Final = "disconnected"
RECOGNISED: Final = "speech_recognised"
"""The type of the server's events with what was heard in a turn's recording."""
PUT_SOURCE: Final = "task_api"
"""`meta.source` of events that another server's `PUT` or report was turned into."""

# What no part of the practice runtime says about a learner (`docs/rules.md 19`).
VERDICTS: Final = frozenset(
    {"passed", "grade", "graded", "good", "bad", "retry_count", "score", "level", "verdict"}
)
# A broken counter may claim any finite number.
_LONGEST_S: Final = 1e9
_INLINE_METHOD: Final = "exact_match_v1"
_ENGINES: Final = ("recogniser", "model")
_KEPT: Final = ("prompt_text", "expected_text", "asr_text", "audio_id")


class Metric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a method found in a turn; null when it could not tell (`docs/rules.md 24`)."""

    method: str
    value: float | None  # a whole number stays one
    unit: str | msgspec.UnsetType | None = msgspec.UNSET
    detail: Any = msgspec.UNSET


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the lesson (`docs/task-instances.md §Reading`)."""

    step_index: int
    prompt_text: str | None = None
    expected_text: str | None = None
    asr_text: str | None = None
    audio_id: str | None = None
    duration_ms: float | None = None
    window_ms: float | None = None
    metrics: tuple[Metric, ...] = ()
    assessed_at: int | None = None


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A task instance without its events and turns. Times are epoch milliseconds."""

    id: str
    device_id: str | None
    learner_id: str | None
    app_id: str
    task_id: str
    mode: str | None
    status: Status
    end_reason: str | None
    started_at: int
    ended_at: int | None
    disconnected_at: int | None


class TaskInstance(Head, frozen=True, kw_only=True):
    """What was done with a task, whole."""

    events: tuple[Mapping[str, Any], ...]
    turns: tuple[Turn, ...]


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """An event and its receipt: a number that rises, and when it came."""

    event: Event
    receipt: int
    received_ms: int


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the session besides its events."""

    session_id: str
    device_id: str | None
    learner_id: str | None
    started_ms: int
    last_ts_s: float = 0.0
    abandoned: bool = False


Part: TypeAlias = str | tuple[str, int]
"""A part of an instance that a `PUT` replaces: `start`, `end`, `connection`, `("turn", 3)`, …"""


class HeardLater(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine heard in a turn's recording, and which one."""

    event_id: str
    text: str
    engines: Mapping[str, str]


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, and which event or set of metrics speaks for which part of it.

    Attributes:
        instance: what the events say.
        speaks_for: parts that a `PUT` replaces.
        said_by: by step and method, the event with a metric that this server found.
        heard: by step, what was heard in the recording afterwards.
        assessment: by which methods its turns are assessed.
    """

    instance: TaskInstance
    speaks_for: Mapping[Part, str]
    said_by: Mapping[tuple[int, str], str]
    heard: Mapping[int, HeardLater]
    assessment: Assessment


def fold(about: About, received: Iterable[Received]) -> Folded | None:
    """Fold a session's events in any order; None unless they say that it is a task."""
    folding = _Fold()
    for each in sorted(received, key=_order):
        folding.take(each)
    return folding.folded(about)


def named_task(value: object) -> tuple[str, str] | None:
    """Return `(app_id, task_id)` of a `session_start`'s value; None if it is no task."""
    if not isinstance(value, Mapping):
        return None
    app_id, task_id = value.get("app_id"), value.get("task_id")
    return (app_id, task_id) if _is_text(app_id) and _is_text(task_id) else None


def without_verdicts(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value without the members that would judge a learner."""
    if isinstance(value, dict):
        return {key: without_verdicts(inner) for key, inner in value.items() if key not in VERDICTS}
    return [without_verdicts(inner) for inner in value] if isinstance(value, list) else value


def _order(received: Received) -> tuple[float, int]:
    seq = received.event.seq
    return (math.inf if seq is None else seq, received.receipt)


class _Step:
    """One turn while it is folded."""

    def __init__(self, step_index: int) -> None:
        self.step_index = step_index
        self.fields: dict[str, Any] = {}
        # What was heard in the recording afterwards; it fills in, and replaces nothing.
        self.heard: HeardLater | None = None
        self.metric_set = ""
        # By place in the set that was put, or by method: of the server's own, one a method.
        self.metrics: dict[int | str, Metric] = {}

    def keep(self, value: Mapping[str, Any]) -> None:
        """Take in what is said; null says nothing and so erases nothing."""
        for name in _KEPT:
            if isinstance(value.get(name), str):
                self.fields[name] = value[name]
        for name in ("duration_ms", "window_ms"):
            if _is_number(value.get(name)):
                self.fields[name] = value[name]
        if _is_moment(value.get("assessed_at")):
            self.fields["assessed_at"] = value["assessed_at"]

    def put_metric(self, metric: Metric, metric_set: str, place: int) -> None:
        """Take in one metric of a set that replaces the set before."""
        if metric_set != self.metric_set:
            self.metrics = {key: one for key, one in self.metrics.items() if isinstance(key, str)}
            self.metric_set = metric_set
        self.metrics.pop(metric.method, None)
        self.metrics[place] = metric

    def add_metric(self, metric: Metric) -> None:
        """Take in a metric that stands for itself: the last one of a method counts."""
        self.metrics = {
            key: one for key, one in self.metrics.items() if one.method != metric.method
        }
        self.metrics[metric.method] = metric

    def turn(self) -> Turn:
        fields = self.fields
        if self.heard is not None:
            fields = {"asr_text": self.heard.text} | fields
        return Turn(step_index=self.step_index, metrics=tuple(self.metrics.values()), **fields)


class _Fold:
    """An instance while it is folded, event by event in order."""

    def __init__(self) -> None:
        self._start: dict[str, Any] = {}
        self._assessment = Assessment()
        self._end: tuple[Mapping[str, Any], float] | None = None
        self._lost: tuple[int | None, float] | None = None
        self._steps: dict[int, _Step] = {}
        self._events: list[tuple[Event, Mapping[str, Any]]] = []
        self._speaks_for: dict[Part, str] = {}
        self._said_by: dict[tuple[int, str], str] = {}

    def take(self, received: Received) -> None:
        event = received.event
        value = event.value if isinstance(event.value, Mapping) else {}
        take = _TAKEN.get(event.event_type)
        if take is not None:
            take(self, event, value)
            return
        if event.event_type in _TURN_TYPES and (step := self._step(value)):
            self._take_turn(step, event, value)
        elif not event.is_server_made:
            self._events.append((event, value))
        elif event.event_type == "audio_observation" and (step := self._step(value)):
            self._take_metric(step, received, value)
        elif event.event_type == RECOGNISED and (step := self._step(value)):
            self._take_text(step, event, value)

    def take_start(self, event: Event, value: Mapping[str, Any]) -> None:
        named = named_task(value)
        if named is None:
            return
        self._start["app_id"], self._start["task_id"] = named
        if _is_text(value.get("mode")):
            self._start["mode"] = value["mode"]
        if _is_moment(value.get("started_at")):
            self._start["started_at"] = value["started_at"]
        self._assessment = declared(event.meta) or self._assessment
        self._speaks_for["start"] = event.event_id

    def take_end(self, event: Event, value: Mapping[str, Any]) -> None:
        self._end = (value, event.ts)
        self._speaks_for["end"] = event.event_id

    def take_lost(self, event: Event, value: Mapping[str, Any]) -> None:
        told = value.get("disconnected_at")
        self._lost = (told if _is_moment(told) else None, event.ts)
        self._take_connection(event, value)

    def take_resumed(self, event: Event, value: Mapping[str, Any]) -> None:
        self._lost = None
        self._take_connection(event, value)

    def _take_connection(self, event: Event, value: Mapping[str, Any]) -> None:
        self._speaks_for["connection"] = event.event_id
        if not _is_put(event):
            self._events.append((event, value))

    def _take_turn(self, step: _Step, event: Event, value: Mapping[str, Any]) -> None:
        step.keep(value)
        if event.event_type != "signal_observation":
            return
        self._speaks_for["turn", step.step_index] = event.event_id
        detail = value.get("detail")
        if isinstance(detail, Mapping) and _is_number(detail.get(_INLINE_METHOD)):
            step.add_metric(Metric(method=_INLINE_METHOD, value=detail[_INLINE_METHOD]))

    def _take_metric(self, step: _Step, received: Received, value: Mapping[str, Any]) -> None:
        event, number = received.event, value.get("value")
        unit = value.get("unit", msgspec.UNSET)
        metric = Metric(
            method=event.signal,
            value=number if _is_number(number) else None,
            unit=unit if isinstance(unit, str) or unit is None else msgspec.UNSET,
            detail=without_verdicts(value.get("detail", msgspec.UNSET)),
        )
        meta = event.meta or {}
        metric_set, place = meta.get("metric_set"), meta.get("place")
        if isinstance(metric_set, str) and isinstance(place, int):
            step.put_metric(metric, metric_set, place)
            self._speaks_for["metrics", step.step_index] = metric_set
            self._said_by.pop((step.step_index, metric.method), None)
            return
        step.add_metric(metric)
        self._said_by[step.step_index, metric.method] = event.event_id
        step.keep({"assessed_at": value.get("assessed_at", received.received_ms)})

    def _take_text(self, step: _Step, event: Event, value: Mapping[str, Any]) -> None:
        text = value.get("asr_text")
        if _is_text(text):
            named = {key: value[key] for key in _ENGINES if _is_text(value.get(key))}
            step.heard = HeardLater(event_id=event.event_id, text=text, engines=named)

    def _step(self, value: Mapping[str, Any]) -> _Step | None:
        index = value.get("step_index")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_STEP:
            return None
        return self._steps.setdefault(index, _Step(index))

    def folded(self, about: About) -> Folded | None:
        if not self._start:
            return None
        started_ms = self._start.get("started_at", about.started_ms)
        status, reason, ended_at = self._ending(about, started_ms)
        return Folded(
            instance=TaskInstance(
                id=about.session_id,
                device_id=about.device_id,
                learner_id=about.learner_id,
                app_id=self._start["app_id"],
                task_id=self._start["task_id"],
                mode=self._start.get("mode"),
                status=status,
                end_reason=reason,
                started_at=started_ms,
                ended_at=ended_at,
                disconnected_at=self._disconnected_at(started_ms),
                events=tuple(_shown(event, value, started_ms) for event, value in self._events),
                turns=tuple(step.turn() for _, step in sorted(self._steps.items())),
            ),
            speaks_for=self._speaks_for,
            said_by=self._said_by,
            heard={
                step.step_index: step.heard
                for step in self._steps.values()
                if step.heard is not None
            },
            assessment=NO_ASSESSMENT if self._start.get("mode") in NEVER else self._assessment,
        )

    def _ending(self, about: About, started_ms: int) -> tuple[Status, str | None, int | None]:
        if self._end is None:
            if not about.abandoned:
                return "running", None, None
            return "cancelled", DISCONNECTED, _at(started_ms, about.last_ts_s)
        value, ts_s = self._end
        reason = value.get("end_reason")
        reason = reason if isinstance(reason, str) else None
        told = value.get("ended_at", msgspec.UNSET)
        ended_at = told if _is_moment(told) or told is None else _at(started_ms, ts_s)
        return _status(value.get("status"), reason), reason, ended_at

    def _disconnected_at(self, started_ms: int) -> int | None:
        if self._lost is None:
            return None
        told, ts_s = self._lost
        return _at(started_ms, ts_s) if told is None else told


_TAKEN: Final[Mapping[str, Callable[[_Fold, Event, Mapping[str, Any]], None]]] = {
    "session_start": _Fold.take_start,
    "session_end": _Fold.take_end,
    "connection_lost": _Fold.take_lost,
    "connection_resumed": _Fold.take_resumed,
}
HEAD_TYPES: Final = frozenset(_TAKEN)
"""The events that a `Head` is made of."""
_TURN_TYPES: Final = frozenset(
    {"signal_check_requested", "listen_window_closed", "signal_observation"}
)


def _status(told: object, reason: str | None) -> Status:
    if told == "completed" or told == "cancelled":  # noqa: PLR1714 - a set would lose the type
        return told
    return "completed" if reason is None or reason in COMPLETED else "cancelled"


def _shown(event: Event, value: Mapping[str, Any], started_ms: int) -> Mapping[str, Any]:
    """Return an event as an instance lists it; one that was put, as it was put."""
    put = value.get("event")
    if event.event_type == "task_event" and _is_put(event) and isinstance(put, Mapping):
        return put
    told = value.get("reported_at")
    return {
        "type": event.event_type,
        "signal": event.signal,
        "at": told if _is_moment(told) else _at(started_ms, event.ts),
        "value": without_verdicts(event.value),
    }


def _is_put(event: Event) -> bool:
    return event.meta is not None and event.meta.get("source") == PUT_SOURCE


def _at(started_ms: int, ts_s: float) -> int:
    return started_ms + round(min(ts_s, _LONGEST_S) * 1000)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_moment(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
