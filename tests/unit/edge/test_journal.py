import errno
import gzip
import hashlib
import json
import os
import subprocess
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
from etude.edge.reader import JournalFolder, Position, journal_folders
from etude.edge.seal import read_seal
from etude.events.model import Event
from etude.testing.lossy_files import LossyFiles

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def event(number: int, session_id: str = "s-1", **more: object) -> Event:
    return Event(
        event_id=f"e{number:03}",
        session_id=session_id,
        ts=float(number),
        event_type="audio_observation",
        signal="pitch_accuracy",
        seq=number,
        **more,  # type: ignore[arg-type]  # any field of the event
    )


def ids(root: Path, session_id: str = "s-1") -> list[str]:
    folder = JournalFolder(root / layout.folder_name(session_id))
    return [each.event_id for each in folder.events()]


def test_an_event_is_one_line_in_the_folder_of_its_session(tmp_path: Path) -> None:
    """`<root>/<session_id>/events.jsonl` holds one JSON object a line."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(event(1))
        journal.append(event(2))
    content = (tmp_path / "s-1" / "events.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert [json.loads(line)["event_id"] for line in content.splitlines()] == ["e001", "e002"]


def test_each_event_is_one_write_and_one_sync(tmp_path: Path) -> None:
    """Under `always` an append is exactly: write, sync."""
    disk = LossyFiles(tmp_path)
    with Journal.open(tmp_path, "s-1", files=disk) as journal:
        before = len(disk.operations)
        journal.append(event(1))
        assert disk.operations[before:] == ["write events.jsonl", "sync events.jsonl"]


def test_the_os_policy_does_not_sync_an_append(tmp_path: Path) -> None:
    """Under `os` an append is one write; closing syncs."""
    disk = LossyFiles(tmp_path)
    with Journal.open(tmp_path, "s-1", files=disk, policy=SyncPolicy.OS) as journal:
        before = len(disk.operations)
        journal.append(event(1))
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
        journal.append(event(1))
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
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)  # noqa: S603 - ours
    Journal.open(tmp_path, "s-1").close()


def test_a_reopened_journal_goes_on_at_its_end(tmp_path: Path) -> None:
    """Events appended after reopening stand behind the earlier ones."""
    for number in (1, 2, 3):
        with Journal.open(tmp_path, "s-1") as journal:
            journal.append(event(number))
    assert ids(tmp_path) == ["e001", "e002", "e003"]


def test_a_journal_cut_at_every_byte_of_its_last_line_reopens(tmp_path: Path) -> None:
    """All earlier events stay, the tail is kept in `events.torn`, the next event is not glued."""
    with Journal.open(tmp_path, "s-1") as journal:
        for number in (1, 2, 3):
            journal.append(event(number))
    whole = (tmp_path / "s-1" / "events.jsonl").read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(whole)):
        root = tmp_path / f"cut-{cut}"
        (root / "s-1").mkdir(parents=True)
        (root / "s-1" / "events.jsonl").write_bytes(whole[:cut])
        with Journal.open(root, "s-1") as journal:
            journal.append(event(4))
        assert ids(root) == ["e001", "e002", "e004"]
        torn = root / "s-1" / "events.torn"
        assert (torn.read_bytes() if torn.exists() else b"") == whole[last:cut]


def test_a_journal_of_one_torn_line_reopens_empty(tmp_path: Path) -> None:
    """The first event torn: nothing is left of it but `events.torn`."""
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / "events.jsonl").write_bytes(b'{"event_id":')
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(event(1))
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
        journal.append(event(1))
    with part.open("ab") as content:
        content.write(b"x" * 300_000)
    Journal.open(tmp_path, "s-1").close()
    assert ids(tmp_path) == ["e001"]
    assert part.with_name("events.torn").stat().st_size == 300_000


def test_a_full_disk_is_said_at_once_and_no_event_is_lost(tmp_path: Path) -> None:
    """Events wait in memory, in order, and are written when space returns, none twice."""
    disk = LossyFiles(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    journal.append(event(1))
    disk.space_bytes = 0
    for number in (2, 3):
        with pytest.raises(errors.JournalDiskFullError):
            journal.append(event(number))
    assert journal.waiting == 2
    disk.space_bytes = None
    journal.append(event(4))
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
            journal.append(event(number))
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
            journal.append(event(number))
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
        journal.append(event(1))
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
        journal.append(event(1))
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
    ran = subprocess.run(  # noqa: S603 - our own interpreter and program
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
        journal.append(event(1))
        journal.append(event(2))
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
        journal.append(event(1))
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
        journal.append(event(1))
    with pytest.raises(errors.JournalSealedError):
        Journal.open(tmp_path, "s-1")


def test_a_seal_waits_for_room(tmp_path: Path) -> None:
    """On a full disk the seal fails with a clear error and can be made later."""
    disk = LossyFiles(tmp_path)
    journal = Journal.open(tmp_path, "s-1", files=disk)
    journal.append(event(1))
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
        contests.append(event(number))
        contests.seal(NOW)
    assert ids(tmp_path) == ["e002", "e003"]
    assert (tmp_path / "s-1" / "events.2.seal.json").exists()


def test_a_part_of_contests_that_a_crash_left_open_goes_on(tmp_path: Path) -> None:
    """An unsealed `events.2.jsonl` is continued, not skipped."""
    Journal.open(tmp_path, "s-1").seal(NOW)
    with Journal.open_contests(tmp_path, "s-1") as contests:
        contests.append(event(2))
    with Journal.open_contests(tmp_path, "s-1") as contests:
        contests.append(event(3))
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
        journal.append(event(1, session_id="s-2"))


def test_an_event_over_the_line_limit_is_refused(tmp_path: Path) -> None:
    """What no server accepts is refused where it is made, and the journal stays clean."""
    with Journal.open(tmp_path, "s-1") as journal:
        with pytest.raises(errors.EventTooLongError):
            journal.append(event(1, value={"text": "x" * 70_000}))
        journal.append(event(2))
    assert ids(tmp_path) == ["e002"]


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("s-abc-123", "s-abc-123"),
        ("_A.b-9", "_A.b-9"),
        (".hidden", "%2Ehidden"),
        ("a b", "a%20b"),
        ("练习", "%E7%BB%83%E4%B9%A0"),
        ("%41", "%2541"),
        ("练" * 100, hashlib.sha256(("练" * 100).encode()).hexdigest()),
    ],
)
def test_the_folder_name_of_a_session(session_id: str, name: str) -> None:
    """Plain ids stand for themselves, others are percent-encoded, too long ones hashed."""
    assert layout.folder_name(session_id) == name


@pytest.mark.parametrize("session_id", ["", "a/b", "..", "a..b", "a?b", "a#b", "a\0b"])
def test_an_id_that_cannot_be_addressed_names_no_folder(session_id: str) -> None:
    """Such ids are refused before anything is made."""
    with pytest.raises(errors.SessionIdUnusableError):
        layout.folder_name(session_id)


@given(one=st.text(min_size=1, max_size=128), two=st.text(min_size=1, max_size=128))
def test_two_sessions_never_share_a_folder(one: str, two: str) -> None:
    """Different ids have different names, none of them leaves the root."""
    names = []
    for session_id in (one, two):
        try:
            names.append(layout.folder_name(session_id))
        except errors.SessionIdUnusableError:
            return
    assert (one == two) == (names[0] == names[1])
    assert all("/" not in name and name not in {".", ".."} for name in names)


def test_reading_starts_at_a_position_and_counts_lines(tmp_path: Path) -> None:
    """Reading behind a position yields the rest, with places one can go on from."""
    with Journal.open(tmp_path, "s-1") as journal:
        for number in (1, 2, 3):
            journal.append(event(number))
    folder = JournalFolder(tmp_path / "s-1")
    lines = list(folder.lines())
    assert [line.after.line for line in lines] == [1, 2, 3]
    assert list(folder.lines(lines[0].after)) == lines[1:]
    assert lines[-1].after.offset == folder.end().offset
    assert list(folder.lines(lines[-1].after)) == []


def test_a_reader_beside_the_writer_sees_whole_lines_only(tmp_path: Path) -> None:
    """A line that is being written is not there yet."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(event(1))
        with journal.path.open("ab") as content:
            content.write(b'{"event_id":"e00')
        assert [line.after.line for line in JournalFolder(journal.folder).lines()] == [1]


@pytest.mark.parametrize("length", [65_536, 65_537, 65_538, 200_000])
def test_a_line_longer_than_any_event_is_passed_over_in_place(tmp_path: Path, length: int) -> None:
    """Its neighbours are read; it is reported as too long, with its place."""
    (tmp_path / "s-1").mkdir()
    part = tmp_path / "s-1" / "events.jsonl"
    part.write_bytes(b"a\n" + b"x" * length + b"\nb\n")
    lines = list(JournalFolder(tmp_path / "s-1").lines())
    long = b"x" * length if length <= 65_536 else None
    assert [line.data for line in lines] == [b"a", long, b"b"]
    assert lines[-1].after == Position(1, part.stat().st_size, 3)


def test_an_endless_line_is_no_line(tmp_path: Path) -> None:
    """A torn tail over the limit ends the reading quietly."""
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / "events.jsonl").write_bytes(b"a\n" + b"x" * 200_000)
    assert [line.data for line in JournalFolder(tmp_path / "s-1").lines()] == [b"a"]


def test_a_packed_part_is_read_like_a_plain_one(tmp_path: Path) -> None:
    """Reading does not care whether a part was archived."""
    with Journal.open(tmp_path, "s-1") as journal:
        for number in (1, 2):
            journal.append(event(number))
    folder = JournalFolder(tmp_path / "s-1")
    plain = list(folder.lines())
    part = tmp_path / "s-1" / "events.jsonl"
    (tmp_path / "s-1" / "events.jsonl.gz").write_bytes(gzip.compress(part.read_bytes()))
    part.unlink()
    assert list(folder.lines()) == plain
    assert list(folder.lines(plain[0].after)) == plain[1:]


