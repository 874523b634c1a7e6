"""ZIP archives that strangers made: looked at as a whole before a byte is unpacked.

    with Archive.open(path) as archive:
        manifest = archive.read("manifest.json", limit=32 << 20)
        for chunk in archive.stream("media/tide.png"):
            ...

Names are only keys here: no path is ever made of one. Sizes are counted while unpacking; what an
archive says about itself is not believed.
"""

import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

import msgspec

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


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an archive may be."""

    archive_bytes: int = 512 << 20
    entries: int = 5000
    entry_bytes: int = 200 << 20
    total_bytes: int = 512 << 20
    text_ratio: int = 200
    """How many times its packed size a text may be; media are packed already."""


_END: Final = struct.Struct("<4s4H2LH")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_END_MARK: Final = b"PK\x05\x06"
_LOCATOR_MARK: Final = b"PK\x06\x07"
_LOCAL_MARK: Final = b"PK\x03\x04"
_MAX_COMMENT: Final = 0xFFFF
_MAX_NAME: Final = 240
_ENTRY_DIRECTORY_BYTES: Final = 1024
_CHUNK: Final = 64 << 10
_RATIO_FROM: Final = 64 << 10
"""Below this a ratio says nothing: an empty page of blanks is no bomb."""
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_TEXTS: Final = (".json", ".html", ".htm", ".svg", ".txt", ".md", ".js", ".css", ".xml", ".csv")
_ARCHIVES: Final = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".zst", ".jar")
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\:*?\"<>|]")
_RESERVED: Final = re.compile(r"^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)


class Archive:
    """An archive whose entries are all sound; open as long as its context."""

    def __init__(self, file: zipfile.ZipFile, limits: Limits) -> None:
        """Use `Archive.open`."""
        self._file = file
        self._limits = limits
        self._left = limits.total_bytes
        self._entries = {info.filename: info for info in file.infolist() if not info.is_dir()}

    @classmethod
    def open(cls, path: Path, limits: Limits | None = None) -> Self:
        """Open the archive at `path` and judge all its entries.

        Raises:
            ArchiveNotZipError: it is none.
            ArchiveTooLargeError, ArchiveTooManyEntriesError: over a limit.
            ArchiveInvalidError: a name, a kind or a place of an entry is not accepted.
        """
        bounds = limits or Limits()
        try:
            size = path.stat().st_size
            if size > bounds.archive_bytes:
                raise ArchiveTooLargeError(entry="", limit=bounds.archive_bytes)
            _refuse_long_directory(path, size, bounds)
            file = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ArchiveNotZipError(reason=str(error)[:200]) from error
        try:
            _judge(file, path, bounds)
        except BaseException:
            file.close()
            raise
        return cls(file, bounds)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    @property
    def entries(self) -> Mapping[str, int]:
        """Every file's name, and the size that the archive claims for it."""
        return {name: info.file_size for name, info in self._entries.items()}

    def stream(self, name: str, *, limit: int | None = None) -> Iterator[bytes]:
        """Yield the content of an entry, 64 KiB at most at once; `KeyError` if there is none.

        Raises:
            ArchiveTooLargeError: it, or all that was read so far, is over a limit.
            ArchiveBombError: a text that grows too much.
            ArchiveDamagedError: its bytes are not what was packed.
        """
        info = self._entries[name]
        most = min(limit or self._limits.entry_bytes, self._limits.entry_bytes)
        read = 0
        try:
            with self._file.open(info) as source:
                while chunk := source.read(_CHUNK):
                    read += len(chunk)
                    self._left -= len(chunk)
                    if read > most or self._left < 0:
                        raise ArchiveTooLargeError(entry=shown(name), limit=most)
                    self._refuse_bomb(info, read)
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
            raise ArchiveDamagedError(entry=shown(name)) from error

    def read(self, name: str, *, limit: int) -> bytes:
        """Return the content of an entry of at most `limit` bytes. Raises as `stream`."""
        return b"".join(self.stream(name, limit=limit))

    def _refuse_bomb(self, info: zipfile.ZipInfo, read: int) -> None:
        text = info.filename.lower().endswith(_TEXTS)
        ratio = self._limits.text_ratio
        if text and read > _RATIO_FROM and read > info.compress_size * ratio:
            raise ArchiveBombError(entry=shown(info.filename), limit=ratio)


