"""One upload body, read: the events to store and the lines that were refused.

Pure: bytes in, values out. A bad line is refused by itself, with its number and code; its
neighbours stand (`docs/events.md §Lines that are refused`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from etude.events.errors import BadTypeError
from etude.events.ndjson import LineError, Scanned, scan_body, scan_line
from etude.events.strict import decode_any
from etude.sessions.errors import NoValidLineError, TooManyLinesError
from etude.sessions.session_time import DeviceStart, read_device_start

MAX_LINES: Final = 20_000
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
ERRORS_SHOWN: Final = 20


class SentEvent(NamedTuple):
    """A valid line as it was sent, and its columns."""

    columns: Scanned
    line: bytes


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A body's valid events in the order sent, its refused lines, what it says of the session."""

    session_id: str
    events: list[SentEvent]
    rejected: int
    errors: list[LineError]
    last_ts_s: float
    started: bool
    device_start: DeviceStart | None
    start_unreadable: bool


def read_batch(body: bytes, session_id: str) -> Batch:
    """Read an NDJSON body for one session.

    Raises:
        TooManyLinesError: more than 20,000 lines; nothing is read.
        NoValidLineError: there are lines, and every one was refused.
    """
    if body.count(b"\n") >= MAX_LINES:
        _refuse_many_lines(body)
    events: list[SentEvent] = []
    errors: list[LineError] = []
    rejected = 0
    may_claim = b"producer" in body or b"\\" in body
    for number, line, verdict in scan_body(body, session_id):
        if may_claim and not isinstance(verdict, LineError):
            verdict = _unless_server_made(verdict, number)  # noqa: PLW2901 - a later verdict
        if isinstance(verdict, LineError):
            rejected += 1
            if len(errors) < ERRORS_SHOWN:
                errors.append(verdict)
        else:
            events.append(SentEvent(verdict, line))
    if rejected and not events:
        raise NoValidLineError(*errors, rejected=rejected)
    return _batch(session_id, events, rejected, errors)


def server_batch(lines: Sequence[bytes], session_id: str) -> Batch:
    """Read lines that this server made: all of them or none.

    Raises:
        LineError: the first that breaks a rule.
    """
    events = [SentEvent(scan_line(line, n, session_id), line) for n, line in enumerate(lines, 1)]
    return _batch(session_id, events, 0, [])


def _batch(
    session_id: str, events: list[SentEvent], rejected: int, errors: list[LineError]
) -> Batch:
    columns = [event.columns for event in events]
    start = next((one for one in columns if one.event_type == "session_start"), None)
    device_start, unreadable = _device_start(start or min(columns, key=_order, default=None))
    return Batch(
        session_id=session_id,
        events=events,
        rejected=rejected,
        errors=errors,
        last_ts_s=max((one.ts for one in columns), default=0.0),
        started=start is not None,
        device_start=device_start,
        start_unreadable=unreadable,
    )


def _refuse_many_lines(body: bytes) -> None:
    if sum(1 for line in body.split(b"\n") if line.strip()) > MAX_LINES:
        raise TooManyLinesError(limit=MAX_LINES)


def _unless_server_made(event: Scanned, number: int) -> Scanned | LineError:
    """Only the server may say that it made an event (`docs/rules.md 9`): a recap skips those."""
    if event.meta is not msgspec.UNSET and decode_any(event.meta).get("producer") == "server":
        return BadTypeError(number, field="meta.producer", expected="not server")
    return event


def _order(event: Scanned) -> tuple[float, float]:
    return (float("inf") if event.seq is None else event.seq, event.ts)


def _device_start(event: Scanned | None) -> tuple[DeviceStart | None, bool]:
    if event is None or event.meta is msgspec.UNSET:
        return None, False
    return read_device_start(bytes(event.meta))
