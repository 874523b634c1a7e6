"""Play the protocol's own violin session through the session writer, in no time at all.

    python -m etude.testing.replay JOURNALS STARTED_AT

plays it in a process of its own, which `ETUDE_CRASH_AT` can kill; called again, it goes on with the
event that comes next. The writer makes the events; what was seen, and when, is the sample's.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from etude.edge.journal import Journal
from etude.edge.reader import JournalFolder
from etude.edge.session_moves import TransitionSource
from etude.edge.session_writer import Observation, SessionWriter
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.files import arm_from_environment
from etude.testing.clocks import ManualClock
from etude.testing.samples import sample_lines


def sample_events() -> list[Event]:
    """Return the events of the violin session as the protocol prints them."""
    return [decode_line(line) for line in sample_lines("violin-3min")]


class SampleIds:
    """`Ids` that are the sample's own, from a place on."""

    def __init__(self, events: Sequence[Event]) -> None:
        """Hand out the ids of `events`, in order."""
        self._ids: Iterator[str] = (event.event_id for event in events)

    def new(self) -> str:
        """Return the next id."""
        return next(self._ids)


def replay(root: Path, started_at: datetime) -> None:
    """Write what is missing of the session into its journal below `root`, and seal it.

    Args:
        root: folder of the journals.
        started_at: when the learner began; aware, and the same when the session is taken up again.
    """
    events = sample_events()
    journal = Journal.open(root, events[0].session_id)
    written = sum(1 for _ in JournalFolder(journal.folder).events())
    left = events[written:]
    elapsed_s = events[written - 1].ts if written else 0.0
    clock = ManualClock(started_at + timedelta(seconds=elapsed_s))
    with SessionWriter.open(journal, clock=clock, ids=SampleIds(left)) as writer:
        for event in left:
            clock.advance(event.ts - elapsed_s)
            elapsed_s = event.ts
            _play(writer, event)


def _play(writer: SessionWriter, event: Event) -> None:
    value = cast("dict[str, Any]", event.value)
    match event.event_type:
        case "session_start":
            writer.begin(value, event.meta)
        case "session_focus":
            writer.focus(value["focus_duration_s"], value["ritual_type"])
        case "phase_transition":
            source = cast("TransitionSource", event.transition_source)
            writer.transition(value["to"], source=source, confidence=event.confidence or 1.0)
        case "session_end":
            writer.end()
        case _ if event.signal == "self_assessment":
            writer.assess(value["student_rating"], value["student_comment"])
        case _:
            writer.observe(
                Observation(
                    event_type=event.event_type,
                    signal=event.signal,
                    value=value,
                    confidence=event.confidence or 1.0,
                )
            )


def main(arguments: Sequence[str]) -> None:
    """Play the session once, in this process."""
    arm_from_environment()
    root, started_at = arguments
    replay(Path(root), datetime.fromisoformat(started_at))


if __name__ == "__main__":
    main(sys.argv[1:])