def _refuse_long_directory(path: Path, size: int, limits: Limits) -> None:
    """Look at the end record before anything loads the directory that it tells of."""
    tail_bytes = min(size, _END.size + _MAX_COMMENT)
    with path.open("rb") as file:
        file.seek(size - tail_bytes)
        tail = file.read(tail_bytes)
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END.size:
        raise ArchiveNotZipError(reason="no end record")
    if tail[:at].endswith(_LOCATOR_MARK + tail[max(at - 16, 0) : at]):
        raise ArchiveNotZipError(reason="ZIP64")  # a second, larger directory
    _, disk, start, here, entries, directory, _, _ = _END.unpack_from(tail, at)
    if max(here, entries) > limits.entries:
        raise ArchiveTooManyEntriesError(limit=limits.entries)
    if disk or start or here != entries or directory > limits.entries * _ENTRY_DIRECTORY_BYTES:
        raise ArchiveNotZipError(reason="the end record")


def _judge(file: zipfile.ZipFile, path: Path, limits: Limits) -> None:
    infos = file.infolist()
    if len(infos) > limits.entries:
        raise ArchiveTooManyEntriesError(limit=limits.entries)
    seen: set[str] = set()
    claimed = 0
    for info in infos:
        _judge_name(info)
        _judge_kind(info)
        folded = unicodedata.normalize("NFC", info.filename).casefold().rstrip("/")
        if folded in seen:
            raise ArchiveNameTwiceError(entry=shown(info.filename))
        seen.add(folded)
        claimed += info.file_size
        if info.file_size > limits.entry_bytes or claimed > limits.total_bytes:
            raise ArchiveTooLargeError(entry=shown(info.filename), limit=limits.entry_bytes)
    _judge_folders(infos, seen)
    _judge_places(file, path, infos)


def _judge_name(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    parts = name.removesuffix("/").split("/")
    if (
        name != info.filename  # cut at a NUL, or a backslash changed
        or not name
        or len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME
        or unicodedata.normalize("NFC", name) != name
        or _FORBIDDEN.search(name)
        or any(not part or part in {".", ".."} or part != part.strip() for part in parts)
        or any(part.endswith(".") or _RESERVED.match(part) for part in parts)
    ):
        raise ArchiveNameError(entry=shown(name))


def _judge_kind(info: zipfile.ZipInfo) -> None:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    usual = kind in {0, stat.S_IFDIR if info.is_dir() else stat.S_IFREG}
    if (
        not usual
        or info.flag_bits & _ENCRYPTED
        or info.compress_type not in _METHODS
        or info.filename.lower().endswith(_ARCHIVES)
        or (info.is_dir() and info.file_size)
    ):
        raise ArchiveEntryKindError(entry=shown(info.filename))


def _judge_folders(infos: list[zipfile.ZipInfo], names: set[str]) -> None:
    """No name is a file here and a folder there."""
    files = {
        unicodedata.normalize("NFC", info.filename).casefold()
        for info in infos
        if not info.is_dir()
    }
    for name in names:
        parts = name.split("/")
        if any("/".join(parts[:count]) in files for count in range(1, len(parts))):
            raise ArchiveNameTwiceError(entry=shown(name))


def _judge_places(file: zipfile.ZipFile, path: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Each entry's bytes are its own, and its two headers say the same name."""
    free = 0
    with path.open("rb") as raw:
        for info in sorted(infos, key=lambda one: one.header_offset):
            # A damaged directory may put an entry before the file's begin.
            raw.seek(max(info.header_offset, 0))
            header = raw.read(_LOCAL.size) if info.header_offset >= 0 else b""
            if len(header) < _LOCAL.size or not header.startswith(_LOCAL_MARK):
                raise ArchiveOverlapError(entry=shown(info.filename))
            *_, name_bytes, extra_bytes = _LOCAL.unpack(header)
            name = raw.read(name_bytes)
            encoding = "utf-8" if info.flag_bits & 0x800 else "cp437"
            begin = info.header_offset + _LOCAL.size + name_bytes + extra_bytes
            if (
                info.header_offset < free
                or name.decode(encoding, "replace") != info.orig_filename
                or begin + info.compress_size > file.start_dir
            ):
                raise ArchiveOverlapError(entry=shown(info.filename))
            free = begin + info.compress_size


def shown(name: str) -> str:
    """Return a name as it can be shown: short, without control characters."""
    return "".join(one if one.isprintable() else "�" for one in name[:100])
