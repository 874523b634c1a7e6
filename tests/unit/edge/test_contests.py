from pathlib import Path

import pytest

from etude.edge import errors
from etude.edge.contests import Contests
from etude.edge.reader import JournalFolder
from etude.edge.session_writer import Observation, SessionWriter
from etude.events.model import Event
from etude.testing.clocks import CountingIds, ManualClock

PITCH = Observation(event_type="audio_observation", signal="pitch_accuracy", confidence=0.87)


def written(writer: SessionWriter) -> list[Event]:
    return list(JournalFolder(writer.folder).events())


def test_a_contest_goes_to_review_and_names_its_event(writer: SessionWriter) -> None:
    """`signal_contested` shares the correlation and is always offered for review."""
    event = writer.observe(PITCH)
    contest = writer.contest(event, "my hand was right")
    assert contest.event_type == "signal_contested"
    assert contest.cloud_review_available
    assert contest.correlation_id == event.event_id
    assert contest.value == {"event_id": event.event_id, "comment": "my hand was right"}


def test_a_contest_after_the_seal_goes_on_in_a_part_of_its_own(
    writer: SessionWriter, tmp_path: Path, clock: ManualClock
) -> None:
    """`events.2.jsonl`, `seq` continuing, `ts` and `phase` of the contested event, sealed."""
    clock.advance(12)
    event = writer.observe(PITCH)
    writer.end()
    clock.advance(3600)
    contests = Contests(tmp_path, "s-1", clock=clock, ids=CountingIds("c"))
    first, second = contests.write(event.event_id), contests.write(event.event_id, "no")
    assert (first.seq, second.seq) == (4, 5)
    assert (first.ts, first.phase) == (12.0, "preparation")
    assert first.cloud_review_available
    assert [number for number, _ in JournalFolder(writer.folder).parts()] == [1, 2, 3]
    assert JournalFolder(writer.folder).sealed()


def test_a_contest_of_an_unknown_event_is_refused(writer: SessionWriter, tmp_path: Path) -> None:
    """There is nothing to contest."""
    writer.end()
    with pytest.raises(errors.EventUnknownError):
        Contests(tmp_path, "s-1", clock=ManualClock(), ids=CountingIds()).write("e999")


def test_a_contest_before_the_end_is_not_for_a_second_part(
    writer: SessionWriter, tmp_path: Path
) -> None:
    """While a writer has the session, it alone writes."""
    with pytest.raises(errors.JournalLockedError):
        Contests(tmp_path, writer.session_id, clock=ManualClock(), ids=CountingIds()).write("e001")
