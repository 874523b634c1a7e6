from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge import errors
from etude.edge.journal import Journal
from etude.edge.reader import JournalFolder
from etude.edge.session_moves import State, fold
from etude.edge.session_writer import Observation, SessionWriter
from etude.events.model import Event
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.lossy_files import LossyFiles

OpenWriter = Callable[..., SessionWriter]
PITCH = Observation(event_type="audio_observation", signal="pitch_accuracy", confidence=0.87)


def written(writer: SessionWriter) -> list[Event]:
    return list(JournalFolder(writer.folder).events())


def test_the_start_carries_the_wall_clock_and_what_the_host_adds(
    open_writer: OpenWriter, clock: ManualClock
) -> None:
    """`meta.started_at` is the device's time with offset; the host's own meta stays."""
    start = open_writer().begin({}, meta={"device_id": "toy-7", "rubric": {"id": "r"}})
    assert start.meta == {
        "device_id": "toy-7",
        "rubric": {"id": "r"},
        "started_at": "2026-03-01T09:00:00+00:00",
    }
    assert datetime.fromisoformat(str(start.meta["started_at"])) == clock.now()


def test_a_session_taken_up_again_goes_on_with_phase_and_seq(
    open_writer: OpenWriter, clock: ManualClock
) -> None:
    """After a crash the next event has the next `seq`, the open phase and a later time."""
    first = open_writer()
    first.begin({})
    clock.advance(30)
    first.transition("operation")
    first._journal._release()
    clock.advance(60)
    second = open_writer()
    assert (second.state, second.phase) == (State.RUNNING, "operation")
    event = second.observe(PITCH)
    assert (event.seq, event.phase, event.ts) == (3, "operation", 90.0)
    clock.advance(10)
    assert second.end().value["phases"] == {"preparation": 30.0, "operation": 70.0}


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=20_000)])
def test_a_wall_clock_that_was_set_in_between_is_not_believed(
    open_writer: OpenWriter, clock: ManualClock, jump: timedelta
) -> None:
    """Taken up again under a clock that jumped, time goes on from the last event."""
    first = open_writer()
    first.begin({})
    clock.advance(30)
    first.observe(PITCH)
    first._journal._release()
    clock.set_wall(clock.now() + jump)
    assert open_writer().observe(PITCH).ts == 30.0


def test_a_wall_clock_set_during_the_session_changes_nothing(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """`ts` is monotonic time."""
    clock.advance(5)
    clock.set_wall(datetime(1970, 1, 1, tzinfo=UTC))
    assert writer.observe(PITCH).ts == 5.0


def test_an_end_that_was_not_sealed_is_sealed_when_opened_again(
    open_writer: OpenWriter, tmp_path: Path
) -> None:
    """Killed between `session_end` and the seal: the seal is made up for."""
    first = open_writer()
    first.begin({})
    first._write(Observation(event_type="session_end", signal="session_complete"))
    first._journal._release()
    second = open_writer()
    assert second.state is State.ENDED
    assert JournalFolder(second.folder).sealed()
    with pytest.raises(errors.JournalSealedError):
        Journal.open(tmp_path, "s-1")


def test_a_session_killed_before_its_first_event_begins_anew(open_writer: OpenWriter) -> None:
    """An empty journal is a new session."""
    open_writer()._journal._release()
    second = open_writer()
    assert second.state is State.NEW
    assert second.begin({}).seq == 1


def test_a_session_goes_on_while_the_disk_is_full(
    open_writer: OpenWriter, tmp_path: Path, clock: ManualClock
) -> None:
    """Every move is refused by name and happens all the same; all is written when space returns."""
    disk = LossyFiles(tmp_path)
    writer = open_writer(files=disk)
    writer.begin({})
    disk.space_bytes = 0
    clock.advance(90)
    writer.ask_if_due()
    moves: list[Callable[[], object]] = [
        lambda: writer.answer("proceed"),
        lambda: writer.observe(PITCH),
        writer.end,
    ]
    for move in moves:
        with pytest.raises(errors.JournalDiskFullError):
            move()
    assert (writer.state, writer.waiting) == (State.ENDED, 4)
    disk.space_bytes = None
    writer.flush()
    assert [each.seq for each in written(writer)] == [1, 2, 3, 4, 5]
    assert JournalFolder(writer.folder).sealed()


MOVES = st.lists(
    st.sampled_from(["observe", "transition", "tick", "answer", "focus", "crash"]), max_size=25
)


@given(moves=MOVES)
def test_a_session_stands_where_its_journal_says(
    tmp_path_factory: pytest.TempPathFactory, moves: list[str]
) -> None:
    """Whatever happens, the live state is the fold of what was written; `seq` has no gap."""
    root = tmp_path_factory.mktemp("journal")
    clock, ids = ManualClock(), CountingIds()

    def open_one() -> SessionWriter:
        return SessionWriter.open(Journal.open(root, "s-1"), clock=clock, ids=ids)

    writer = open_one()
    writer.begin({})
    for move in moves:
        clock.advance(40)
        try:
            if move == "observe":
                writer.observe(PITCH)
            elif move == "transition":
                writer.transition("cleanup" if writer.phase == "operation" else "operation")
            elif move == "tick":
                writer.ask_if_due()
            elif move == "answer":
                writer.answer("proceed")
            elif move == "focus":
                writer.focus(2, "breathing")
            else:
                writer._journal._release()
                writer = open_one()
        except (errors.IllegalMoveError, errors.PhaseUnknownError):
            pass
        assert fold(written(writer)) == writer._progress
    writer.end()
    assert [each.seq for each in written(writer)] == list(range(1, len(written(writer)) + 1))
    assert sum(written(writer)[-1].value["phases"].values()) == pytest.approx(
        written(writer)[-1].value["total_duration_s"]
    )
