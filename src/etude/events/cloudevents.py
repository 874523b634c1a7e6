"""An event as a CloudEvent (CloudEvents 1.0.2, JSON format), for systems that speak that.

The mapping is documented in `docs/events.md`. `data` is the event as sent, so nothing is lost.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import msgspec

from etude.events.model import Event
from etude.events.ndjson import to_fields

TYPE_PREFIX: Final = "etude.event."
CONTENT_TYPE: Final = "application/cloudevents+json"


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Attributes and data of one CloudEvent. `time` is absent where no one knows it."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: datetime | msgspec.UnsetType = msgspec.UNSET
    datacontenttype: str
    data: dict[str, Any]


def to_cloudevent(event: Event, started_at: datetime | None = None) -> CloudEvent:
    """Return `event` as a CloudEvent; encode it with msgspec.

    Args:
        event: the event.
        started_at: the session's begin in wall-clock time (aware), else the event has no `time`.
    """
    return CloudEvent(
        specversion="1.0",
        id=event.event_id,
        source=f"/api/v1/sessions/{quote(event.session_id, safe='')}",
        type=f"{TYPE_PREFIX}{event.event_type}",
        subject=event.signal,
        time=_time_of(event, started_at),
        datacontenttype="application/json",
        data=to_fields(event),
    )


def _time_of(event: Event, started_at: datetime | None) -> datetime | msgspec.UnsetType:
    if started_at is None:
        return msgspec.UNSET
    try:
        return started_at + timedelta(seconds=event.ts)
    except OverflowError:  # a `ts` of thousands of years is stored, but names no date
        return msgspec.UNSET
