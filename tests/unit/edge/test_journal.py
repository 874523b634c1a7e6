import errno
import hashlib
import json
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge import errors, layout
from etude.edge.interval_sync import IntervalSync
from etude.edge.journal import Journal, SyncPolicy
from etude.edge.reader import JournalFolder
from etude.edge.seal import read_seal
from etude.testing.journals import numbered
from etude.testing.lossy_files import LossyFiles
from etude.testing.waiting import run_bounded

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def ids(root: Path, session_id: str = "s-1") -> list[str]:
    folder = JournalFolder(root / layout.folder_name(session_id))
    return [each.event_id for each in folder.events()]


def test_an_event_is_one_line_in_the_folder_of_its_session(tmp_path: Path) -> None:
    """`<root>/<session_id>/events.jsonl` holds one JSON object a line."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
        journal.append(numbered(2))
    content = (tmp_path / "s-1" / "events.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert [json.loads(line)["event_id"] for line in content.splitlines()] == ["e001", "e002"]


def test_each_event_is_one_write_and_one_sync(tmp_path: Path) -> None:
    """Under `always` an append is exactly: write, sync."""
    disk = LossyFiles(tmp_path)
    with Journal.open(tmp_path, "s-1", files=disk) as journal:
        before = len(disk.operations)
        journal.append(numbered(1))
        assert disk.operations[before:] == ["write events.jsonl", "sync events.jsonl"]


def test_the_os_policy_does_not_sync_an_append(tmp_path: Path) -> None:
    """Under `os` an append is one write; closing syncs."""
    disk = LossyFiles(tmp_path)
    with Journal.open(tmp_path, "s-1", files=disk, policy=SyncPolicy.OS) as journal:
        before = len(disk.operations)
        journal.append(numbered(1))
        assert disk.operations[before:] == ["write events.jsonl"]
    assert disk.operations[-1] == "sync events.jsonl"


def test_the_interval_policy_syncs_without_another_append(tmp_path: Path) -> None:
    """Under `interval` the sync comes by itself, off the writer's thread."""
    synced = threading.Event()

    class Watched(LossyFiles):
        def before(self, operation: str) -> None:
            super().before(operation)
            if operation.startswith("sync events") and "write events.jsonl" in self.operations:
                synced.set()

    with Journal.open(
        tmp_path, "s-1", files=Watched(tmp_path), policy=SyncPolicy.INTERVAL
    ) as journal:
        journal.append(numbered(1))
        assert synced.wait(30)


def test_the_interval_sync_tries_again_after_a_failure() -> None:
    """A failing disk does not end the syncing."""
    tried, done = [], threading.Event()

    def sync() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise errors.JournalWriteError(path="x", waiting=0, reason="test")
        done.set()

    syncing = IntervalSync(sync, interval_s=0.001)
    syncing.wanted()
    assert done.wait(30)
    syncing.stop()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """One writer a session; another session is free; closing frees it."""
    with Journal.open(tmp_path, "s-1"):
        with pytest.raises(errors.JournalLockedError):
            Journal.open(tmp_path, "s-1")
        Journal.open(tmp_path, "s-2").close()
    Journal.open(tmp_path, "s-1").close()


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    """A writer that was killed does not lock its journal for ever."""
    program = (
        "import os, signal, sys; from pathlib import Path; from etude.edge.journal import Journal\n"
        "journal = Journal.open(Path(sys.argv[1]), 's-1')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run_bounded([sys.executable, "-c", program, str(tmp_path)], check=False)
    Journal.open(tmp_path, "s-1").close()


def test_a_reopened_journal_goes_on_at_its_end(tmp_path: Path) -> None:
    """Events appended after reopening stand behind the earlier ones."""
    for number in (1, 2, 3):
        with Journal.open(tmp_path, "s-1") as journal:
            journal.append(numbered(number))
    assert ids(tmp_path) == ["e001", "e002", "e003"]


def test_a_journal_cut_at_every_byte_of_its_last_line_reopens(tmp_path: Path) -> None:
    """All earlier events stay, the tail is kept in `events.torn`, the next event is not glued."""
    with Journal.open(tmp_path, "s-1") as journal:
        for number in (1, 2, 3):
            journal.append(numbered(number))
    whole = (tmp_path / "s-1" / "events.jsonl").read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(whole)):
        root = tmp_path / f"cut-{cut}"
        (root / "s-1").mkdir(parents=True)
        (root / "s-1" / "events.jsonl").write_bytes(whole[:cut])
        with Journal.open(root, "s-1") as journal:
            journal.append(numbered(4))
        assert ids(root) == ["e001", "e002", "e004"]
        torn = root / "s-1" / "events.torn"
        assert (torn.read_bytes() if torn.exists() else b"") == whole[last:cut]


def test_a_journal_of_one_torn_line_reopens_empty(tmp_path: Path) -> None:
    """The first event torn: nothing is left of it but `events.torn`."""
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / "events.jsonl").write_bytes(b'{"event_id":')
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
    assert ids(tmp_path) == ["e001"]


