"""The files of a classroom on disk, each read once for both its SHA-256 and its CRC-32."""

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from etude.classroom.references import is_file
from etude.courseware.zip_writing import BLOCK_BYTES

FOLDERS: Final = ("audio", "media")
_READERS: Final = 2


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was when it was hashed.

    Attributes:
        seen: size, time of change and place on the disk then; another one = it may have changed.
    """

    path: Path
    size: int
    sha256: str
    crc32: int
    seen: tuple[int, int, int]

    def open(self) -> BinaryIO:
        """Open it for reading."""
        return self.path.open("rb", buffering=0)

    def blocks(self) -> Iterator[bytes]:
        """Yield its bytes."""
        with self.open() as file:
            yield from _blocks(file)

    def beginning(self, length: int = 64) -> bytes:
        """Return its first bytes, to see of what kind it is."""
        with self.open() as file:
            return file.read(length)


def listed(folder: Path) -> tuple[str, ...]:
    """Return the references of all files of a classroom's folder: `media/x.png`, sorted."""
    found = []
    for name in FOLDERS:
        inside = folder / name
        for path in inside.iterdir() if inside.is_dir() else ():
            if not path.is_symlink():
                found.append(f"{name}/{path.name}")  # noqa: PERF401 - two loops in one expression read badly
    return tuple(sorted(filter(is_file, found)))


def hash_files(folder: Path) -> dict[str, SourceFile]:
    """Hash every file of a classroom's folder; raises `OSError` as the system does."""
    references = listed(folder)
    with ThreadPoolExecutor(_READERS) as readers:  # hashing lets other threads run
        hashed = readers.map(lambda one: _hashed(folder / one), references)
        return dict(zip(references, hashed, strict=True))


def hashes_of(files: Mapping[str, SourceFile]) -> dict[str, str]:
    """Return reference → SHA-256, as `etude.classroom.digest` wants it."""
    return {reference: file.sha256 for reference, file in files.items()}


def is_unchanged(folder: Path, files: Mapping[str, SourceFile]) -> bool:
    """Whether the folder holds exactly these files, untouched since they were hashed."""
    if listed(folder) != tuple(sorted(files)):
        return False
    return all(_seen(file.path.stat()) == file.seen for file in files.values())


def _hashed(path: Path) -> SourceFile:
    digest, crc32, size = hashlib.sha256(), 0, 0
    with path.open("rb", buffering=0) as file:
        seen = _seen(os.fstat(file.fileno()))
        for block in _blocks(file):
            digest.update(block)
            crc32 = zlib.crc32(block, crc32)
            size += len(block)
    return SourceFile(path=path, size=size, sha256=digest.hexdigest(), crc32=crc32, seen=seen)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block


def _seen(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino
