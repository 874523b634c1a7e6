"""Lines of `events.jsonl`: reading, checking and writing them (`docs/events.md §Fields`).

Two ways to read a line, with one verdict: `scan_line` is the hot path of ingest and returns the
columns that are stored beside the line; `decode_line` returns the whole `Event`. A line that a fast
decoder might misjudge is read by `strict.read_object` and `fields.check`, which alone decide what
is wrong with it.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec

from etude.events import fields as rules
from etude.events.errors import (
    BadTypeError,
    InvalidJsonError,
    LineError,
    MissingFieldError,
    NotEncodableError,
    TooLongError,
    WrongSessionError,
)
from etude.events.model import PROTOCOL_FIELDS, Event, derive_tier
from etude.events.strict import (
    MAX_LINE_BYTES,
    decode_any,
    is_plain,
    is_plain_text,
    is_small,
    read_object,
)

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=rules.MAX_ID)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=rules.MAX_NAME)]
_Label = Annotated[str, msgspec.Meta(max_length=rules.MAX_NAME)]


class Scanned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What ingest stores beside a line. Field rules are those of `Event`.

    `signal` and `alert_tier` are settled (alias, derivation) when `scan_line` returns; `meta` is
    the object as sent, unread.
    """

    event_id: _Id
    session_id: _Id
    ts: Annotated[float, msgspec.Meta(ge=0)]
    event_type: _Name
    signal: _Name = ""
    signal_id: _Name | None = None
    phase: _Label | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    alert_tier: _Label | None = None
    cloud_review_available: bool | None = False
    seq: Annotated[int, msgspec.Meta(ge=1)] | None = None
    correlation_id: _Label | None = None
    journey_id: _Label | None = None
    transition_source: _Label | None = None
    perception_level: _Label | None = None
    primitive: _Label | None = None
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_scanned: Final = msgspec.json.Decoder(Scanned).decode
_set: Final = msgspec.structs.force_setattr


def scan_line(line: bytes, number: int, session_id: str | None) -> Scanned:
    """Check one line (no line end) and return its columns.

    `number` is the line's place from 1; with `session_id` the event must belong to it. Raises the
    `LineError` that fits.
    """
    scanned = _scan_plainly(line, session_id) if is_plain(line) else None
    return _scan_fully(line, number, session_id) if scanned is None else scanned


def scan_body(body: bytes, session_id: str) -> Iterator[tuple[int, bytes, Scanned | LineError]]:
    """Yield number, line and the verdict of `scan_line` for each line of a body; blank ones not.

    Several times faster than line by line: what holds for the whole text is looked at once.
    """
    plain = is_plain_text(body)
    # Then no string of the body can hold a control character.
    bare = plain and b"\\" not in body and b"\x7f" not in body and body.isascii()
    for number, sent in enumerate(body.split(b"\n"), 1):
        line = sent.removesuffix(b"\r")
        if not line or line.isspace():
            continue
        small = plain and is_small(line)
        verdict: Scanned | LineError | None = (
            _scan_plainly(line, session_id, bare=bare) if small else None
        )
        if verdict is None:
            try:
                verdict = scan_line(line, number, session_id)
            except LineError as error:
                verdict = error
        yield number, line, verdict


def decode_line(line: bytes, number: int = 1, session_id: str | None = None) -> Event:
    """Check one line (no line end) and return the whole event. Raises the `LineError` that fits."""
    if not is_plain(line) or _scan_plainly(line, session_id) is None:
        return _to_event(_read_checked(line, number, session_id))
    return _to_event(decode_any(line))


def decode_line_reporting(line: bytes, number: int, on_duplicate: Callable[[str], None]) -> Event:
    """Check one line as `decode_line` does, and call `on_duplicate(key)` for each repeated key."""
    return _to_event(_read_checked(line, number, None, on_duplicate))


def encode_event(event: Event) -> bytes:
    """Return the event as one line without line end: for a decoded one, what was sent.

    Raises `NotEncodableError` for a value that JSON cannot say (NaN, a date, a lone surrogate).
    """
    try:
        return json.dumps(
            to_fields(event), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotEncodableError(reason=str(error)) from error


def to_fields(event: Event) -> dict[str, Any]:
    """Return the event as the JSON object that stands for it on a line."""
    if event.sent_keys is None:
        own = {name: getattr(event, name) for name in PROTOCOL_FIELDS}
        kept = {name: value for name, value in own.items() if value is not None or name == "value"}
        return kept | event.extra
    return {key: _sent(event, key) for key in event.sent_keys}


def split_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | LineError]]:
    """Yield `(number, line)` of a body that comes in chunks of any size, without line ends.

    LF and CRLF end a line; blank lines are numbered and left out. A line over the limit is yielded
    as a `TooLongError` and never held in memory.
    """
    number, pending, skipping = 0, b"", False
    for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            number += 1
            yield from _one_line(number, pending + part, skipping=skipping)
            pending, skipping = b"", False
        if not skipping:
            pending += rest
            skipping = len(pending) > MAX_LINE_BYTES + 1
        if skipping:
            pending = b""
    if pending or skipping:
        yield from _one_line(number + 1, pending, skipping=skipping)


