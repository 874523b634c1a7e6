"""A file of events at the command line: plain, gzipped (an archived journal), or `-` for stdin."""

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from etude.events.errors import EventFileUnknownError, EventFileUnreadableError, LineError
from etude.events.model import Event
from etude.events.ndjson import decode_line, split_lines

_CHUNK_BYTES: Final = 1 << 16
STDIN: Final = Path("-")

Lines = Iterator[tuple[int, bytes | LineError]]


def read_lines(file: Path) -> Lines:
    """Yield the numbered lines of `file`, streaming.

    Raises:
        EventFileUnknownError: there is no such file.
        EventFileUnreadableError: it cannot be read, or not unpacked.
    """
    try:
        with _opened(file) as stream:
            yield from split_lines(iter(lambda: stream.read(_CHUNK_BYTES), b""))
    except FileNotFoundError as error:
        raise EventFileUnknownError(file=str(file)) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EventFileUnreadableError(file=str(file), reason=reason) from error


def read_events(file: Path) -> Iterator[Event | LineError]:
    """Yield the events of `file`, and the error of each line that is none. Raises `read_lines`'."""
    for number, line in read_lines(file):
        try:
            yield line if isinstance(line, LineError) else decode_line(line, number)
        except LineError as error:
            yield error


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
    elif file.suffix == ".gz":
        with gzip.open(file) as unpacked:
            yield cast("BinaryIO", unpacked)
    else:
        with file.open("rb") as plain:
            yield plain
