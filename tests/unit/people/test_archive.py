import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.files import Files
from etude.people.archive import save_archive, zip_files
from etude.people.errors import ExportTargetError
from etude.people.learner_data import ExportFile

NOW = datetime(2026, 11, 30, 12, 0, 2, tzinfo=UTC)


class ReadingFailedError(Exception):
    pass


async def chunks_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def files_of(*files: ExportFile) -> AsyncIterator[ExportFile]:
    for file in files:
        yield file


def file(path: str, *chunks: bytes, compressed: bool = False) -> ExportFile:
    return ExportFile(path=path, chunks=chunks_of(*chunks), compressed=compressed)


async def gathered(*files: ExportFile) -> list[bytes]:
    return [piece async for piece in zip_files(files_of(*files), NOW)]


def read(pieces: list[bytes]) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@given(
    files=st.dictionaries(
        st.text("abcdefgh_./%", min_size=1, max_size=20).filter(
            lambda path: not path.startswith("/") and ".." not in path and not path.endswith("/")
        ),
        st.lists(st.binary(max_size=3000), max_size=4),
        max_size=4,
    ),
    compressed=st.booleans(),
)
def test_what_goes_into_an_archive_comes_out(
    *, files: dict[str, list[bytes]], compressed: bool
) -> None:
    """Any files in any chunks are read back byte for byte by another ZIP reader."""
    made = [file(path, *chunks, compressed=compressed) for path, chunks in files.items()]
    expected = {path: b"".join(chunks) for path, chunks in files.items()}
    assert read(asyncio.run(gathered(*made))) == expected


def test_a_large_file_passes_through_in_small_pieces() -> None:
    """An archive is sent on while it is made: no piece holds more than two steps of 64 KiB."""
    incompressible = bytes(range(256)) * 4096  # 1 MiB in one chunk
    pieces = asyncio.run(gathered(file("sound", incompressible, compressed=True)))
    assert read(pieces) == {"sound": incompressible}
    assert max(map(len, pieces)) <= 2 * 64 * 1024
    assert len(pieces) >= 8


@pytest.mark.parametrize("path", ["/etc/x", "a/../b", ".."])
def test_a_path_that_leads_out_of_the_archive_is_refused(path: str) -> None:
    """No archive of ours can write outside of the folder that it is unpacked into."""
    with pytest.raises(ValueError, match=r"\.|/"):
        asyncio.run(gathered(file(path, b"x")))


def test_two_files_of_one_name_are_refused() -> None:
    """No file of an export can hide another."""
    with pytest.raises(ValueError, match="twice"):
        asyncio.run(gathered(file("twice", b"1"), file("twice", b"2")))


def test_an_export_that_fails_in_the_middle_cannot_be_taken_for_whole() -> None:
    """When reading fails, the bytes sent so far are no ZIP archive."""

    async def broken() -> AsyncIterator[bytes]:
        yield bytes(300_000)
        raise ReadingFailedError

    sent: list[bytes] = []

    async def main() -> None:
        files = files_of(file("a", b"x"), ExportFile(path="b", chunks=broken(), compressed=True))
        async for piece in zip_files(files, NOW):
            sent.append(piece)  # noqa: PERF401 - what came before the failure counts

    with pytest.raises(ReadingFailedError):
        asyncio.run(main())
    assert sent
    with pytest.raises(zipfile.BadZipFile):
        read(sent)


def test_an_archive_is_saved_for_its_owner_only(tmp_path: Path) -> None:
    """The file is whole, readable by its owner alone, and nothing else is left in the folder."""
    target = tmp_path / "export.zip"
    size = asyncio.run(save_archive(Files(), target, chunks_of(b"abc", b"def")))
    assert (size, target.read_bytes()) == (6, b"abcdef")
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_an_export_overwrites_nothing(tmp_path: Path) -> None:
    """A file that exists stays as it is, and the export says so."""
    target = tmp_path / "export.zip"
    target.write_bytes(b"mine")
    with pytest.raises(ExportTargetError) as refused:
        asyncio.run(save_archive(Files(), target, chunks_of(b"abc")))
    assert refused.value.params["path"] == str(target)
    assert target.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_export_leaves_nothing_behind(tmp_path: Path) -> None:
    """When reading fails, no part of the learner's data stays in the folder."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        asyncio.run(save_archive(Files(), tmp_path / "export.zip", broken()))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """An export into a missing folder is a typed error."""
    with pytest.raises(ExportTargetError):
        asyncio.run(save_archive(Files(), tmp_path / "no" / "x.zip", chunks_of(b"abc")))