def test_a_broken_archive_is_a_typed_error(tmp_path: Path) -> None:
    """A damaged file is named, not half read in silence."""
    (tmp_path / "s-1").mkdir()
    packed = gzip.compress(b"line\n" * 1000)
    (tmp_path / "s-1" / "events.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(errors.JournalUnreadableError):
        list(JournalFolder(tmp_path / "s-1").lines())


def test_the_journals_of_a_root_are_found(tmp_path: Path) -> None:
    """Folders without a journal, and files, are passed over; no root is no journal."""
    for session_id in ("s-2", "s-1"):
        with Journal.open(tmp_path, session_id) as journal:
            journal.append(event(1, session_id=session_id))
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_bytes(b"")
    found = [folder.session_id() for folder in journal_folders(tmp_path)]
    assert found == ["s-1", "s-2"]
    assert list(journal_folders(tmp_path / "absent")) == []


def test_a_broken_line_does_not_hide_the_session(tmp_path: Path) -> None:
    """The id comes from the first line that can be read."""
    (tmp_path / "x").mkdir()
    good = b'{"event_id":"e1","session_id":"s-9","ts":0,"event_type":"t","signal":"s"}\n'
    (tmp_path / "x" / "events.jsonl").write_bytes(b"{broken\n" + good)
    assert JournalFolder(tmp_path / "x").session_id() == "s-9"
    assert ids(tmp_path, "x") == ["e1"]


def test_leftovers_of_a_dead_writer_are_removed(tmp_path: Path) -> None:
    """Temporary files of a killed seal do not pile up."""
    (tmp_path / "s-1").mkdir()
    (tmp_path / "s-1" / ".events.seal.json.1.tmp").write_bytes(b"half")
    Journal.open(tmp_path, "s-1").close()
    assert not (tmp_path / "s-1" / ".events.seal.json.1.tmp").exists()
