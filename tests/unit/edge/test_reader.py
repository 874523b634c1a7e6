import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge import errors, layout
from etude.edge.journal import Journal
from etude.edge.reader import JournalFolder, Position, journal_folders
from etude.testing.journals import numbered


def ids(root: Path, session_id: str = "s-1") -> list[str]:
    folder = JournalFolder(root / layout.folder_name(session_id))
    return [each.event_id for each in folder.events()]


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("s-abc-123", "s-abc-123"),
        ("_A.b-9", "_A.b-9"),
        (".hidden", "%2Ehidden"),
        ("a:b", "a%3Ab"),
        ("a..b", "a..b"),
        ("练习", "%E7%BB%83%E4%B9%A0"),
        ("%41", "%2541"),
        ("练" * 100, hashlib.sha256(("练" * 100).encode()).hexdigest()),
    ],
)
def test_the_folder_name_of_a_session(session_id: str, name: str) -> None:
    """Plain ids stand for themselves, others are percent-encoded, too long ones hashed."""
    assert layout.folder_name(session_id) == name


@pytest.mark.parametrize(
    "session_id", ["", "a/b", "..", "a b", "a?b", "a#b", "a\0b", ".", "a\nb", "a\udc80"]
)
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
            journal.append(numbered(number))
    folder = JournalFolder(tmp_path / "s-1")
    lines = list(folder.lines())
    assert [line.after.line for line in lines] == [1, 2, 3]
    assert list(folder.lines(lines[0].after)) == lines[1:]
    assert lines[-1].after.offset == folder.end().offset
    assert list(folder.lines(lines[-1].after)) == []


def test_a_reader_beside_the_writer_sees_whole_lines_only(tmp_path: Path) -> None:
    """A line that is being written is not there yet."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1))
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
            journal.append(numbered(number))
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
            journal.append(numbered(1, session_id=session_id))
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
