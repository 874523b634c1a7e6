"""A reviewer's verdict on a doubtful event: itself an event, which brings a new revision.

The id of a review follows from what it says and from the review that it replaces, so that the same
verdict sent again is no second one, and one that comes back after another counts.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from etude.events.canonical import canonical
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.events.vocabulary import family_of
from etude.examiner.serving_errors import ReviewSubjectUnknownError
from etude.people import audit
from etude.people.records import Principal
from etude.rubric.placing import subject_id
from etude.sessions.export import lines_within
from etude.sessions.ingest import Ingest
from etude.sessions.records import SessionRow
from etude.sessions.server_events import server_upload
from etude.store.engine import Database

PERSON: Final = "person"
REVIEWED: Final = "signal_reviewed"
_VERSION: Final = 1
_NAMESPACE: Final = uuid.UUID("0f6c2f53-6c1a-5d37-8f0a-4c1d0d5a2b11")
# Nobody judges these: they are the session's own frame.
_NOT_REVIEWED: Final = frozenset({"lifecycle", "server"})


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reviewer says of an event.

    `measured`: what was there instead, for an overturned one; `confidence`: how much it weighs.
    """

    event_id: Annotated[str, Meta(min_length=1, max_length=128)]
    verdict: Literal["confirmed", "overturned", "unknown"]
    measured: bool | Annotated[str, Meta(max_length=200)] | float | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] = 1.0
    note: Annotated[str, Meta(max_length=1000)] | None = None


class Reviewer(msgspec.Struct, frozen=True, kw_only=True):
    """Who reviews, and how: `person`, or the name of a method."""

    name: str
    method: str = PERSON


async def review(
    database: Database,
    ingest: Ingest,
    session: SessionRow,
    verdict: Verdict,
    reviewer: Reviewer,
    *,
    principal: Principal,
    now: datetime,
) -> str:
    """Store a verdict; return the id of the event that says it, new or not.

    Raises:
        ReviewSubjectUnknownError: the session has no such event, or not one to be reviewed.
        SessionTooLongError: its events are too many to be read while somebody waits.
        SessionErasedError: it was erased meanwhile.
    """
    lines = await lines_within(database, session)
    said = _said(verdict, reviewer)
    about, latest = await asyncio.to_thread(_found, lines, verdict.event_id)
    if latest is not None and _without_time(latest) == said:
        return latest.event_id
    made = _event(about, said, latest, now)
    await ingest.receive(server_upload(session, [msgspec.json.encode(made)]))
    async with database.transaction() as work:
        await audit.record(
            work,
            principal,
            "session.reviewed",
            subject=("session", session.session_key),
            now=now,
            detail={"verdict": verdict.verdict},
        )
    return str(made["event_id"])


def _found(lines: Sequence[bytes], event_id: str) -> tuple[Event, Event | None]:
    """Return the event, and the latest verdict on it; long sessions take a while."""
    events = [decode_line(line, number) for number, line in enumerate(lines, 1)]
    return _subject(events, event_id), _latest(events, event_id)


def _subject(events: Sequence[Event], event_id: str) -> Event:
    for event in events:
        if event.event_id == event_id and family_of(event.event_type) not in _NOT_REVIEWED:
            return event
    raise ReviewSubjectUnknownError(event_id=event_id)


def _said(verdict: Verdict, reviewer: Reviewer) -> dict[str, Any]:
    said = {
        "event_id": verdict.event_id,
        "verdict": verdict.verdict,
        "measured": verdict.measured,
        "confidence": verdict.confidence,
        "note": verdict.note,
        "reviewer": reviewer.name,
        "method": reviewer.method,
        "version": _VERSION,
    }
    return {name: value for name, value in said.items() if value is not None}


def _latest(events: Sequence[Event], event_id: str) -> Event | None:
    """Return the verdict that counts. What a device calls one is none."""
    verdicts = (one for one in events if one.event_type == REVIEWED and one.is_server_made)
    about = (one for one in verdicts if subject_id(one) == event_id)
    return max(about, key=_reviewed_at, default=None)


def _reviewed_at(event: Event) -> tuple[str, str]:
    said = event.value.get("reviewed_at") if isinstance(event.value, dict) else None
    return (said if isinstance(said, str) else "", event.event_id)


def _without_time(event: Event) -> Mapping[str, Any]:
    value = event.value if isinstance(event.value, dict) else {}
    return {name: each for name, each in value.items() if name != "reviewed_at"}


def _event(
    about: Event, said: Mapping[str, Any], latest: Event | None, now: datetime
) -> dict[str, Any]:
    """Return the event: it stands where the one that it is about stands (`docs/rules.md 9`)."""
    replaced = "" if latest is None else latest.event_id
    digest = hashlib.sha256(canonical([about.session_id, said, replaced])).hexdigest()
    event = {
        "event_id": str(uuid.uuid5(_NAMESPACE, digest)),
        "session_id": about.session_id,
        "ts": about.ts,
        "event_type": REVIEWED,
        "phase": about.phase,
        "signal": about.signal,
        "value": {**said, "reviewed_at": now.isoformat()},
        "confidence": 1.0,
        "journey_id": about.journey_id,
        "correlation_id": about.event_id,
        "meta": {"producer": "server"},
    }
    return {name: each for name, each in event.items() if each is not None}
