import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from etude.edge import errors
from etude.edge.archive import Archive
from etude.edge.journal import Journal
from etude.edge.locks import FolderLock
from etude.edge.media import keep_recording
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder
from etude.edge.upload_state import UploadStatus
from etude.errors import EtudeError
from etude.files import Files
from etude.net import HttpClient
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import FakeCloud
from etude.testing.journals import write_journal
from etude.testing.lossy_files import LossyFiles, PowerCutError

SEALED = datetime(2026, 3, 1, 9, tzinfo=UTC)
IN_A_MONTH = ManualClock(SEALED + timedelta(days=30))


def upload(root: Path, cloud: FakeCloud) -> UploadStatus:
    client = HttpClient("https://cloud.test", wire=cloud.wire())
    with Outbox(root, client, clock=IN_A_MONTH) as outbox:
        outbox.trigger()
        outbox.run_due()
        return outbox.states()[0].status


def test_a_journal_is_packed_after_thirty_days(tmp_path: Path) -> None:
    """The packed file takes the place of the plain one and says the same."""
    folder = write_journal(tmp_path, count=50)
    content = (folder / "events.jsonl").read_bytes()
    lines = list(JournalFolder(folder).lines())
    assert Archive(tmp_path, clock=IN_A_MONTH).pack_old() == [folder / "events.jsonl.gz"]
    assert not (folder / "events.jsonl").exists()
    assert gzip.decompress((folder / "events.jsonl.gz").read_bytes()) == content
    assert list(JournalFolder(folder).lines()) == lines
    assert JournalFolder(folder).end().offset == len(content)
    assert Archive(tmp_path, clock=IN_A_MONTH).pack_old() == []


def test_a_younger_journal_stays_as_it_is(tmp_path: Path) -> None:
    """29 days are not 30."""
    write_journal(tmp_path, count=50)
    assert Archive(tmp_path, clock=ManualClock(SEALED + timedelta(days=29))).pack_old() == []


def test_an_open_journal_stays_as_it_is(tmp_path: Path) -> None:
    """What is not sealed is not over."""
    write_journal(tmp_path, count=50, seal=False)
    archive = Archive(tmp_path, clock=ManualClock(SEALED + timedelta(days=999)))
    assert (archive.pack_old(), archive.delete_old()) == ([], [])


def test_a_journal_with_a_broken_seal_stays_as_it_is(tmp_path: Path) -> None:
    """Nobody packs away the proof."""
    part = write_journal(tmp_path, count=50) / "events.jsonl"
    part.chmod(0o600)
    part.write_bytes(part.read_bytes().replace(b"e001", b"e999"))
    assert Archive(tmp_path, clock=IN_A_MONTH).pack_old() == []
    assert part.exists()


def test_a_damaged_seal_does_not_keep_the_others(tmp_path: Path) -> None:
    """A session whose seal cannot be read stays; its neighbour is packed and deleted."""
    bad = write_journal(tmp_path, "s-1", count=50)
    good = write_journal(tmp_path, "s-2", count=50)
    upload(tmp_path, FakeCloud())
    (bad / "events.seal.json").write_bytes(b"{")
    archive = Archive(tmp_path, clock=IN_A_MONTH)
    assert archive.pack_old() == [good / "events.jsonl.gz"]
    assert archive.delete_old() == ["s-2"]
    assert (bad / "events.jsonl").exists()