def test_a_second_torn_tail_is_added_to_the_first(tmp_path: Path) -> None:
    """`events.torn` only grows, one tail a line."""
    part = tmp_path / "s-1" / "events.jsonl"
    for tail in (b"first", b"second"):
        Journal.open(tmp_path, "s-1").close()
        with part.open("ab") as content:
            content.write(tail)
    Journal.open(tmp_path, "s-1").close()
    assert part.read_bytes() == b""
    assert part.with_name("events.torn").read_bytes() == b"first\nsecond"


def test_a_long_torn_tail_is_found(tmp_path: Path) -> None:
    """The last line end is found however far back it is."""
    part = tmp_path / "s-1" / "events.jsonl"
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
    with part.open("ab") as content:
        content.write(b"x" * 300_000)
    Journal.open(tmp_path, "s-1").close()
    assert ids(tmp_path) == ["e001"]
    assert part.with_name("events.torn").stat().st_size == 300_000


def test_a_full_disk_is_said_at_once_and_no_event_is_lost(tmp_path: Path) -> None:
    """Events wait in memory, in order, and are written when space returns, none twice."""
    disk = LossyFiles(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    journal.append(numbered(1))
    disk.space_bytes = 0
    for number in (2, 3):
        with pytest.raises(errors.JournalDiskFullError):
            journal.append(numbered(number))
    assert journal.waiting == 2
    disk.space_bytes = None
    journal.append(numbered(4))
    journal.close()
    assert ids(tmp_path) == ["e001", "e002", "e003", "e004"]


@given(room=st.integers(0, 400))
def test_a_disk_full_in_the_middle_of_a_line_leaves_no_glue(
    tmp_path_factory: pytest.TempPathFactory, room: int
) -> None:
    """However many bytes of a line fitted, the next line starts on its own."""
    root = tmp_path_factory.mktemp("journal")
    disk = LossyFiles(root)
    journal = Journal.open(root, "s-1", files=disk)
    disk.space_bytes = room
    for number in (1, 2, 3, 4):
        try:
            journal.append(numbered(number))
        except errors.JournalDiskFullError:
            assert JournalFolder(journal.folder).end().offset == journal.path.stat().st_size
    disk.space_bytes = None
    journal.flush()
    journal.close()
    assert ids(root) == ["e001", "e002", "e003", "e004"]


def test_a_line_that_could_not_be_cut_back_is_cut_before_the_next(tmp_path: Path) -> None:
    """Where even cutting back fails, it is done before anything else is written."""

    class Stubborn(LossyFiles):
        stuck = False

        def before(self, operation: str) -> None:
            if self.stuck and operation.startswith("truncate"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().before(operation)

    disk = Stubborn(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    disk.space_bytes, disk.stuck = 20, True
    for number in (1, 2):
        with pytest.raises(errors.UnavailableError):
            journal.append(numbered(number))
    disk.space_bytes, disk.stuck = None, False
    journal.close()
    assert ids(tmp_path) == ["e001", "e002"]


def test_a_sync_that_fails_leaves_the_event_waiting(tmp_path: Path) -> None:
    """An event whose sync failed counts as not on the disk: it is written again."""

    class Failing(LossyFiles):
        failing = False

        def before(self, operation: str) -> None:
            if self.failing and operation == "sync events.jsonl":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().before(operation)

    disk = Failing(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    disk.failing = True
    with pytest.raises(errors.JournalWriteError):
        journal.append(numbered(1))
    assert journal.path.read_bytes() == b""
    disk.failing = False
    journal.close()
    assert ids(tmp_path) == ["e001"]


def test_closing_on_a_full_disk_hands_the_lines_back(tmp_path: Path) -> None:
    """Whoever must end while the disk is full gets the error and the lines."""
    disk = LossyFiles(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    disk.space_bytes = 0
    with pytest.raises(errors.JournalDiskFullError):
        journal.append(numbered(1))
    with pytest.raises(errors.JournalDiskFullError):
        journal.close()
    assert [json.loads(line)["event_id"] for line in journal.unwritten] == ["e001"]
    Journal.open(tmp_path, "s-1").close()


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    """Under `RLIMIT_FSIZE` the journal says it is full, keeps whole lines, and goes on after."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from etude.edge.errors import JournalDiskFullError\n"
        "from etude.edge.journal import Journal\n"
        "from etude.events.model import Event\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = Journal.open(Path(sys.argv[1]), 's-1')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))\n"
        "full = 0\n"
        "for n in range(1, 11):\n"
        "    try:\n"
        "        journal.append(Event(event_id=f'e{n:03}', session_id='s-1', ts=n,\n"
        "            event_type='streak', signal='x'))\n"
        "    except JournalDiskFullError:\n"
        "        full += 1\n"
        "assert journal.path.read_bytes().endswith(b'\\n'), 'glue'\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "journal.flush()\n"
        "print(full)\n"
    )
    ran = run_bounded(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert 0 < int(ran.stdout) < 10
    assert ids(tmp_path) == [f"e{number:03}" for number in range(1, 11)]


def test_a_journal_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    """A file in the place of the root is said, with its path."""
    (tmp_path / "root").write_bytes(b"")
    with pytest.raises(errors.JournalWriteError, match="root"):
        Journal.open(tmp_path / "root", "s-1")


def test_sealing_writes_count_and_digest_and_makes_it_read_only(tmp_path: Path) -> None:
    """The seal says lines, bytes, sha256 and when."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
        journal.append(numbered(2))
        seal = journal.seal(NOW)
    part = tmp_path / "s-1" / "events.jsonl"
    content = part.read_bytes()
    assert (seal.lines, seal.bytes, seal.sealed_at) == (2, len(content), NOW)
    assert seal.sha256 == hashlib.sha256(content).hexdigest()
    assert read_seal(part.with_name("events.seal.json")) == seal
    assert part.stat().st_mode & 0o777 == 0o400


def test_a_changed_line_breaks_the_seal(tmp_path: Path) -> None:
    """`Seal.check` finds one changed byte."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
        seal = journal.seal(NOW)
    part = tmp_path / "s-1" / "events.jsonl"
    with part.open("rb") as content:
        seal.check(content, part.name)
    part.chmod(0o600)
    part.write_bytes(part.read_bytes().replace(b"e001", b"e002"))
    with part.open("rb") as content, pytest.raises(errors.SealBrokenError):
        seal.check(content, part.name)


def test_nothing_is_appended_behind_a_seal(tmp_path: Path) -> None:
    """A sealed journal refuses its own writer and any later one."""
    journal = Journal.open(tmp_path, "s-1")
    journal.seal(NOW)
    with pytest.raises(errors.JournalClosedError):
        journal.append(numbered(1))
    with pytest.raises(errors.JournalSealedError):
        Journal.open(tmp_path, "s-1")


def test_a_seal_waits_for_room(tmp_path: Path) -> None:
    """On a full disk the seal fails with a clear error and can be made later."""
    disk = LossyFiles(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    journal.append(numbered(1))
    disk.space_bytes = 3
    with pytest.raises(errors.JournalDiskFullError):
        journal.seal(NOW)
    disk.space_bytes = None
    assert journal.seal(NOW).lines == 1


def test_contests_go_into_further_parts(tmp_path: Path) -> None:
    """Behind the seal stands `events.2.jsonl`, behind its seal `events.3.jsonl`; all are read."""
    Journal.open(tmp_path, "s-1").seal(NOW)
    for number in (2, 3):
        contests = Journal.open_contests(tmp_path, "s-1")
        assert contests.path.name == f"events.{number}.jsonl"
        contests.append(numbered(number))
        contests.seal(NOW)
    assert ids(tmp_path) == ["e002", "e003"]
    assert (tmp_path / "s-1" / "events.2.seal.json").exists()


def test_a_part_of_contests_that_a_crash_left_open_goes_on(tmp_path: Path) -> None:
    """An unsealed `events.2.jsonl` is continued, not skipped."""
    Journal.open(tmp_path, "s-1").seal(NOW)
    with Journal.open_contests(tmp_path, "s-1") as contests:
        contests.append(numbered(2))
    with Journal.open_contests(tmp_path, "s-1") as contests:
        contests.append(numbered(3))
        assert contests.path.name == "events.2.jsonl"
    assert ids(tmp_path) == ["e002", "e003"]


def test_contests_before_the_end_belong_into_the_session_itself(tmp_path: Path) -> None:
    """There is no second part before the first is sealed."""
    Journal.open(tmp_path, "s-1").close()
    with pytest.raises(errors.JournalNotSealedError):
        Journal.open_contests(tmp_path, "s-1")


def test_an_event_of_another_session_is_refused(tmp_path: Path) -> None:
    """A journal holds one session."""
    with Journal.open(tmp_path, "s-1") as journal, pytest.raises(errors.JournalForeignEventError):
        journal.append(numbered(1, session_id="s-2"))


def test_an_event_over_the_line_limit_is_refused(tmp_path: Path) -> None:
    """What no server accepts is refused where it is made, and the journal stays clean."""
    with Journal.open(tmp_path, "s-1") as journal:
        with pytest.raises(errors.EventTooLongError):
            journal.append(numbered(1, value={"text": "x" * 70_000}))
        journal.append(numbered(2))
    assert ids(tmp_path) == ["e002"]


def test_leftovers_of_a_dead_writer_are_removed(tmp_path: Path) -> None:
    """Temporary files of a killed seal do not pile up."""
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / ".events.seal.json.1.tmp").write_bytes(b"half")
    Journal.open(tmp_path, "s-1").close()
    assert not (tmp_path / "s-1" / ".events.seal.json.1.tmp").exists()
