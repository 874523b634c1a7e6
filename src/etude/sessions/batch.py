"""One upload body, read: the rows to store and the lines that were refused.

Pure: bytes in, values out. A bad line is refused by itself, with its number and code; its
neighbours stand (`events.md §Upload`).
"""

from typing import Final, NamedTuple

import msgspec

from etude.events.errors import BadTypeError
from etude.events.ndjson import LineError, Scanned, scan_line
from etude.events.strict import decode_any, is_plain_text
from etude.sessions.errors import NoValidLineError, TooManyLinesError
from etude.sessions.session_time import DeviceStart, read_device_start

MAX_LINES: Final = 20_000
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
ERRORS_SHOWN: Final = 20


class EventRow(NamedTuple):
    """What is stored of one line, in the order of the table's columns (`tables.session_event`)."""

    event_id: str
    line: bytes
    seq: int | None
    ts_s: float
    event_type: str
    signal: str
    phase: str | None
    confidence: float | None
    alert_tier: str | None
    review_offered: bool


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A body's valid rows in the order sent, its refused lines, and what it says of the session."""

    session_id: str
    rows: list[EventRow]
    rejected: int
    errors: list[LineError]
    last_ts_s: float
    ended: bool
    started: bool
    device_start: DeviceStart | None
    start_unreadable: bool


def read_batch(body: bytes, session_id: str) -> Batch:
    """Read an NDJSON body for one session.

    Raises:
        TooManyLinesError: more than 20,000 lines; nothing is read.
        NoValidLineError: there are lines, and every one was refused.
    """
    lines = body.split(b"\n")
    if len(lines) > MAX_LINES and sum(1 for line in lines if line.strip()) > MAX_LINES:
        raise TooManyLinesError(limit=MAX_LINES)
    plain = is_plain_text(body)
    rows: list[EventRow] = []
    errors: list[LineError] = []
    rejected = 0
    first: Scanned | None = None
    start: Scanned | None = None
    ended = False
    for number, sent in enumerate(lines, 1):
        line = sent.removesuffix(b"\r")
        if not line or line.isspace():
            continue
        try:
            event = scan_line(line, number, session_id, in_plain_text=plain)
            _refuse_server_made(event, line, number)
        except LineError as error:
            rejected += 1
            if len(errors) < ERRORS_SHOWN:
                errors.append(error)
            continue
        rows.append(_row(event, line))
        if event.event_type == "session_start":
            start = start or event
        elif event.event_type == "session_end":
            ended = True
        if first is None or _order(event) < _order(first):
            first = event
    if rejected and not rows:
        raise NoValidLineError(*errors, rejected=rejected)
    device_start, unreadable = _device_start(start or first)
    return Batch(
        session_id=session_id,
        rows=rows,
        rejected=rejected,
        errors=errors,
        last_ts_s=max((row.ts_s for row in rows), default=0.0),
        ended=ended,
        started=start is not None,
        device_start=device_start,
        start_unreadable=unreadable,
    )


def _refuse_server_made(event: Scanned, line: bytes, number: int) -> None:
    """Only the server says that the server made an event (`rulings.md` 9): a recap skips those."""
    if b'"producer"' in line and event.meta is not msgspec.UNSET:
        meta = decode_any(event.meta)
        if isinstance(meta, dict) and meta.get("producer") == "server":
            raise BadTypeError(number, field="meta.producer", expected="not server")


def _order(event: Scanned) -> tuple[float, float]:
    return (float("inf") if event.seq is None else event.seq, event.ts)


def _device_start(event: Scanned | None) -> tuple[DeviceStart | None, bool]:
    if event is None or event.meta is msgspec.UNSET:
        return None, False
    return read_device_start(bytes(event.meta))


def _row(event: Scanned, line: bytes) -> EventRow:
    return EventRow(
        event.event_id,
        line,
        event.seq,
        event.ts,
        event.event_type,
        event.signal,
        event.phase,
        event.confidence,
        event.alert_tier,
        bool(event.cloud_review_available),
    )
