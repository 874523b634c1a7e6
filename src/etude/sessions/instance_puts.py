"""Another server's `PUT` of a whole task instance, as events (`docs/rules.md 22`).

The id of an event is derived from what it says and where. The same `PUT` again makes the same
events, which are duplicates; a changed one makes new events, and the fold takes the later receipt.
What says nothing (an empty list of metrics, a null) makes no event, so it erases nothing, whoever
else writes just then. Where content comes back that had been replaced meanwhile (0.5, 0.8, 0.5),
the id also tells what it replaces: else it would be taken for a duplicate.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from etude.events.errors import BadTypeError, LineError
from etude.sessions.batch import MAX_LINES, Batch, server_batch
from etude.sessions.errors import InstancePartUnusableError, TooManyLinesError
from etude.sessions.turns import MAX_STEP, PUT_SOURCE, Folded, Part, without_verdicts

_NAMESPACE: Final = uuid.UUID("5d0c2c1e-6f0e-5f0b-9f43-4f2f6f7a1b9c")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999  # the year 9999 ends

Moment = Annotated[int, Meta(ge=0, le=_LAST_MS, description="Milliseconds since 1970.")]
Lasting = Annotated[int, Meta(ge=0, le=_LAST_MS)] | Annotated[float, Meta(ge=0, le=_LAST_MS)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class MetricPut(msgspec.Struct, frozen=True, kw_only=True):
    """What a method found. Unknown members are passed over, as everywhere in a `PUT`."""

    method: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
    value: int | float | None = None
    unit: Annotated[str, Meta(max_length=64)] | UnsetType | None = UNSET
    detail: Any = UNSET


class TurnPut(msgspec.Struct, frozen=True, kw_only=True):
    """A step. What is null or missing leaves what is stored; so do metrics that are empty."""

    step_index: Annotated[int, Meta(ge=0, lt=MAX_STEP)]
    prompt_text: str | None = None
    expected_text: str | None = None
    asr_text: str | None = None
    audio_id: Annotated[str, Meta(max_length=256)] | None = None
    duration_ms: Lasting | None = None
    window_ms: Lasting | None = None
    metrics: tuple[MetricPut, ...] | None = None
    assessed_at: Moment | None = None


class InstancePut(msgspec.Struct, frozen=True, kw_only=True):
    """A whole instance.

    `mac` and `mac_address` are other names of `device_id`, `interaction_mode` of `mode`, `steps`
    of `turns`.
    """

    app_id: Name
    task_id: Name
    device_id: Name | None = None
    mac: Name | None = None
    mac_address: Name | None = None
    mode: Name | None = None
    interaction_mode: Name | None = None
    status: Literal["running", "completed", "cancelled"] = "running"
    end_reason: Annotated[str, Meta(max_length=64)] | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    disconnected_at: Moment | UnsetType | None = UNSET
    events: tuple[dict[str, Any], ...] | None = None
    turns: tuple[TurnPut, ...] | None = None
    steps: tuple[TurnPut, ...] | None = None

    @property
    def device(self) -> str | None:
        """The device, under whichever of its names."""
        return self.device_id or self.mac or self.mac_address


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Events that are stored or replaced together.

    Attributes:
        place: where in the `PUT` they come from, for errors: `turns[3]`.
        part: what of the instance they speak for; None for what only adds.
        contents: the events without ids.
        salt: tells equal contents apart that are not the same.
    """

    place: str
    part: Part | None
    contents: tuple[Mapping[str, Any], ...]
    salt: str = ""


