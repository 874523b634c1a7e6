"""The seal of a journal: written once, at the end, so that a changed line can be found."""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from etude.edge.errors import JournalUnreadableError, SealBrokenError

_BLOCK_BYTES: Final = 1 << 20


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What a sealed part holds.

    Args:
        lines: number of lines.
        bytes: its length.
        sha256: of its whole content, hexadecimal.
        sealed_at: wall-clock time of the device, aware.
    """

    lines: int
    bytes: int
    sha256: str
    sealed_at: datetime

    def check(self, content: BinaryIO, name: str) -> None:
        """Compare with what is there now.

        Raises:
            SealBrokenError: a line was changed, added or taken away.
        """
        if measure(content, self.sealed_at) != self:
            raise SealBrokenError(path=name)


def measure(content: BinaryIO, at: datetime) -> Seal:
    """Make the seal of `content`, read as a stream to its end."""
    digest = hashlib.sha256()
    lines = size = 0
    while block := content.read(_BLOCK_BYTES):
        digest.update(block)
        size += len(block)
        lines += block.count(b"\n")
    return Seal(lines=lines, bytes=size, sha256=digest.hexdigest(), sealed_at=at)


def read_seal(path: Path) -> Seal | None:
    """Return the seal in `path`, or None if there is none.

    Raises:
        JournalUnreadableError: there is one, and it is no seal.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Seal)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise JournalUnreadableError(path=str(path), reason=str(error)) from error
