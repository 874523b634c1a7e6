"""What goes into one request: whole lines, in order, within the server's limits."""

from collections.abc import Sequence
from typing import Final

import msgspec

from etude.edge.reader import JournalFolder, JournalLine, Position
from etude.edge.upload_state import Refusal
from etude.events.ndjson import LineError, scan_line

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
MAX_LINES: Final = 20_000


class Batch(msgspec.Struct, frozen=True):
    """Some lines of a journal, one behind the other.

    `lines` holds what is sent, `too_long` what no server takes, `end` the place behind both.
    """

    lines: Sequence[JournalLine]
    too_long: Sequence[Refusal]
    end: Position

    def body(self) -> bytes:
        """Return the lines as they are sent."""
        return b"".join(_data(line) + b"\n" for line in self.lines)

    def up_to(self, number: int) -> "Batch":
        """Return the part that ends with line `number` (from 1)."""
        if number >= len(self.lines):
            return self
        lines = self.lines[:number]
        return Batch(lines, (), lines[-1].after)

    def refusal(self, number: int, code: str, message: str) -> Refusal:
        """Return line `number` (from 1) as one that the server will not have."""
        line = self.lines[number - 1]
        return Refusal(
            code=code,
            message=message,
            part=line.after.part,
            line=line.after.line,
            event_id=event_id_of(line),
        )

    def last_event(self, refused: frozenset[int]) -> str | None:
        """Return the id of the last event that is not among the `refused` line numbers."""
        numbers = range(len(self.lines), 0, -1)
        number = next((each for each in numbers if each not in refused), None)
        return event_id_of(self.lines[number - 1]) if number else None


def next_batch(
    folder: JournalFolder,
    since: Position,
    *,
    max_bytes: int = MAX_BODY_BYTES,
    max_lines: int = MAX_LINES,
) -> Batch | None:
    """Return the next lines behind `since`; None if there are none.

    Raises:
        JournalUnreadableError: see `JournalFolder.lines`.
    """
    lines: list[JournalLine] = []
    too_long: list[Refusal] = []
    end, size = since, 0
    for line in folder.lines(since):
        length = len(line.data) + 1 if line.data is not None else 0
        if len(lines) == max_lines or size + length > max_bytes:
            break
        end = line.after
        if line.data is None:
            too_long.append(Refusal(code="too_long", part=end.part, line=end.line))
        elif line.data.strip():
            lines.append(line)
            size += length
    return Batch(lines, too_long, end) if end != since else None


def event_id_of(line: JournalLine) -> str | None:
    """Return the id of the event on a line, if it can be read."""
    try:
        return scan_line(_data(line), line.after.line, None).event_id
    except LineError:
        return None


def _data(line: JournalLine) -> bytes:
    return line.data or b""