def _one_line(
    number: int, line: bytes, *, skipping: bool
) -> Iterator[tuple[int, bytes | LineError]]:
    line = line.removesuffix(b"\r")
    if skipping or len(line) > MAX_LINE_BYTES:
        yield number, TooLongError(number, limit_bytes=MAX_LINE_BYTES)
    elif line and not line.isspace():
        yield number, line


def _scan_plainly(line: bytes, session_id: str | None, *, bare: bool = False) -> Scanned | None:
    """Return the columns of a good line without peculiarities, `None` for any other.

    The line is plain; `bare` says that no string on it holds a control character.
    """
    try:
        scanned = _decode_scanned(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if (
        (session_id is None or scanned.session_id == session_id)
        and rules.is_id(scanned.event_id)
        and rules.is_known_id(scanned.session_id)
        and scanned.cloud_review_available is not None
        and (scanned.meta is msgspec.UNSET or bytes(scanned.meta)[:1] == b"{")
        and _settle(scanned)
        and (bare or _are_printable(scanned))
    ):
        return scanned
    return None


def _settle(scanned: Scanned) -> bool:
    """Fill in what follows from other fields; `False` if there is no signal."""
    if not scanned.signal:
        if scanned.signal_id is None:
            return False
        _set(scanned, "signal", scanned.signal_id)
    if scanned.alert_tier is None and scanned.confidence is not None:
        _set(scanned, "alert_tier", derive_tier(scanned.confidence))
    return True


def _are_printable(scanned: Scanned) -> bool:
    """Whether no text can hold a control character."""
    return (
        scanned.event_type.isprintable()
        and scanned.signal.isprintable()
        and (scanned.phase is None or scanned.phase.isprintable())
        and (scanned.alert_tier is None or scanned.alert_tier.isprintable())
        and (scanned.correlation_id is None or scanned.correlation_id.isprintable())
        and (scanned.journey_id is None or scanned.journey_id.isprintable())
        and (scanned.transition_source is None or scanned.transition_source.isprintable())
        and (scanned.perception_level is None or scanned.perception_level.isprintable())
        and (scanned.primitive is None or scanned.primitive.isprintable())
    )


def _scan_fully(line: bytes, number: int, session_id: str | None) -> Scanned:
    event = _to_event(_read_checked(line, number, session_id))
    meta = msgspec.UNSET if event.meta is None else msgspec.Raw(msgspec.json.encode(event.meta))
    return Scanned(
        event_id=event.event_id,
        session_id=event.session_id,
        ts=event.ts,
        event_type=event.event_type,
        signal=event.signal,
        phase=event.phase,
        confidence=event.confidence,
        alert_tier=event.alert_tier,
        cloud_review_available=event.cloud_review_available,
        seq=event.seq,
        correlation_id=event.correlation_id,
        journey_id=event.journey_id,
        transition_source=event.transition_source,
        perception_level=event.perception_level,
        primitive=event.primitive,
        meta=meta,
    )


def _read_checked(
    line: bytes,
    number: int,
    session_id: str | None,
    on_duplicate: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    fields = read_object(line, number, on_duplicate)
    rules.check(fields, number)
    if session_id is not None and fields["session_id"] != session_id:
        raise WrongSessionError(number)
    return fields


_KNOWN: Final = frozenset(PROTOCOL_FIELDS)
_NONE_NULL: Final[frozenset[str]] = frozenset()


def _to_event(fields: dict[str, Any]) -> Event:
    """Build the event of checked fields, which it takes over."""
    keys = tuple(fields)
    nulls = _NONE_NULL
    if None in fields.values():
        nulls = frozenset(name for name in keys if fields[name] is None)
    extra: dict[str, Any] = {}
    if not _KNOWN.issuperset(keys):
        extra = {name: fields.pop(name) for name in keys if name not in _KNOWN}
    if "signal" not in fields:
        fields["signal"] = extra.pop("signal_id")
    _unify(fields)
    return Event(**fields, extra=extra, sent_keys=keys, sent_nulls=nulls)


def _unify(own: dict[str, Any]) -> None:
    """Give numbers and flags the one type that `Event` states."""
    for name, kind in _KINDS:
        value = own.get(name)
        if value is not None and type(value) is not kind:
            own[name] = kind(value)
    if own.get("cloud_review_available", False) is None:
        del own["cloud_review_available"]


_KINDS: Final = (("ts", float), ("confidence", float), ("seq", int))


def _sent(event: Event, key: str) -> Any:  # noqa: ANN401 - any JSON value
    if key in event.sent_nulls:
        return None
    if key in _KNOWN:
        return getattr(event, key)
    return event.signal if key == "signal_id" and key not in event.extra else event.extra[key]


__all__ = [
    "MAX_LINE_BYTES",
    "BadTypeError",
    "InvalidJsonError",
    "LineError",
    "MissingFieldError",
    "NotEncodableError",
    "Scanned",
    "TooLongError",
    "WrongSessionError",
    "decode_line",
    "decode_line_reporting",
    "encode_event",
    "scan_line",
    "split_lines",
    "to_fields",
]
