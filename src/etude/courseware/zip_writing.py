"""The one ZIP that there is for given files: same names and bytes, same archive, on any machine.

Nothing is compressed: what a compressor makes depends on its build. Names are ASCII and sorted,
times fixed, no extra fields, no comments, no data descriptors, so every byte follows from names,
sizes, checksums and contents (APPNOTE 6.3.10, the subset that every reader knows).
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Final

import msgspec

from etude.courseware.errors import SourceChangedError

BLOCK_BYTES: Final = 1 << 20
LARGEST_BYTES: Final = 2 << 30
"""Far below 4 GiB, where ZIP needs other records."""
LOCAL: Final = struct.Struct("<4s5H3L2H")
CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
END: Final = struct.Struct("<4s4H2LH")
LOCAL_MARK: Final = b"PK\x03\x04"
CENTRAL_MARK: Final = b"PK\x01\x02"
END_MARK: Final = b"PK\x05\x06"
_NEEDED: Final = 20
_MADE_BY: Final = (3 << 8) | _NEEDED  # Unix, so that the mode below counts
_DATE: Final = (1 << 5) | 1  # 1980-01-01, the first day that there is
_MODE: Final = 0o100644 << 16

Opens = Callable[[], AbstractContextManager[BinaryIO]]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the archive: what it is called, how long it is, its CRC-32, how it is opened."""

    name: str
    size: int
    crc32: int
    opens: Opens


def local_header(name: str, size: int, crc32: int) -> bytes:
    """Return what stands in front of an entry's bytes."""
    encoded = name.encode("ascii")
    fixed = (_NEEDED, 0, 0, 0, _DATE, crc32, size, size, len(encoded), 0)
    return LOCAL.pack(LOCAL_MARK, *fixed) + encoded


def central_header(name: str, size: int, crc32: int, offset: int) -> bytes:
    """Return an entry's line in the directory."""
    encoded = name.encode("ascii")
    fixed = (_MADE_BY, _NEEDED, 0, 0, 0, _DATE, crc32, size, size, len(encoded))
    return CENTRAL.pack(CENTRAL_MARK, *fixed, 0, 0, 0, 0, _MODE, offset) + encoded


def end_record(entries: int, size: int, offset: int) -> bytes:
    """Return the end of the archive: how many entries, where their directory is."""
    return END.pack(END_MARK, 0, 0, entries, entries, size, offset, 0)


def archive(entries: Sequence[Entry]) -> Iterator[bytes]:
    """Yield the archive of `entries`, sorted by name, in blocks.

    Raises:
        SourceChangedError: a file is no longer what its entry says, or gone.
    """
    offset, directory = 0, []
    for entry in sorted(entries, key=lambda one: one.name):
        directory.append(central_header(entry.name, entry.size, entry.crc32, offset))
        header = local_header(entry.name, entry.size, entry.crc32)
        yield header
        yield from _checked(entry)
        offset += len(header) + entry.size
    central = b"".join(directory)
    yield central
    yield end_record(len(directory), len(central), offset)


def size_of(entries: Sequence[Entry]) -> int:
    """Return how many bytes the archive of `entries` has."""
    headers = sum(LOCAL.size + CENTRAL.size + 2 * len(entry.name) for entry in entries)
    return headers + sum(entry.size for entry in entries) + END.size


def _checked(entry: Entry) -> Iterator[bytes]:
    size = crc32 = 0
    try:
        with entry.opens() as file:
            while block := file.read(BLOCK_BYTES):
                size += len(block)
                if size > entry.size:
                    break
                crc32 = zlib.crc32(block, crc32)
                yield block
    except OSError as error:  # it was removed since it was hashed, or the disk fails
        raise SourceChangedError(file=entry.name) from error
    if (size, crc32) != (entry.size, entry.crc32):
        raise SourceChangedError(file=entry.name)