class Identified(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its ids: `speaker` is what the fold calls it (`Folded.speaks_for`)."""

    group: Group
    speaker: str
    events: Mapping[str, Mapping[str, Any]]


def said(session_id: str, put: InstancePut, stored: Folded | None) -> list[Identified]:
    """Return what a `PUT` says, as events, in the order in which it happened.

    Raises:
        InstancePartUnusableError: it is nested more deeply than any event may be.
    """
    try:
        groups = [
            _start(put),
            *_turns(put),
            *_events(put),
            *_connection(put, stored),
            *([] if put.status == "running" else [_end(put)]),
        ]
        return [identify(session_id, group) for group in groups]
    except RecursionError as error:
        raise InstancePartUnusableError(place="$", reason=BadTypeError.code) from error


def identify(session_id: str, group: Group, after: str = "") -> Identified:
    """Give a group its ids, derived from the session, its content and what it comes `after`."""
    digest = hashlib.sha256(_spelled([session_id, group.salt, group.contents, after])).hexdigest()
    is_metrics = isinstance(group.part, tuple) and group.part[0] == "metrics"
    events = {
        str(uuid.uuid5(_NAMESPACE, f"{digest}:{place}")): (
            _in_set(content, digest, place) if is_metrics else content
        )
        for place, content in enumerate(group.contents)
    }
    return Identified(
        group=group, speaker=digest if is_metrics else next(iter(events)), events=events
    )


def settle(
    session_id: str, put: Sequence[Identified], stored: Folded | None, known: AbstractSet[str]
) -> list[Identified]:
    """Return the groups that say what is to be; `known` are those ids that are stored already."""
    speaks_for = {} if stored is None else stored.speaks_for
    settled = []
    for each in put:
        part = each.group.part
        now = None if part is None else speaks_for.get(part)
        comes_back = now not in {None, each.speaker} and not known.isdisjoint(each.events)
        settled.append(identify(session_id, each.group, now or "") if comes_back else each)
    return settled


def batch_of(session_id: str, settled: Sequence[Identified]) -> Batch:
    """Return the groups as one batch, to be stored together.

    Raises:
        TooManyLinesError: they are more than one upload may carry.
        InstancePartUnusableError: one is too long or holds what no event may.
    """
    lines: dict[bytes, str] = {}
    for each in settled:
        for event_id, content in each.events.items():
            event = {"event_id": event_id, "session_id": session_id, **content}
            if isinstance(each.group.part, tuple):
                event["correlation_id"] = f"{session_id}:{each.group.part[1]}"
            lines.setdefault(msgspec.json.encode(event), each.group.place)
    if len(lines) > MAX_LINES:
        raise TooManyLinesError(limit=MAX_LINES)
    try:
        return server_batch(list(lines), session_id)
    except LineError as error:
        place = list(lines.values())[int(error.params["line"]) - 1]
        raise InstancePartUnusableError(place=place, reason=error.code) from error


def _start(put: InstancePut) -> Group:
    value = {
        "app_id": put.app_id,
        "task_id": put.task_id,
        "mode": put.mode or put.interaction_mode,
        "started_at": put.started_at,
        "instrument": put.task_id,
        "piece": put.app_id,
    }
    meta: dict[str, Any] = {"source": PUT_SOURCE}
    if put.started_at is not None:
        meta["started_at"] = (_EPOCH + timedelta(milliseconds=put.started_at)).isoformat()
    content = _content("session_start", "session_begin", "preparation", value, meta)
    return Group(place="$", part="start", contents=(content,))


def _turns(put: InstancePut) -> Iterator[Group]:
    name = "steps" if put.turns is None else "turns"
    for number, turn in enumerate(put.turns if put.turns is not None else put.steps or ()):
        place = f"{name}[{number}]"
        yield Group(
            place=place,
            part=("turn", turn.step_index),
            contents=(_content("signal_observation", "read_aloud", "operation", _told(turn)),),
        )
        if turn.metrics:
            yield Group(
                place=f"{place}.metrics",
                part=("metrics", turn.step_index),
                contents=tuple(_metric(turn.step_index, each) for each in turn.metrics),
            )


def _told(turn: TurnPut) -> dict[str, Any]:
    fields = msgspec.structs.asdict(turn)
    del fields["metrics"]
    return fields


def _metric(step_index: int, metric: MetricPut) -> dict[str, Any]:
    value: dict[str, Any] = {"step_index": step_index, "value": metric.value}
    if metric.unit is not UNSET:
        value["unit"] = metric.unit
    if metric.detail is not UNSET:
        value["detail"] = without_verdicts(metric.detail)
    return _content("audio_observation", metric.method, "operation", value, {"producer": "server"})


def _events(put: InstancePut) -> Iterator[Group]:
    seen: dict[bytes, int] = {}
    for number, event in enumerate(put.events or ()):
        kept = without_verdicts(event)
        spelled = _spelled(kept)
        seen[spelled] = seen.get(spelled, 0) + 1
        content = _content("task_event", "reported", None, {"event": kept})
        salt = str(seen[spelled])
        yield Group(place=f"events[{number}]", part=None, contents=(content,), salt=salt)


def _connection(put: InstancePut, stored: Folded | None) -> Iterator[Group]:
    if put.disconnected_at is UNSET:
        return
    if put.disconnected_at is not None:
        value = {"disconnected_at": put.disconnected_at}
        content = _content("connection_lost", "connection_lost", None, value)
    elif stored is not None and stored.instance.disconnected_at is not None:
        content = _content("connection_resumed", "connection_resumed", None, {})
    else:
        return
    yield Group(place="disconnected_at", part="connection", contents=(content,))


def _end(put: InstancePut) -> Group:
    value = {"status": put.status, "end_reason": put.end_reason, "ended_at": put.ended_at}
    lasted_s = 0.0
    if put.started_at is not None and put.ended_at is not None:
        lasted_s = max(0.0, (put.ended_at - put.started_at) / 1000)
    content = _content("session_end", "session_complete", "cleanup", value)
    return Group(place="$", part="end", contents=({**content, "ts": lasted_s},))


def _content(
    event_type: str,
    signal: str,
    phase: str | None,
    value: Mapping[str, Any],
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    content = {
        "ts": 0.0,  # when in the session it was, a PUT does not tell
        "event_type": event_type,
        "signal": signal,
        "phase": phase,
        "value": value,
        "confidence": 1.0,
        "meta": {"source": PUT_SOURCE, **(meta or {})},
    }
    return {name: each for name, each in content.items() if each is not None}


def _spelled(value: object) -> bytes:
    """Spell a value always in the same way. By the megabyte, where RFC 8785 would take seconds."""
    return msgspec.json.encode(value, order="sorted")


def _in_set(content: Mapping[str, Any], metric_set: str, place: int) -> Mapping[str, Any]:
    return {**content, "meta": {**content["meta"], "metric_set": metric_set, "place": place}}
