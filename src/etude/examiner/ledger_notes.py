"""The uncertainty ledger as a report shows it: every doubt, and what became of it.

Nothing reviewed is said to be nothing reviewed; no verdict is ever made up (`docs/rules.md 28`).
"""

from collections.abc import Collection, Mapping
from typing import Any

from etude.events.model import Event
from etude.examiner.assessment import LedgerItem
from etude.examiner.report import LowConfidenceItem, MissingRecording, Recording, Recordings
from etude.i18n import text


def entry(
    item: LedgerItem, event: Event, media: Collection[str] | None, locale: str
) -> LowConfidenceItem:
    """Return one entry in words.

    Args:
        item: what scoring found.
        event: the event that it is about.
        media: sha256 of the recordings that have arrived; None = not known.
        locale: of the words.
    """
    review = item.review
    return LowConfidenceItem(
        event_id=item.event_id,
        signal=item.signal,
        edge_confidence=item.edge_confidence,
        cloud_review_available=item.cloud_review_available,
        contested=item.contested,
        state=item.state,
        cloud_assessment=None if review is None else review.note,
        note=_note(item, locale),
        recording=_recording(event, media),
        review_id=None if review is None else review.review_id,
        review_method=None if review is None else review.method,
    )


def _note(item: LedgerItem, locale: str) -> str:
    if item.state == "no_confidence":
        return text("examiner.ledger.no_confidence", locale)
    whose = "contested" if item.contested else "uncertain"
    return text(f"examiner.ledger.{whose}.{item.state}", locale)


def recordings_of(events: Collection[Event], media: Collection[str] | None) -> Recordings:
    """Return which recordings have not arrived, and which turns were heard but never recorded."""
    named = [(event, sha256) for event in events for sha256 in _recorded(event)]
    missing = tuple(
        MissingRecording(event_id=event.event_id, sha256=sha256)
        for event, sha256 in named
        if media is not None and sha256 not in media
    )
    return Recordings(
        missing=None if media is None else missing,
        never_recorded=tuple(
            event.event_id
            for event in events
            if _value(event).get("heard") is True
            and event.event_type == "signal_observation"
            and not _recorded(event)
        ),
    )


def recordings_named(events: Collection[Event]) -> frozenset[str]:
    """Return the sha256 of every recording that events name."""
    return frozenset(sha256 for event in events for sha256 in _recorded(event))


def _recording(event: Event, media: Collection[str] | None) -> Recording:
    named = _recorded(event)
    if not named:
        return "never_recorded"
    if media is None:
        return "unknown"
    return "stored" if all(sha256 in media for sha256 in named) else "missing"


def _recorded(event: Event) -> tuple[str, ...]:
    """Return the recordings that an event names, in `meta.media` or as `value.audio_id`."""
    listed = (event.meta or {}).get("media")
    found = [
        one["sha256"]
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and isinstance(one.get("sha256"), str)
    ]
    audio_id = _value(event).get("audio_id")
    if isinstance(audio_id, str):
        found.append(audio_id)
    return tuple(dict.fromkeys(found))


def _value(event: Event) -> Mapping[str, Any]:
    return event.value if isinstance(event.value, dict) else {}
