"""Power cuts at every operation, kills at every named point: no acknowledged event is lost."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from etude.edge.errors import JournalSealedError
from etude.edge.journal import Journal, SyncPolicy
from etude.edge.reader import JournalFolder
from etude.edge.seal import measure
from etude.files import Files, armed
from etude.testing.journals import numbered
from etude.testing.lossy_files import LossyFiles, PowerCutError

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
SEEDS = (None, 1, 2, 3, 4, 5)


class Life:
    """A session: three events, a reopening on a torn tail, one more event, the seal, a contest."""

    def __init__(self, root: Path, files: Files) -> None:
        self.root = root
        self.files = files
        self.acknowledged: list[str] = []
        self.sealed: set[int] = set()
        self.journals: list[Journal] = []

    def die(self) -> None:
        """Let go of the locks, as the end of a process does."""
        for journal in self.journals:
            journal._release()

    def live(self) -> None:
        journal = Journal.open(self.root, "s-1", files=self.files)
        self._append(journal, 1, 2, 3)
        torn = self.files.open_append(journal.path)
        torn.write_all(b'{"event_id":"torn"')
        torn.close()
        journal.close()
        journal = Journal.open(self.root, "s-1", files=self.files)
        self._append(journal, 4)
        journal.seal(NOW)
        self.sealed.add(1)
        contests = Journal.open_contests(self.root, "s-1", files=self.files)
        self._append(contests, 5)
        contests.seal(NOW)
        self.sealed.add(2)

    def _append(self, journal: Journal, *numbers: int) -> None:
        self.journals.append(journal)
        for number in numbers:
            journal.append(numbered(number))
            self.acknowledged.append(f"e{number:03}")


def go_on(root: Path, files: Files | None = None) -> list[str]:
    """Come back after the crash, write one event more, and return what is there."""
    try:
        journal = Journal.open(root, "s-1", files=files)
    except JournalSealedError:
        journal = Journal.open_contests(root, "s-1", files=files)
    journal.append(numbered(9))
    journal.close()
    return [each.event_id for each in JournalFolder(root / "s-1").events()]


def holds(life: Life, found: list[str], root: Path) -> None:
    """What was acknowledged is there, in order, once; at most one more that was on its way."""
    before = found[:-1]
    assert found[-1] == "e009"
    assert before[: len(life.acknowledged)] == life.acknowledged
    assert len(before) - len(life.acknowledged) in {0, 1}
    assert len(set(found)) == len(found)
    folder = JournalFolder(root / "s-1")
    for number, part in folder.parts():
        seal = folder.seal(number)
        assert seal or number not in life.sealed
        if seal:
            with part.open("rb") as content:
                assert measure(content, NOW) == seal


def test_a_power_cut_at_every_operation_loses_no_acknowledged_event(tmp_path: Path) -> None:
    """Unsynced writes discarded, or kept in part: every event whose append returned is there."""
    cut = 0
    finished = False
    while not finished:
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        disk = LossyFiles(live, cut_at=cut)
        life = Life(live / "journals", disk)
        try:
            life.live()
            finished = True
        except PowerCutError:
            disk.cut_power()
        for seed in SEEDS:
            after = disk.survivors(tmp_path / f"after-{cut}-{seed}", seed)
            holds(life, go_on(after / "journals"), after / "journals")
        cut += 1
    assert cut > 40
    assert life.acknowledged == ["e001", "e002", "e003", "e004", "e005"]


def test_a_kill_and_then_a_power_cut_lose_no_acknowledged_event(tmp_path: Path) -> None:
    """What a killed process had not synced is made durable before anything is built upon it."""
    for cut in range(60):
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        disk = LossyFiles(live, cut_at=cut)
        life = Life(live / "journals", disk)
        killed = False
        try:
            life.live()
        except PowerCutError:
            killed = True
        if not killed:
            break
        life.die()
        disk = disk.revived()
        found = go_on(live / "journals", disk)
        holds(life, found, live / "journals")
        after = disk.survivors(tmp_path / f"after-{cut}")
        assert [each.event_id for each in JournalFolder(after / "journals" / "s-1").events()] == (
            found
        )
    else:
        pytest.fail("the life has more operations than this test cuts")


def test_a_kill_at_every_named_point_loses_no_acknowledged_event(tmp_path: Path) -> None:
    """Every crash point of the journal is reached, and harmless, each time it is passed."""
    passed: list[str] = []
    with armed(passed.append):
        Life(tmp_path / "counted", Files()).live()
    assert {name for name in passed if name.startswith("edge.journal.")} == {
        "edge.journal.folder_made",
        "edge.journal.opened",
        "edge.journal.written",
        "edge.journal.appended",
        "edge.journal.tail_moved",
        "edge.journal.before_seal",
        "edge.journal.sealed",
    }
    for number in range(len(passed)):
        live = tmp_path / f"live-{number}"
        live.mkdir()
        disk = LossyFiles(live)
        life = Life(live / "journals", disk)
        left = [number]

        def die(name: str, disk: LossyFiles = disk, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                disk.cut_power()
                raise PowerCutError(name)

        with armed(die), pytest.raises(PowerCutError):
            life.live()
        for seed in SEEDS:
            after = disk.survivors(tmp_path / f"after-{number}-{seed}", seed)
            holds(life, go_on(after / "journals"), after / "journals")


def test_what_a_reopened_journal_holds_is_durable_before_it_is_built_upon(tmp_path: Path) -> None:
    """A killed process left an unsynced line: once the journal is open again, it stays."""
    live = tmp_path / "live"
    live.mkdir()
    disk = LossyFiles(live)
    journal = Journal.open(live, "s-1", files=disk, policy=SyncPolicy.OS)
    journal.append(numbered(1))
    journal._release()
    again = Journal.open(live, "s-1", files=disk.revived())
    disk.cut_power()
    after = disk.survivors(tmp_path / "after")
    assert [each.event_id for each in JournalFolder(after / "s-1").events()] == ["e001"]
    again._release()
