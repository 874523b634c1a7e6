"""Power cuts and kills at every operation of the disk: no turn is lost, none is there twice."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.edge.journal import SyncPolicy
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder, journal_folders
from etude.files import Files, armed
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason
from etude.testing.clocks import ManualClock
from etude.testing.lossy_files import LossyFiles, PowerCutError
from etude.testing.practising import (
    drained,
    events_of,
    packets_of,
    play_step,
    session_of,
    taken_up,
    turns_of,
)

STEPS = 2
DEVICE = "toy-1"


class Counted:
    """Ids that no process of the test has twice."""

    def __init__(self, prefix: str) -> None:
        self._prefix, self._count = prefix, 0

    def new(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count:03}"


@contextlib.contextmanager
def process(root: Path, prefix: str, files: Files | None = None) -> Iterator[Recorder]:
    """A recorder of its own; at the end it is dead: locks go, nothing more is written."""
    recorder = taken_up(
        Recorder(
            root,
            clock=ManualClock(),
            ids=Counted(prefix),
            files=files,
            policy=SyncPolicy.ALWAYS,
        ),
        root,
    )
    records = []
    try:
        records = [line.record for line in recorder._queue._lines.values()]
        yield recorder
    finally:
        records += [line.record for line in recorder._queue._lines.values()]
        for record in records:
            if record._journal:
                record._journal._release()


def practise(recorder: Recorder, done: list[int]) -> None:
    """Two steps with sound, and the end; `done` is what was on the disk when the power went."""
    recording = recorder.begin(session_of(DEVICE))
    drained(recorder)
    for step in range(STEPS):
        play_step(recording, step, packets_of(DEVICE, step))
        drained(recorder)
        done.append(step)
    recording.end(EndReason.LIST_COMPLETED)
    drained(recorder)


def go_on(root: Path) -> None:
    """The next process: the device comes again and practises to the end."""
    with process(root, "b") as recorder:
        drained(recorder)
        found = recorder.unfinished(DEVICE)
        if found:
            recording = recorder.resume(found)
            for step in range(found.next_step, STEPS):
                play_step(recording, step, packets_of(DEVICE, step))
            recording.end(EndReason.LIST_COMPLETED)
        drained(recorder)


def check(root: Path, done: list[int]) -> None:
    for folder in journal_folders(root):
        events = events_of(root, folder.path.name)
        if not events:
            assert done == []
            continue
        assert JournalFolder(folder.path).sealed()
        assert turns_of(events) == list(range(STEPS))
        assert [one.seq for one in events] == list(range(1, len(events) + 1))
        assert len({one.event_id for one in events}) == len(events)
        kept = {sha256: path.read_bytes() for sha256, path, _ in recordings(folder.path)}
        for one in events:
            if one.event_type == "signal_observation":
                step = one.value["step_index"]
                assert kept[one.value["audio_id"]].endswith(b"".join(packets_of(DEVICE, step)))
    if done:
        assert any(journal_folders(root))


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_power_cut_at_any_operation(tmp_path: Path, seed: int | None) -> None:
    """What was on the disk is there; the session goes on to one turn a step, sealed."""
    cut, cuts = 0, 0
    while True:
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        disk = LossyFiles(live, cut_at=cut)
        done: list[int] = []
        with process(live, "a", disk) as recorder:
            try:
                practise(recorder, done)
            except PowerCutError:
                cuts += 1
            else:
                break
        after = disk.survivors(tmp_path / f"after-{cut}", seed)
        go_on(after)
        check(after, done)
        cut += 1
    assert cuts > 40


class _KilledError(BaseException):
    pass


def crash_points(practising: Callable[[], None]) -> list[str]:
    reached: list[str] = []
    with armed(reached.append):
        practising()
    return reached


def test_a_kill_at_every_crash_point(tmp_path: Path) -> None:
    """Each time a point is reached the process dies there, and the next one goes on."""

    def first(root: Path, done: list[int]) -> None:
        root.mkdir()
        with process(root, "a") as recorder:
            practise(recorder, done)

    reached = crash_points(lambda: first(tmp_path / "whole", []))
    assert {"edge.media.kept", "edge.journal.written", "edge.journal.before_seal"} < set(reached)
    assert "practice.recorder.ended" in reached
    for number in range(len(reached)):
        root, done, left = tmp_path / f"killed-{number}", list[int](), [number]

        def die(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise _KilledError

        with armed(die), pytest.raises(_KilledError):
            first(root, done)
        go_on(root)
        check(root, done)
