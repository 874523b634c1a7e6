"""A session as whoever reads it takes it: in order, each event once and in its phase.

Recap and examiner read the same events, so they place them by the same rules
(`docs/rules.md 6, 12`).
"""

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from etude.events.model import Event
from etude.events.ndjson import encode_event


class Placed(msgspec.Struct, frozen=True):
    """An event, and the phase it counts under."""

    event: Event
    phase: str


def ordered(events: Iterable[Event]) -> list[Event]:
    """Return events in the order of the session, each id once."""
    seen = list(events)
    first: dict[str, Event] = {}
    if len({event.event_id for event in seen}) < len(seen):
        seen.sort(key=encode_event)  # so that which of two equals comes first is no accident
    for event in sorted(seen, key=attrgetter("order_key")):
        first.setdefault(event.event_id, event)
    return list(first.values())


def placed(events: Iterable[Event], first_phase: str) -> list[Placed]:
    """Give each event, in order, its phase: its own, else the one that was open."""
    found, open_phase = [], first_phase
    for event in events:
        found.append(Placed(event, event.phase or open_phase))
        open_phase = _phase_after(event) or event.phase or open_phase
    return found


def is_contest(event: Event) -> bool:
    """Whether the learner disagrees with another event here."""
    return event.event_type == "signal_contested"


def subject_id(event: Event) -> str | None:
    """Return which event a contest or review is about: `value.event_id`, else `correlation_id`."""
    named = event.value.get("event_id") if isinstance(event.value, dict) else None
    return named if isinstance(named, str) else event.correlation_id


def _phase_after(event: Event) -> str | None:
    if event.event_type == "phase_transition" and isinstance(event.value, dict):
        to = event.value.get("to")
        return to if isinstance(to, str) else None
    return None
