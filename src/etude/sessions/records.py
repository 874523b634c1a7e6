"""What the session store hands out: frozen records, times aware, keys surrogate."""

from datetime import datetime

import msgspec

from etude.events.ndjson import LineError
from etude.people.records import Principal
from etude.sessions.batch import Batch


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A batch and who sends it; `device_key` is the device a service token uploads for."""

    principal: Principal
    device_key: int | None
    batch: Batch


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `session`. Times in microseconds, as stored."""

    session_key: int
    session_id: str
    principal_kind: str
    principal_key: int
    device_key: int | None
    learner_key: int | None
    owner_basis: str
    status: str
    event_count: int
    max_seq: int | None
    watermark: int | None
    last_ts_s: float
    first_received_us: int
    last_received_us: int
    device_started_us: int | None
    utc_offset_min: int | None
    started_us: int
    started_estimated: bool
    clock_flag: str | None
    ended: bool


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an upload answers (`docs/sessions.md §Upload`), once everything in it is durable."""

    session_id: str
    events_received: int = 0
    duplicates_skipped: int = 0
    events_rejected: int = 0
    errors: list[LineError] = []
    conflicts: list[str] = []
    watermark: int | None = None


class QuarantinedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line whose id was taken by other content: kept apart for a person to look at."""

    event_id: str
    line: bytes
    principal_kind: str
    received: datetime


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """A recording that a session's events may name in `meta.media`."""

    sha256: str
    size_bytes: int
    content_type: str
    received: datetime
