"""Reading the archive of a bundle: what `zip_writing` did not write so is refused.

The directory is read first, then each entry's header is compared with the bytes that it must have.
Nothing is extracted here, and no path is ever made of an entry's name.
"""

import hashlib
import itertools
import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from etude.courseware.bundle_errors import (
    BundleDamagedError,
    BundleEntryKindError,
    BundleHeadersError,
    BundleNameError,
    BundleNameTwiceError,
    BundleNotZipError,
    BundleOrderError,
    BundleOverlapError,
    BundleTooLargeError,
    BundleTooManyEntriesError,
    BundleTrailingDataError,
)
from etude.courseware.zip_writing import (
    BLOCK_BYTES,
    CENTRAL,
    CENTRAL_MARK,
    END,
    END_MARK,
    LARGEST_BYTES,
    central_header,
    end_record,
    local_header,
)

MOST_ENTRIES: Final = 5_000
NAME: Final = r"(?:classroom|manifest)\.json|(?:audio|media)/[0-9a-f]{64}\.[a-z0-9]{2,5}"
_NAME: Final = re.compile(NAME)
_LONGEST_NAME: Final = 255
_SHOWN: Final = 80
_UNIX: Final = 3
_REGULAR: Final = frozenset({0, stat.S_IFREG})


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of an archive that was read: `start` is where its bytes begin."""

    name: str
    size: int
    crc32: int
    start: int


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    raw: bytes
    name: str
    made_by: int
    flags: int
    method: int
    crc32: int
    packed: int
    size: int
    attributes: int
    offset: int


def read_directory(file: BinaryIO) -> tuple[Stored, ...]:
    """Return the entries of an archive, after checking everything but their bytes.

    Raises:
        BundleNotZipError, BundleTooLargeError, BundleTooManyEntriesError, BundleUnsafeError:
            the first thing that is not as it must be.
    """
    size = file.seek(0, os.SEEK_END)
    if size > LARGEST_BYTES:
        raise BundleTooLargeError(entry="", limit_bytes=LARGEST_BYTES)
    lines, start = _lines(file, size)
    _check_names(lines)
    entries, at = [], 0
    for line in lines:
        _check_kind(line)
        if line.offset != at:
            raise BundleOverlapError(entry=line.name)
        entry = _entry(file, line)
        entries.append(entry)
        at = entry.start + entry.size
    if at != start:
        raise BundleTrailingDataError(entry=lines[-1].name)
    return tuple(entries)


def blocks(file: BinaryIO, entry: Stored) -> Iterator[bytes]:
    """Yield the bytes of an entry; `BundleDamagedError` if they are cut off."""
    at, end = entry.start, entry.start + entry.size
    while at < end:
        file.seek(at)
        block = file.read(min(BLOCK_BYTES, end - at))
        if not block:
            raise BundleDamagedError(entry=entry.name)
        at += len(block)
        yield block


def checked_digest(file: BinaryIO, entry: Stored) -> str:
    """Return the SHA-256 of an entry's bytes; `BundleDamagedError` if the CRC-32 is not theirs."""
    digest, crc32 = hashlib.sha256(), 0
    for block in blocks(file, entry):
        digest.update(block)
        crc32 = zlib.crc32(block, crc32)
    if crc32 != entry.crc32:
        raise BundleDamagedError(entry=entry.name)
    return digest.hexdigest()


def _lines(file: BinaryIO, size: int) -> tuple[list[_Line], int]:
    """Read the directory; return its lines and where it starts."""
    if size < END.size:
        raise BundleNotZipError
    file.seek(size - END.size)
    tail = file.read(END.size)
    mark, _, _, _, entries, length, start, _ = END.unpack(tail)
    if mark != END_MARK:
        file.seek(0)
        if file.read(4) in {b"PK\x03\x04", END_MARK}:
            raise BundleTrailingDataError(entry="")
        raise BundleNotZipError
    if entries > MOST_ENTRIES:
        raise BundleTooManyEntriesError(entries=entries, limit=MOST_ENTRIES)
    if start + length + END.size != size or tail != end_record(entries, length, start):
        raise BundleTrailingDataError(entry="")
    if length > entries * (CENTRAL.size + 4 * _LONGEST_NAME) or not entries:
        raise BundleNotZipError
    file.seek(start)
    return _parsed(file.read(length), entries), start


def _parsed(directory: bytes, entries: int) -> list[_Line]:
    lines, at = [], 0
    for _ in range(entries):
        if len(directory) - at < CENTRAL.size:
            raise BundleNotZipError
        fields = CENTRAL.unpack_from(directory, at)
        mark, made_by, _, flags, method, _, _, crc32, packed, size, *rest = fields
        name_length, extra_length, comment_length, _, _, attributes, offset = rest
        end = at + CENTRAL.size + name_length + extra_length + comment_length
        if mark != CENTRAL_MARK or end > len(directory):
            raise BundleNotZipError
        name = directory[at + CENTRAL.size :][:name_length].decode("utf-8", "backslashreplace")
        lines.append(
            _Line(
                raw=directory[at:end],
                name=name,
                made_by=made_by,
                flags=flags,
                method=method,
                crc32=crc32,
                packed=packed,
                size=size,
                attributes=attributes,
                offset=offset,
            )
        )
        at = end
    if at != len(directory):
        raise BundleTrailingDataError(entry="")
    return lines


def _check_names(lines: list[_Line]) -> None:
    seen: set[str] = set()
    for line in lines:
        plain = unicodedata.normalize("NFC", line.name).casefold()
        if plain in seen:
            raise BundleNameTwiceError(entry=line.name[:_SHOWN])
        seen.add(plain)
    for line in lines:
        if not line.name.endswith("/") and not _NAME.fullmatch(line.name):
            raise BundleNameError(entry=line.name[:_SHOWN])
    names = [line.name for line in lines]
    for before, after in itertools.pairwise(names):
        if before > after:
            raise BundleOrderError(entry=after[:_SHOWN])


def _check_kind(line: _Line) -> None:
    mode = line.attributes >> 16 if line.made_by >> 8 == _UNIX else 0
    plain = not line.name.endswith("/") and stat.S_IFMT(mode) in _REGULAR
    if not plain or line.method or line.flags & 1 or line.packed != line.size:
        raise BundleEntryKindError(entry=line.name[:_SHOWN])


def _entry(file: BinaryIO, line: _Line) -> Stored:
    if line.raw != central_header(line.name, line.size, line.crc32, line.offset):
        raise BundleHeadersError(entry=line.name)
    header = local_header(line.name, line.size, line.crc32)
    file.seek(line.offset)
    if file.read(len(header)) != header:
        raise BundleHeadersError(entry=line.name)
    start = line.offset + len(header)
    return Stored(name=line.name, size=line.size, crc32=line.crc32, start=start)
