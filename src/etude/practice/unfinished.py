"""Sessions without an end, read from their journals when a gateway starts (`docs/rules.md 18`)."""

import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.edge import layout
from etude.edge.reader import journal_folders
from etude.errors import EtudeError
from etude.events.model import Event, parse_started_at
from etude.practice.records import SessionStart
from etude.practice.session_events import start_of

RESUMED_WITHIN_S: Final = 600.0
"""A reconnect within ten minutes goes on with the session (`docs/rules.md 18`)."""

_CONNECTION: Final = {"connection_lost": True, "connection_resumed": False}

_log = structlog.get_logger("etude.recorder")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose journal has no seal.

    Attributes:
        session_id: its id.
        start: what its `session_start` says.
        first_step: where it began; not 0 in one that resumes another.
        steps: those that have a turn.
        alive_at_s: wall-clock seconds since 1970 of its last event.
        ended: its end is written, only the seal is missing.
        lost: it is written that the connection was lost, and not that it came back.
    """

    session_id: str
    start: SessionStart
    first_step: int
    steps: frozenset[int]
    alive_at_s: float
    ended: bool
    lost: bool


def find_unfinished(root: Path) -> Iterator[Found]:
    """Yield the gateway's own sessions below `root` that have no seal, by folder name.

    A journal that cannot be read is logged and passed over: its neighbours go on.
    """
    for folder in journal_folders(root):
        if (folder.path / layout.seal_name(1)).exists():
            continue
        try:
            found = fold(folder.events())
        except EtudeError as error:
            _log.warning(
                "a journal cannot be read",
                action="recorder.unreadable",
                folder=folder.path.name,
                error_code=error.code,
            )
            continue
        if found:
            yield found


def fold(events: Iterable[Event]) -> Found | None:
    """Return how far a session got; None unless it is a gateway's.

    A step whose window closed and whose turn was not written counts as not done: it is done again,
    so that a step has exactly one turn.
    """
    written = iter(events)
    first = next(written, None)
    start = start_of(first) if first else None
    started_at = parse_started_at((first.meta or {}).get("started_at")) if first else None
    if first is None or start is None or started_at is None:
        return None
    last, lost = first, False
    named: list[int] = []
    done: set[int] = set()
    for event in written:
        last, lost = event, _CONNECTION.get(event.event_type, lost)
        step = event.value.get("step_index") if isinstance(event.value, dict) else None
        if isinstance(step, int):
            named.append(step)
            if event.event_type == "signal_observation":
                done.add(step)
    return Found(
        session_id=first.session_id,
        start=start,
        first_step=named[0] if named else 0,
        steps=frozenset(done),
        alive_at_s=started_at.timestamp() + last.ts,
        ended=last.event_type == "session_end",
        lost=lost,
    )


def first_missing(done: AbstractSet[int], first: int) -> int:
    """Return the first step from `first` on that is not among those `done`."""
    return next(step for step in itertools.count(first) if step not in done)
