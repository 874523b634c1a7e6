"""What the recorder writes and what the server folds are one language."""

from pathlib import Path

from etude.edge.journal import SyncPolicy
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason
from etude.sessions.turns import About, Received, TaskInstance, fold
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.practising import (
    drained,
    events_of,
    packets_of,
    play_step,
    session_of,
    turn_of,
)


def instance(root: Path, session_id: str, started_ms: int) -> TaskInstance:
    about = About(
        session_id=session_id, device_id="toy-1", learner_id="anna", started_ms=started_ms
    )
    folded = fold(
        about,
        [
            Received(event=event, receipt=receipt, received_ms=started_ms)
            for receipt, event in enumerate(events_of(root, session_id))
        ],
    )
    assert folded
    return folded.instance


def test_a_recorded_session_is_an_instance_with_a_turn_a_step(tmp_path: Path) -> None:
    """Running, disconnected, resumed and completed, with times and turns as they were said."""
    clock = ManualClock()
    started_ms = round(clock.now().timestamp() * 1000)
    recorder = Recorder(tmp_path, clock=clock, ids=CountingIds(), policy=SyncPolicy.OS)
    recording = recorder.begin(session_of())
    recording.phase("operation")
    play_step(recording, 0, packets_of("toy-1", 0))
    clock.advance(7)
    recording.disconnected(1)
    drained(recorder)
    running = instance(tmp_path, recording.session_id, started_ms)
    assert (running.status, running.disconnected_at) == ("running", started_ms + 7000)
    found = recorder.unfinished("toy-1")
    assert found
    recording = recorder.resume(found)
    recording.turn(turn_of(1, asr_text="said"), "read_aloud")
    clock.advance(1)
    recording.end(EndReason.LIST_COMPLETED)
    drained(recorder)
    done = instance(tmp_path, recording.session_id, started_ms)
    assert (done.app_id, done.task_id, done.mode) == ("reading", "aloud", "SHADOWING")
    assert (done.status, done.end_reason, done.disconnected_at) == (
        "completed",
        "list_completed",
        None,
    )
    assert done.ended_at == started_ms + 8000
    assert [(one.step_index, one.asr_text, one.window_ms) for one in done.turns] == [
        (0, None, 1200),
        (1, "said", 1200),
    ]
    assert done.turns[0].audio_id
    assert done.turns[1].audio_id is None


def test_a_session_that_nobody_came_back_to_is_cancelled(tmp_path: Path) -> None:
    """At the time it was lost."""
    clock = ManualClock()
    started_ms = round(clock.now().timestamp() * 1000)
    recorder = Recorder(tmp_path, clock=clock, ids=CountingIds(), policy=SyncPolicy.OS)
    recording = recorder.begin(session_of())
    clock.advance(3)
    recording.disconnected(0)
    clock.advance(601)
    recorder.expire()
    drained(recorder)
    lost = instance(tmp_path, recording.session_id, started_ms)
    assert (lost.status, lost.end_reason) == ("cancelled", "disconnected")
    assert lost.ended_at == started_ms + 3000
