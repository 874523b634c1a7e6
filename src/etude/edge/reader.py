"""Reading journals: line by line, in bounded memory, also while they are written."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

import msgspec

from etude.edge import layout
from etude.edge.errors import JournalUnreadableError
from etude.edge.seal import Seal, read_seal
from etude.events.model import Event
from etude.events.ndjson import MAX_LINE_BYTES, LineError, decode_line, scan_line

_BUFFER_BYTES: Final = 1 << 20


class Position(msgspec.Struct, frozen=True, order=True):
    """A place between two lines of a journal.

    Args:
        part: number of the file, from 1.
        offset: bytes before this place in that file, uncompressed.
        line: lines before this place in that file.
    """

    part: int = 1
    offset: int = 0
    line: int = 0


class JournalLine(msgspec.Struct, frozen=True):
    """One line of a journal, and the place behind it.

    `data` is the line without its end; None if it is longer than any event may be.
    """

    data: bytes | None
    after: Position


class JournalFolder:
    """The journal of one session, for reading; needs no lock."""

    def __init__(self, path: Path) -> None:
        """Take the folder of one session."""
        self.path = path

    def parts(self) -> Iterator[tuple[int, Path]]:
        """Yield number and file of each part in order; an archived part is its `.gz`."""
        number = 1
        while file := self._part(number):
            yield number, file
            number += 1

    def seal(self, number: int) -> Seal | None:
        """Return the seal of a part, or None while it is open."""
        return read_seal(self.path / layout.seal_name(number))

    def sealed(self) -> bool:
        """Whether the session is over and every part is sealed."""
        return all(self.seal(number) for number, _ in self.parts())

    def end(self) -> Position:
        """Return the place behind everything that is written now (`line` is 0 if not sealed).

        Raises:
            JournalUnreadableError: a seal cannot be read, or a file was packed just now.
        """
        end = Position()
        for number, file in self.parts():
            seal = self.seal(number)
            size = seal.bytes if seal else _size_of(file)
            if size:
                end = Position(number, size, seal.lines if seal else 0)
        return end

    def lines(self, since: Position | None = None) -> Iterator[JournalLine]:
        """Yield every whole line behind `since`; a tail without its end is not a line yet.

        Raises:
            JournalUnreadableError: a file cannot be read or unpacked.
        """
        since = since or Position()
        for number, file in self.parts():
            if number >= since.part:
                start = since if number == since.part else Position(number)
                yield from _lines_of(file, start)

    def events(self) -> Iterator[Event]:
        """Yield every event that can be read; lines that hold none are passed over.

        A broken line is no reason to lose the session: the cloud names it when it is uploaded.
        """
        for line in self.lines():
            if line.data:
                try:
                    yield decode_line(line.data, line.after.line)
                except LineError:
                    continue

    def session_id(self) -> str | None:
        """Return the id of the session, from the first line that names one; None without any."""
        for line in self.lines():
            if line.data:
                try:
                    return scan_line(line.data, line.after.line, None).session_id
                except LineError:
                    continue
        return None

    def device_id(self) -> str | None:
        """Return `meta.device_id` of the first event that can be read; None without one."""
        first = next(self.events(), None)
        named = (first.meta or {}).get("device_id") if first else None
        return named if isinstance(named, str) else None

    def _part(self, number: int) -> Path | None:
        plain = self.path / layout.part_name(number)
        packed = plain.with_name(plain.name + layout.COMPRESSED)
        return next((file for file in (plain, packed) if file.exists()), None)


def journal_folders(root: Path) -> Iterator[JournalFolder]:
    """Yield the journal of each session below `root`, by name; other folders are passed over."""
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        folder = JournalFolder(path)
        if not path.name.startswith(".") and next(folder.parts(), None):
            yield folder


def open_part(file: Path) -> BinaryIO:
    """Open a part of a journal for reading, packed or not."""
    if file.suffix == layout.COMPRESSED:
        return cast("BinaryIO", gzip.open(file, "rb"))
    return file.open("rb", buffering=_BUFFER_BYTES)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise JournalUnreadableError(path=str(file), reason=str(error)) from error


def _lines_of(file: Path, start: Position) -> Iterator[JournalLine]:
    try:
        with open_part(file) as content:
            content.seek(start.offset)
            yield from _split(content, start)
    except (OSError, EOFError, zlib.error) as error:
        raise JournalUnreadableError(path=str(file), reason=str(error)) from error


def _split(content: BinaryIO, at: Position) -> Iterator[JournalLine]:
    part, offset, number = at.part, at.offset, at.line
    while piece := content.readline(MAX_LINE_BYTES + 1):
        length = len(piece)
        whole: bytes | None = piece[:-1]
        if not piece.endswith(b"\n"):
            rest = _skip_line(content)
            if rest is None:
                return
            length, whole = length + rest, None
        offset += length
        number += 1
        yield JournalLine(whole, Position(part, offset, number))


def _skip_line(content: BinaryIO) -> int | None:
    """Read to the end of the line; return its length, or None where the file ends first."""
    skipped = 0
    while piece := content.readline(_BUFFER_BYTES):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            return skipped
    return None
