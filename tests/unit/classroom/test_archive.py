"""Archives of strangers: judged as a whole before a byte is unpacked."""

import io
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.classroom.archive import Archive, Limits
from etude.classroom.errors import (
    ArchiveBombError,
    ArchiveDamagedError,
    ArchiveEntryKindError,
    ArchiveNameError,
    ArchiveNameTwiceError,
    ArchiveNotZipError,
    ArchiveOverlapError,
    ArchiveTooLargeError,
    ArchiveTooManyEntriesError,
)
from etude.errors import EtudeError
from etude.i18n import LOCALES, text

Entry = tuple[str, bytes]


def zipped(*entries: Entry, method: int = zipfile.ZIP_DEFLATED, mode: int = 0) -> bytes:
    """Return an archive of these entries."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.filename = name  # as it is: the constructor would mend it
            info.compress_type = method
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return made.getvalue()


def opened(folder: Path, data: bytes, limits: Limits | None = None) -> Archive:
    path = folder / "x.zip"
    path.write_bytes(data)
    return Archive.open(path, limits)


def refused(
    folder: Path, data: bytes, error: type[EtudeError], limits: Limits | None = None
) -> None:
    with pytest.raises(error) as caught:
        opened(folder, data, limits)
    for locale in LOCALES:
        assert text(f"error.{caught.value.code}", locale, **caught.value.params)


def test_a_sound_archive_is_read(tmp_path: Path) -> None:
    """Its entries are listed and streamed; folders are no entries."""
    data = zipped(("manifest.json", b"{}"), ("media/", b""), ("media/tide.png", b"x" * 200_000))
    with opened(tmp_path, data) as archive:
        assert archive.entries == {"manifest.json": 2, "media/tide.png": 200_000}
        assert archive.read("manifest.json", limit=10) == b"{}"
        assert [len(chunk) for chunk in archive.stream("media/tide.png")] == [65536] * 3 + [3392]
        with pytest.raises(KeyError):
            archive.read("other", limit=10)


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "media/../../evil",
        "/etc/passwd",
        "C:/evil",
        "media\\evil",
        "media/./x",
        "media//x",
        "media/x\0.png",
        "media/x\n.png",
        "media/x.",
        "media/ x",
        "media/x ",
        "con",
        "media/NUL.png",
        "x" * 241,
        "e\u0301.png",
        "",
        "..",
        "../",
    ],
)
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    """Parents, roots, drives, control characters, names that some system reads otherwise."""
    refused(tmp_path, zipped((name, b"x")), ArchiveNameError)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "names",
    [("a.png", "a.png"), ("a.png", "A.PNG"), ("ß.png", "ss.png"), ("a", "a/b"), ("A", "a/b")],
)
def test_names_that_some_systems_take_for_one_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """The same name twice, also by case, and a file that is a folder elsewhere."""
    refused(tmp_path, zipped(*((name, b"x") for name in names)), ArchiveNameTwiceError)


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_links_and_devices_are_refused(tmp_path: Path, mode: int) -> None:
    """A symbolic link, a device, a pipe, a folder with content."""
    refused(tmp_path, zipped(("media/x", b"/etc/passwd"), mode=mode), ArchiveEntryKindError)


def test_unusual_packing_is_refused(tmp_path: Path) -> None:
    """Methods other than stored and deflated, archives in archives, encryption."""
    refused(tmp_path, zipped(("x", b"x"), method=zipfile.ZIP_BZIP2), ArchiveEntryKindError)
    refused(tmp_path, zipped(("x.zip", b"x")), ArchiveEntryKindError)
    data = bytearray(zipped(("x", b"x")))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    refused(tmp_path, bytes(data), ArchiveEntryKindError)


def test_ten_thousand_entries_are_refused(tmp_path: Path) -> None:
    """By what the archive says of itself, and by what is there if it says less."""
    data = zipped(*((f"f{index}", b"") for index in range(10_000)))
    refused(tmp_path, data, ArchiveTooManyEntriesError)
    lying = bytearray(data)
    lying[-14:-10] = struct.pack("<2H", 1, 1)
    with pytest.raises(EtudeError):
        opened(tmp_path, bytes(lying))


def test_a_bomb_is_stopped_while_it_unpacks(tmp_path: Path) -> None:
    """Text that grows a thousandfold, an entry or a sum over its limit; declared or not."""
    data = zipped(("manifest.json", b" " * 20_000_000))
    with opened(tmp_path, data) as archive, pytest.raises(ArchiveBombError):
        archive.read("manifest.json", limit=32 << 20)
    media = zipped(("a.png", b"\0" * 3000), ("b.png", b"\0" * 3000))
    refused(tmp_path, media, ArchiveTooLargeError, Limits(entry_bytes=2000))
    refused(tmp_path, media, ArchiveTooLargeError, Limits(total_bytes=5000))
    refused(tmp_path, media, ArchiveTooLargeError, Limits(archive_bytes=100))
    with opened(tmp_path, media) as archive, pytest.raises(ArchiveTooLargeError):
        archive.read("a.png", limit=1000)


def test_reading_the_same_entry_again_and_again_is_bounded(tmp_path: Path) -> None:
    """All that was unpacked counts, not each entry by itself."""
    with opened(tmp_path, zipped(("a.png", b"\0" * 3000)), Limits(total_bytes=5000)) as archive:
        assert len(archive.read("a.png", limit=4000)) == 3000
        with pytest.raises(ArchiveTooLargeError):
            archive.read("a.png", limit=4000)


def test_an_entry_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    """The sizes of both headers say 10; what unpacks is not what was promised."""
    data = bytearray(zipped(("a.png", b"abc" * 1000)))
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = struct.pack("<L", 10)
    with opened(tmp_path, bytes(data)) as archive, pytest.raises(ArchiveDamagedError):
        archive.read("a.png", limit=1 << 20)


def test_entries_that_share_bytes_are_refused(tmp_path: Path) -> None:
    """Two entries of the directory that point at one, and a header that says another name."""
    data = bytearray(zipped(("aa", b"x" * 50), ("bb", b"y" * 50), method=zipfile.ZIP_STORED))
    second = data.rindex(b"PK\x01\x02")
    shared = bytearray(data)
    shared[second + 42 : second + 46] = struct.pack("<L", 0)
    refused(tmp_path, bytes(shared), ArchiveOverlapError)
    renamed = bytearray(data)
    renamed[30:32] = b"cc"
    refused(tmp_path, bytes(renamed), ArchiveOverlapError)


@pytest.mark.parametrize("data", [b"", b"PK", b"x" * 100, b"PK\x05\x06" + b"\0" * 10])
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    """Other bytes are said to be no archive."""
    refused(tmp_path, data, ArchiveNotZipError)


def test_a_second_directory_is_refused(tmp_path: Path) -> None:
    """ZIP64 would let a small end record stand before a large directory."""
    data = zipped(("a", b"x"))
    end = data.rindex(b"PK\x05\x06")
    locator = b"PK\x06\x07" + b"\0" * 16
    refused(tmp_path, data[:end] + locator + data[end:], ArchiveNotZipError)


@given(st.data())
def test_a_changed_byte_is_an_error_of_ours_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever byte is changed: each entry gives its content, or an error with a code."""
    sound = zipped(("manifest.json", b'{"a": 1}'), ("media/a.png", b"abc" * 50))
    changed = bytearray(sound)
    place = data.draw(st.integers(0, len(sound) - 1))
    changed[place] = data.draw(st.integers(0, 255))
    try:
        with opened(tmp_path_factory.mktemp("zip"), bytes(changed)) as archive:
            for name in archive.entries:
                assert archive.read(name, limit=1000) in {b'{"a": 1}', b"abc" * 50}
    except EtudeError as error:
        assert error.code.startswith("ARCHIVE_")  # noqa: PT017 - one of many codes