def test_a_contest_written_at_the_last_moment_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at before the lock is looked at again behind it."""
    write_journal(tmp_path, count=50)
    upload(tmp_path, FakeCloud())

    def contest_first(path: Path, refused: Callable[[], EtudeError]) -> FolderLock:
        Journal.open_contests(tmp_path, "s-1").seal(SEALED + timedelta(days=29))
        return FolderLock(path, refused)

    monkeypatch.setattr("etude.edge.archive.FolderLock", contest_first)
    assert Archive(tmp_path, clock=IN_A_MONTH).delete_old() == []


def test_a_journal_in_use_stays_as_it_is(tmp_path: Path) -> None:
    """A contest is being written."""
    write_journal(tmp_path, count=50)
    with Journal.open_contests(tmp_path, "s-1"):
        assert Archive(tmp_path, clock=IN_A_MONTH).pack_old() == []


def test_a_packed_journal_is_uploaded_like_any_other(tmp_path: Path) -> None:
    """A toy that was offline for a month loses nothing."""
    write_journal(tmp_path, count=50)
    Archive(tmp_path, clock=IN_A_MONTH).pack_old()
    cloud = FakeCloud()
    assert upload(tmp_path, cloud) is UploadStatus.DONE
    assert len(cloud.events["s-1"]) == 50


def test_a_journal_is_deleted_only_when_everything_is_acknowledged(tmp_path: Path) -> None:
    """Not before the upload; after it, folder and all."""
    folder = write_journal(tmp_path, count=50)
    archive = Archive(tmp_path, clock=IN_A_MONTH)
    archive.pack_old()
    assert archive.delete_old() == []
    assert folder.exists()
    upload(tmp_path, FakeCloud())
    assert archive.delete_old() == ["s-1"]
    assert list(tmp_path.iterdir()) == []


def test_a_journal_with_a_refused_line_is_not_deleted(tmp_path: Path) -> None:
    """What the server will not have is kept for a person."""
    write_journal(tmp_path, count=50)
    cloud = FakeCloud()
    cloud.poison = {"e007"}
    upload(tmp_path, cloud)
    assert Archive(tmp_path, clock=IN_A_MONTH).delete_old() == []


def test_a_journal_with_an_unsent_recording_is_not_deleted(tmp_path: Path) -> None:
    """Recordings count."""
    folder = write_journal(tmp_path, count=50)
    upload(tmp_path, FakeCloud())
    keep_recording(folder, b"RIFF", "audio/wav")
    assert Archive(tmp_path, clock=IN_A_MONTH).delete_old() == []


def test_a_journal_with_a_late_contest_is_not_deleted(tmp_path: Path) -> None:
    """A young part keeps the old one."""
    write_journal(tmp_path, count=50)
    upload(tmp_path, FakeCloud())
    Journal.open_contests(tmp_path, "s-1").seal(SEALED + timedelta(days=29))
    assert Archive(tmp_path, clock=IN_A_MONTH).delete_old() == []


def test_a_full_disk_stops_the_packing_with_a_clear_error(tmp_path: Path) -> None:
    """The plain journal stays; the next run packs it."""
    folder = write_journal(tmp_path, count=50)
    disk = LossyFiles(tmp_path, space_bytes=10)
    with pytest.raises(errors.JournalDiskFullError):
        Archive(tmp_path, clock=IN_A_MONTH, files=disk).pack_old()
    assert (folder / "events.jsonl").exists()
    assert len(Archive(tmp_path, clock=IN_A_MONTH).pack_old()) == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl.gz",
        "events.seal.json",
    ]


def test_a_power_cut_at_every_operation_of_the_archive_loses_no_event(tmp_path: Path) -> None:
    """Plain or packed, all fifty are readable, and the next run finishes."""
    cut, finished = 0, False
    while not finished:
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        write_journal(live, count=50)
        disk = LossyFiles(live, cut_at=cut)
        try:
            Archive(live, clock=IN_A_MONTH, files=disk).pack_old()
            finished = True
        except PowerCutError:
            disk.cut_power()
        for seed in (None, 1, 2, 3):
            after = disk.survivors(tmp_path / f"after-{cut}-{seed}", seed)
            assert len(list(JournalFolder(after / "s-1").events())) == 50
            Archive(after, clock=IN_A_MONTH).pack_old()
            assert [path.name for _, path in JournalFolder(after / "s-1").parts()] == [
                "events.jsonl.gz"
            ]
            assert len(list(JournalFolder(after / "s-1").events())) == 50
        cut += 1
    assert cut > 5


def test_a_power_cut_at_every_operation_of_a_deletion_leaves_all_or_nothing(
    tmp_path: Path,
) -> None:
    """The session is there whole, or out of sight and removed by the next run."""
    cut, finished = 0, False
    while not finished:
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        write_journal(live, count=50)
        upload(live, FakeCloud())
        disk = LossyFiles(live, cut_at=cut)
        try:
            Archive(live, clock=IN_A_MONTH, files=disk).delete_old()
            finished = True
        except PowerCutError:
            disk.cut_power()
        for seed in (None, 1, 2, 3):
            after = disk.survivors(tmp_path / f"after-{cut}-{seed}", seed)
            there = (after / "s-1").exists()
            assert not there or len(list(JournalFolder(after / "s-1").events())) == 50
            Archive(after, clock=IN_A_MONTH, files=Files()).delete_old()
            assert list(after.iterdir()) == []
        cut += 1
    assert cut == 4
