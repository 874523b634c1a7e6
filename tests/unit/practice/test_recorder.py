import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge.journal import Journal, SyncPolicy
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder
from etude.files import AppendFile, Files
from etude.practice.record_queue import RecordQueue
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason, Turn
from etude.practice.session_record import Began, Entry, Moment, Place, TurnEnded
from etude.practice.unfinished import find_unfinished
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.lossy_files import LossyFiles
from etude.testing.practising import (
    SIGNAL,
    drained,
    events_of,
    packets_of,
    play_step,
    session_of,
    taken_up,
    turn_of,
    turns_of,
)

OpenRecorder = Callable[..., Recorder]
PATIENCE_S = 60.0
ASSESSMENT = {"enabled": True, "methods": ["cer_v1"]}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ended() -> list[str]:
    """The sessions that were told to have ended."""
    return []


@pytest.fixture
def open_recorder(tmp_path: Path, clock: ManualClock, ended: list[str]) -> OpenRecorder:
    """Make a recorder whose thread is the test's own; its retries follow the test's clock.

    The one before it is dead: its journals are let go without a further word.
    """
    opened: list[Recorder] = []
    ids = CountingIds()

    def open_one(files: Files | None = None, policy: SyncPolicy = SyncPolicy.OS) -> Recorder:
        for line in opened[-1]._queue._lines.values() if opened else ():
            if line.record._journal:
                line.record._journal._release()
        recorder = Recorder(
            tmp_path, clock=clock, ids=ids, files=files, policy=policy, on_ended=ended.append
        )
        recorder._queue._time_s = clock.monotonic
        opened.append(taken_up(recorder, tmp_path))
        return recorder

    return open_one


def said(root: Path, session_id: str) -> list[tuple[str, Any]]:
    return [(one.event_type, one.value) for one in events_of(root, session_id)]


