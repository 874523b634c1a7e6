"""`kill -9` of a process that records: nothing the disk had is lost, no step has two turns.

`make soak` runs the same trial 200 times with other seeds; `ETUDE_TEST_SOAK_KILLS` changes how
many.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from etude.clock import RandomIds, SystemClock
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder, journal_folders
from etude.practice.recorder import Recorder
from etude.testing.nursery import Nursery
from etude.testing.practising import packets_of, turns_of
from etude.testing.recorder_process import ACKNOWLEDGED, PACKETS, STEPS, finish
from etude.testing.waiting import PATIENCE_S

SOAK_KILLS = int(os.environ.get("ETUDE_TEST_SOAK_KILLS", "200"))
POINTS = (
    "edge.journal.folder_made",
    "edge.journal.opened",
    "edge.journal.written",
    "edge.journal.appended",
    "edge.journal.before_seal",
    "edge.journal.sealed",
    "edge.media.kept",
    "files.replace.written",
    "files.replace.renamed",
    "practice.recorder.ended",
)


class Figures(msgspec.Struct, kw_only=True):
    """What came of one kill."""

    killed: bool
    acknowledged: int
    went_on: int
    sessions: int


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery")) as running:
        yield running


def told_of(folder: Path) -> list[list[str]]:
    """Session and id of each event that the disk had before the kill."""
    file = folder / ACKNOWLEDGED
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def kill_recorder(nursery: Nursery, folder: Path, seed: int) -> Figures:
    """Kill a recorder at a seeded point or moment, go on in this process, look at the journals."""
    chance = random.Random(seed)
    root = folder / "journals"
    folder.mkdir()
    at_a_point = chance.random() < 0.5
    crash_at = f"{chance.choice(POINTS)}:{chance.randint(1, 20)}"
    environment = {"ETUDE_CRASH_AT": crash_at} if at_a_point else {}
    process = nursery.start(
        "etude.testing.recorder_process", str(root), str(seed), environment=environment
    )
    if not at_a_point:
        until_s = time.monotonic() + PATIENCE_S
        while process.running() and not told_of(folder):
            assert time.monotonic() < until_s, process.log_text()
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.4))
        process.kill()
    process.wait()
    told = told_of(folder)
    open_before = sum(not one.sealed() for one in journal_folders(root))
    recorder = Recorder(root, clock=SystemClock(), ids=RandomIds())
    recorder.start()
    went_on = finish(recorder)
    recorder.close()
    check(root, told)
    return Figures(
        killed=open_before > 0,
        acknowledged=len(told),
        went_on=went_on,
        sessions=len(list(journal_folders(root))),
    )


def check(root: Path, told: list[list[str]]) -> None:
    """Every acknowledged event once; every session sealed, with one turn a step and its sound."""
    events = {one.path.name: list(one.events()) for one in journal_folders(root)}
    ids = Counter((name, one.event_id) for name, found in events.items() for one in found)
    assert set(ids.values()) <= {1}
    assert [tuple(one) for one in told if tuple(one) not in ids] == []
    for name, found in events.items():
        if not found:
            continue  # killed between the folder and its first line
        folder = root / name
        assert JournalFolder(folder).sealed()
        assert turns_of(found) == list(range(STEPS))
        assert [one.seq for one in found] == list(range(1, len(found) + 1))
        assert [one.ts for one in found] == sorted(one.ts for one in found)
        device_id = (found[0].meta or {})["device_id"]
        kept = {sha256: path.read_bytes() for sha256, path, _ in recordings(folder)}
        for one in found:
            if one.event_type == "signal_observation":
                spoken = b"".join(packets_of(device_id, one.value["step_index"], PACKETS))
                assert kept[one.value["audio_id"]].endswith(spoken)


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_recorder_loses_and_doubles_nothing(
    nursery: Nursery, tmp_path: Path, seed: int
) -> None:
    """After the restart each device goes on where it was, to one turn a step."""
    figures = kill_recorder(nursery, tmp_path / "trial", seed)
    assert (figures.acknowledged > 0) <= (figures.sessions > 0)


def test_the_recorder_is_killed_in_the_middle_indeed(nursery: Nursery, tmp_path: Path) -> None:
    """Over a few seeds sessions are left open and gone on with: the trials are no idle ones."""
    found = [kill_recorder(nursery, tmp_path / f"t-{seed}", seed) for seed in range(20, 25)]
    assert any(one.killed and one.went_on for one in found)
    assert sum(one.acknowledged for one in found) > 0


@pytest.mark.soak
def test_many_kills_of_the_recorder(
    nursery: Nursery, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 kills: every trial holds, and most of them interrupted a session."""
    kills = went_on = acknowledged = 0
    for seed in range(3000, 3000 + SOAK_KILLS):
        figures = kill_recorder(nursery, tmp_path / f"soak-{seed}", seed)
        kills += figures.killed
        went_on += figures.went_on
        acknowledged += figures.acknowledged
    with capsys.disabled():
        print(f"\nrecorder: {kills=} {went_on=} {acknowledged=}")  # noqa: T201 - read by who waits
    assert kills > SOAK_KILLS // 2