def test_a_session_is_written_as_the_protocol_says(
    tmp_path: Path, clock: ManualClock, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """Every event with its time, phase, correlation and content; sealed, and somebody told."""
    recorder = open_recorder()
    rubric = {"id": "reading", "version": "v1"}
    recording = recorder.begin(
        session_of(rubric=rubric, assignment_id="as-1", backend=None, assessment=ASSESSMENT)
    )
    clock.advance(1)
    recording.phase("operation")
    play_step(recording, 0, packets_of("toy-1", 0))
    clock.advance(2)
    recording.positive("streak", "heard_turns_streak_3", {"streak_length": 3})
    recording.phase("cleanup")
    recording.positive("achievement", "lesson_completed", {})
    recording.end(EndReason.LIST_COMPLETED)
    drained(recorder)

    events = events_of(tmp_path, recording.session_id)
    assert [(one.event_type, one.phase, one.ts) for one in events] == [
        ("session_start", "preparation", 0.0),
        ("phase_transition", "operation", 1.0),
        ("signal_check_requested", "operation", 1.0),
        ("listen_window_closed", "operation", 1.0),
        ("signal_observation", "operation", 1.0),
        ("streak", "operation", 3.0),
        ("phase_transition", "cleanup", 3.0),
        ("achievement", "cleanup", 3.0),
        ("session_end", "cleanup", 3.0),
    ]
    start, moved, asked, closed, seen, *_, end = events
    assert start.value == {
        "app_id": "reading",
        "task_id": "aloud",
        "mode": "SHADOWING",
        "lesson_id": "l-1",
        "clip_count": 3,
        "listen_ratio": 1.2,
        "instrument": "aloud",
        "piece": "l-1",
    }
    assert start.meta == {
        "device_id": "toy-1",
        "producer": "gateway",
        "rubric": rubric,
        "assignment_id": "as-1",
        "assessment": ASSESSMENT,
        "started_at": "2026-03-01T09:00:00+00:00",
    }
    assert moved.transition_source == "ai_detected"
    prompt = "/reading/aloud/lessons/l-1/01.mp3"
    assert asked.value == {"step_index": 0, "prompt_text": prompt, "expected_text": "text 0"}
    assert closed.value == {"step_index": 0, "window_ms": 1200, "heard": True}
    ((audio_id, path, kind),) = recordings(tmp_path / recording.session_id)
    assert (path.suffix, kind) == (".ogg", "audio/ogg")
    assert seen.value == {
        "step_index": 0,
        "prompt_text": prompt,
        "expected_text": "text 0",
        "asr_text": None,
        "duration_ms": 1000,
        "window_ms": 1200,
        "heard": True,
        "audio_id": audio_id,
    }
    assert seen.meta == {"media": [{"sha256": audio_id, "start_s": 0.0, "end_s": 0.173}]}
    assert {one.correlation_id for one in (asked, closed, seen)} == {f"{recording.session_id}:0"}
    assert (end.value["end_reason"], end.value["status"]) == ("list_completed", "completed")
    assert end.value["total_duration_s"] == 3.0
    assert JournalFolder(tmp_path / recording.session_id).sealed()
    assert ended == [recording.session_id]


def test_silence_leaves_a_turn_without_a_recording(
    tmp_path: Path, open_recorder: OpenRecorder
) -> None:
    """`asr_text` and `audio_id` are null; nothing claims that a recording was lost."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    play_step(recording, 0)
    drained(recorder)
    seen = events_of(tmp_path, recording.session_id)[-1]
    assert (seen.value["asr_text"], seen.value["audio_id"], seen.meta) == (None, None, None)


def test_packets_that_are_no_opus_cost_the_recording_alone(
    tmp_path: Path, open_recorder: OpenRecorder
) -> None:
    """The turn is there and says why it cannot be heard."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    play_step(recording, 0, [b"\x03", b"\x03"])
    drained(recorder)
    seen = events_of(tmp_path, recording.session_id)[-1]
    assert (seen.value["audio_id"], seen.meta) == (None, {"audio_lost": "unusable"})


class BlockedFiles(Files):
    """A disk that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        assert self.go.wait(PATIENCE_S)
        return super().open_append(path, mode)


def test_a_slow_disk_holds_nobody_up_and_times_are_those_of_the_call(
    tmp_path: Path, clock: ManualClock
) -> None:
    """While the disk stands still every call returns; what it writes later says when it was."""
    disk, sealed = BlockedFiles(), threading.Semaphore(0)
    recorder = Recorder(
        tmp_path,
        clock=clock,
        ids=CountingIds(),
        files=disk,
        on_ended=lambda _: sealed.release(),
    )
    recorder.start()
    recording = recorder.begin(session_of())
    for step in range(3):
        clock.advance(5)
        play_step(recording, step, packets_of("toy-1", step))
    recording.end(EndReason.LIST_COMPLETED)
    clock.advance(1000)
    assert not disk.go.is_set()
    assert not any(tmp_path.rglob("*.jsonl"))
    disk.go.set()
    assert sealed.acquire(timeout=PATIENCE_S)
    recorder.close()
    events = events_of(tmp_path, recording.session_id)
    assert events[0].meta
    assert events[0].meta["started_at"] == "2026-03-01T09:00:00+00:00"
    assert [one.ts for one in events] == [0, 5, 5, 5, 10, 10, 10, 15, 15, 15, 15]


def test_the_default_policy_syncs_within_a_quarter_of_a_second(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """Not at once, and then for all sessions together; no session has a thread of its own."""
    disk = LossyFiles(tmp_path)
    recorder = open_recorder(disk, SyncPolicy.INTERVAL)
    threads = threading.active_count()
    for device in ("toy-1", "toy-2"):
        play_step(recorder.begin(session_of(device)), 0)
    drained(recorder)
    before = disk.operations.count("sync events.jsonl")
    assert threading.active_count() == threads
    clock.advance(0.2)
    drained(recorder)
    assert disk.operations.count("sync events.jsonl") == before
    clock.advance(0.1)
    drained(recorder)
    assert disk.operations.count("sync events.jsonl") == before + 2


def test_a_full_disk_costs_nothing(
    tmp_path: Path, clock: ManualClock, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """Nobody is told of an error; when there is room again, everything is written once."""
    disk = LossyFiles(tmp_path)
    recorder = open_recorder(disk, SyncPolicy.ALWAYS)
    recording = recorder.begin(session_of())
    drained(recorder)
    for space_bytes in range(0, 4000, 250):
        step = space_bytes // 250
        disk.space_bytes = space_bytes
        play_step(recording, step, packets_of("toy-1", step, 5))
        drained(recorder)
        clock.advance(60)
        drained(recorder)
    recording.end(EndReason.PLAY_STOPPED)
    disk.space_bytes = None
    clock.advance(60)
    drained(recorder)
    events = events_of(tmp_path, recording.session_id)
    assert turns_of(events) == list(range(16))
    assert len({one.event_id for one in events}) == len(events) == 2 + 3 * 16
    assert [one.seq for one in events] == list(range(1, len(events) + 1))
    assert len(list(recordings(tmp_path / recording.session_id))) == 16
    assert ended == [recording.session_id]


def test_a_session_whose_disk_fails_holds_up_no_other(
    tmp_path: Path, clock: ManualClock, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """A locked journal waits for its lock; a defect costs its own event; the neighbour ends."""
    recorder = open_recorder()
    other, waits, broken, fine = (recorder.begin(session_of(f"toy-{n}")) for n in range(4))
    held = Journal.open(tmp_path, waits.session_id)
    (tmp_path / broken.session_id).mkdir()
    (tmp_path / broken.session_id / "events.seal.json").write_text("no seal")
    for recording in (other, waits, broken, fine):
        play_step(recording, 0)
        recording.end(EndReason.LIST_COMPLETED)
    drained(recorder)
    assert ended == [other.session_id, fine.session_id]
    held.close()
    clock.advance(60)
    drained(recorder)
    assert ended == [other.session_id, fine.session_id, waits.session_id]
    assert turns_of(events_of(tmp_path, waits.session_id)) == [0]
    assert recorder._queue._lines == {}


def test_an_event_that_no_line_can_hold_costs_itself_alone(
    tmp_path: Path, open_recorder: OpenRecorder
) -> None:
    """A text over the protocol's 64 KiB is refused; what comes behind it is written."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    recording.turn(turn_of(0, asr_text="x" * 70_000), SIGNAL)
    recording.turn(turn_of(1), SIGNAL)
    drained(recorder)
    assert turns_of(events_of(tmp_path, recording.session_id)) == [1]


def test_who_is_told_may_fail(tmp_path: Path, clock: ManualClock) -> None:
    """The next session is sealed all the same."""

    def fail(session_id: str) -> None:
        raise RuntimeError(session_id)

    recorder = Recorder(tmp_path, clock=clock, ids=CountingIds(), on_ended=fail)
    recorder.start()
    found = [recorder.begin(session_of()) for _ in range(2)]
    for recording in found:
        recording.end(EndReason.ERROR)
    recorder.close()
    assert all(JournalFolder(tmp_path / one.session_id).sealed() for one in found)


def test_close_leaves_an_open_session_to_the_next_process(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """All of it is on the disk, without an end."""
    recorder = Recorder(tmp_path, clock=clock, ids=CountingIds())
    recorder.start()
    recording = recorder.begin(session_of())
    play_step(recording, 0)
    recorder.close()
    assert turns_of(events_of(tmp_path, recording.session_id)) == [0]
    found = open_recorder().unfinished("toy-1")
    assert found
    assert (found.session_id, found.next_step) == (recording.session_id, 1)


def test_memory_is_bounded_by_dropping_the_oldest_sound(tmp_path: Path, clock: ManualClock) -> None:
    """The texts are all there; a turn without its recording says so; the newest can be heard."""
    place = Place(root=tmp_path, ids=CountingIds(), files=Files(), policy=SyncPolicy.OS)
    queue = RecordQueue(place, lambda _: None, audio_limit_bytes=10_000)
    moment = Moment.of(clock)
    queue.put("s-1", Entry(moment, Began(session_of())))
    for step in range(20):
        turn = turn_of(step, [b"\x58" + bytes([step]) * 935])
        queue.put("s-1", Entry(moment, TurnEnded(turn, SIGNAL)))
        assert queue._audio_bytes <= 10_000
    queue.drain()
    assert (queue._audio_bytes, queue._sounding) == (0, {})
    events = events_of(tmp_path, "s-1")[1:]
    assert turns_of(events) == list(range(20))
    assert [one.meta == {"audio_lost": "queue_full"} for one in events] == [True] * 10 + [
        False
    ] * 10
    assert len(list(recordings(tmp_path / "s-1"))) == 10


def test_sound_that_waits_for_a_full_disk_is_bounded_too(
    tmp_path: Path, clock: ManualClock
) -> None:
    """A turn whose recording the disk refused is dropped first when more comes."""
    disk = LossyFiles(tmp_path)
    place = Place(root=tmp_path, ids=CountingIds(), files=disk, policy=SyncPolicy.OS)
    queue = RecordQueue(place, lambda _: None, audio_limit_bytes=2500, time_s=clock.monotonic)
    moment = Moment.of(clock)
    queue.put("s-1", Entry(moment, Began(session_of())))
    queue.drain()
    disk.space_bytes = 500
    for step in range(4):
        turn = turn_of(step, [b"\x58" + bytes([step]) * 935])
        queue.put("s-1", Entry(moment, TurnEnded(turn, SIGNAL)))
        queue.drain()
    disk.space_bytes = None
    clock.advance(60)
    queue.drain()
    lost = [bool((one.meta or {}).get("audio_lost")) for one in events_of(tmp_path, "s-1")[1:]]
    assert lost == [True, True, False, False]


def test_a_step_has_one_turn(tmp_path: Path, open_recorder: OpenRecorder) -> None:
    """A second one is left out, whoever says it."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    recording.turn(turn_of(0, asr_text="first"), SIGNAL)
    recording.turn(turn_of(0, asr_text="second"), SIGNAL)
    drained(recorder)
    (seen,) = events_of(tmp_path, recording.session_id)[1:]
    assert seen.value["asr_text"] == "first"


def test_a_reconnect_goes_on_where_it_was(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """Within ten minutes, from memory; what the old connection still says is not counted."""
    recorder = open_recorder()
    start = session_of(assessment=ASSESSMENT)
    old = recorder.begin(start)
    old.phase("operation")
    play_step(old, 0)
    assert recorder.unfinished("toy-1") is None
    old.disconnected(1)
    clock.advance(600)
    assert recorder.unfinished("toy-2") is None
    found = recorder.unfinished("toy-1")
    assert found
    assert (found.session_id, found.next_step, found.start) == (old.session_id, 1, start)
    assert found.disconnected_at_s == (clock.now() - timedelta(seconds=600)).timestamp()
    new = recorder.resume(found)
    assert new.session_id == old.session_id
    assert recorder.unfinished("toy-1") is None
    old.turn(turn_of(1, asr_text="too late"), SIGNAL)
    old.end(EndReason.DISCONNECTED)
    new.phase("operation")
    play_step(new, 1)
    new.end(EndReason.LIST_COMPLETED)
    drained(recorder)
    events = events_of(tmp_path, old.session_id)
    assert turns_of(events) == [0, 1]
    kinds = [(one.event_type, one.ts) for one in events if "connection" in one.event_type]
    assert kinds == [("connection_lost", 0.0), ("connection_resumed", 600.0)]
    assert [one.event_type for one in events].count("phase_transition") == 1
    assert events[-1].value["end_reason"] == "list_completed"


def test_a_turn_may_come_behind_the_lost_connection(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """Recognition takes its time; the step is done then, and the loss is written once."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    recording.disconnected(0)
    recording.disconnected(0)
    clock.advance(2)
    recording.turn(turn_of(0, asr_text="late"), SIGNAL)
    drained(recorder)
    recorder = open_recorder()
    drained(recorder)
    found = recorder.unfinished("toy-1")
    assert found
    assert found.next_step == 1
    kinds = [kind for kind, _ in said(tmp_path, recording.session_id)]
    assert kinds == ["session_start", "connection_lost", "signal_observation"]


def test_after_ten_minutes_a_lost_session_ends_once_at_the_time_it_was_lost(
    tmp_path: Path, clock: ManualClock, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """Cancelled, disconnected; nobody practised in the minutes behind it."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    clock.advance(30)
    recording.disconnected(0)
    clock.advance(600)
    recorder.expire()
    drained(recorder)
    assert ended == []
    clock.advance(1)
    assert recorder.unfinished("toy-1") is None
    recorder.expire()
    recorder.expire()
    drained(recorder)
    end = events_of(tmp_path, recording.session_id)[-1]
    assert (end.event_type, end.ts) == ("session_end", 30.0)
    assert (end.value["end_reason"], end.value["status"]) == ("disconnected", "cancelled")
    assert ended == [recording.session_id]
    recorder = open_recorder()
    recorder.expire()
    drained(recorder)
    assert ended == [recording.session_id]


def test_a_session_resumed_too_late_is_another_one(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """It names the one it goes on with, and begins, also after a restart, at the same step."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    for step in range(2):
        play_step(recording, step)
    recording.disconnected(2)
    found = recorder.unfinished("toy-1")
    assert found
    clock.advance(601)
    recorder.expire()
    other = recorder.resume(found)
    assert other.session_id != recording.session_id
    drained(recorder)
    start = events_of(tmp_path, other.session_id)[0]
    assert start.meta
    assert start.meta["resumes"] == recording.session_id
    again = open_recorder().unfinished("toy-1")
    assert again
    assert (again.session_id, again.next_step) == (other.session_id, 2)


def test_of_two_lost_sessions_the_later_one_is_gone_on_with(
    clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """A device practises one thing at a time."""
    recorder = open_recorder()
    for app_id in ("first", "second"):
        recorder.begin(session_of(app_id=app_id)).disconnected(0)
        clock.advance(1)
    found = recorder.unfinished("toy-1")
    assert found
    assert found.start.app_id == "second"


def test_a_killed_gateway_is_gone_on_with(
    tmp_path: Path, clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """The lost connection is written at the last sign of life, once; a half step is done again."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    recording.phase("operation")
    clock.advance(10)
    play_step(recording, 0, packets_of("toy-1", 0))
    recording.asked(1, SIGNAL, "p", None)
    recording.window_closed(1, SIGNAL, 1200, heard=True)
    drained(recorder)
    for _ in range(2):
        clock.advance(100)
        recorder = open_recorder()
        drained(recorder)
    found = recorder.unfinished("toy-1")
    assert found
    assert (found.next_step, found.start) == (1, session_of())
    new = recorder.resume(found)
    new.phase("operation")
    play_step(new, 1)
    new.phase("cleanup")
    new.end(EndReason.LIST_COMPLETED)
    drained(recorder)
    events = events_of(tmp_path, recording.session_id)
    assert turns_of(events) == [0, 1]
    assert [(one.event_type, one.ts) for one in events[7:10]] == [
        ("connection_lost", 10.0),
        ("connection_resumed", 210.0),
        ("signal_check_requested", 210.0),
    ]
    assert JournalFolder(tmp_path / recording.session_id).sealed()


def test_a_gateway_that_was_away_for_long_ends_what_it_finds(
    tmp_path: Path, clock: ManualClock, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """Nobody can resume it any more; its length is what was practised."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    clock.advance(10)
    play_step(recording, 0)
    drained(recorder)
    clock.advance(3 * 24 * 3600)
    recorder = open_recorder()
    assert recorder.unfinished("toy-1") is None
    recorder.expire()
    drained(recorder)
    end = events_of(tmp_path, recording.session_id)[-1]
    assert (end.value["end_reason"], end.value["total_duration_s"]) == ("disconnected", 10.0)
    assert ended == [recording.session_id]


def test_a_clock_that_was_set_back_makes_no_session_older(
    clock: ManualClock, open_recorder: OpenRecorder
) -> None:
    """A session from the future was lost just now."""
    recorder = open_recorder()
    recorder.begin(session_of())
    drained(recorder)
    clock.set_wall(clock.now() - timedelta(days=1))
    recorder = open_recorder()
    clock.advance(600)
    assert recorder.unfinished("toy-1")
    clock.advance(1)
    assert recorder.unfinished("toy-1") is None


def test_an_end_without_a_seal_is_sealed_at_the_start(
    tmp_path: Path, ended: list[str], open_recorder: OpenRecorder
) -> None:
    """Its end is not written a second time, nobody can resume it, and somebody is told."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    recording.end(EndReason.PLAY_COMPLETED)
    drained(recorder)
    folder = tmp_path / recording.session_id
    (folder / "events.seal.json").unlink()
    (folder / "events.jsonl").chmod(0o600)
    ended.clear()
    recorder = open_recorder()
    assert recorder.unfinished("toy-1") is None
    recorder.expire()
    drained(recorder)
    assert ended == [recording.session_id]
    assert [kind for kind, _ in said(tmp_path, recording.session_id)] == [
        "session_start",
        "session_end",
    ]
    assert JournalFolder(folder).sealed()


def test_only_a_gateways_own_sessions_are_taken_up(tmp_path: Path) -> None:
    """Other journals below the root, empty and unreadable ones are passed over."""
    with Journal.open(tmp_path, "empty"):
        pass
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    line = {
        "event_id": "e1",
        "session_id": "foreign",
        "ts": 0,
        "event_type": "session_start",
        "signal": "session_begin",
        "meta": {"device_id": "toy-1", "started_at": "2026-03-01T09:00:00+00:00"},
    }
    (foreign / "events.jsonl").write_bytes(msgspec.json.encode(line) + b"\n")
    broken = tmp_path / "broken"
    (broken / "events.jsonl").mkdir(parents=True)
    assert list(find_unfinished(tmp_path)) == []


STEPS = st.lists(st.sampled_from(["toy-1", "toy-2"]), min_size=1, max_size=12)


@given(order=STEPS)
def test_two_devices_never_share_a_packet(
    order: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However their steps interleave, each recording holds its own device's packets alone."""
    root = tmp_path_factory.mktemp("journals")
    recorder = Recorder(root, clock=ManualClock(), ids=CountingIds(), policy=SyncPolicy.OS)
    open_ones = {device: recorder.begin(session_of(device)) for device in ("toy-1", "toy-2")}
    for place, device in enumerate(order):
        play_step(open_ones[device], place, packets_of(device, place))
    drained(recorder)
    for device, recording in open_ones.items():
        kept = {sha256: path for sha256, path, _ in recordings(root / recording.session_id)}
        for one in events_of(root, recording.session_id)[1:]:
            if one.event_type == "signal_observation":
                data = kept[one.value["audio_id"]].read_bytes()
                step = one.value["step_index"]
                assert data.endswith(b"".join(packets_of(device, step)))
        other = {"toy-1": b"toy-2", "toy-2": b"toy-1"}[device]
        assert not any(other in path.read_bytes() for path in kept.values())
    for line in recorder._queue._lines.values():
        line.record.close()


def test_a_turn_keeps_what_an_inline_task_says(tmp_path: Path, open_recorder: OpenRecorder) -> None:
    """Question, answer and the exact match are in `detail`."""
    recorder = open_recorder()
    recording = recorder.begin(session_of())
    detail = {"question": "2 + 2", "answer": "4", "exact_match_v1": 1}
    turn: Turn = msgspec.structs.replace(turn_of(0), detail=detail)
    recording.turn(turn, "answer")
    drained(recorder)
    assert events_of(tmp_path, recording.session_id)[-1].value["detail"] == detail
