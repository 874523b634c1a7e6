"""Which commands this gateway has begun and answered, on disk: so that each is done once.

Web sends a command until it has an answer. An answered one is answered the same again. One that was
begun before the process died and never answered is told apart by the caller: it may have been done.
One writer, off the event loop; everything else reads memory.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import structlog

from etude.files import AppendFile, Files, crash_point, replace_file
from etude.gateway.link_messages import Answer

KEPT_S: Final = 25 * 3600
"""An hour longer than any command is sent for."""
MOST: Final = 20_000

log = structlog.get_logger("etude.gateway")


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: a command was begun, answered, or given up and is to be tried again."""

    msg_id: str
    at_s: float
    step: Literal["begun", "answered", "open"]
    answer: Answer | None = None


_decoder: Final = msgspec.json.Decoder(Entry)


class CommandLedger:
    """The ledger in `path`. Lives as long as the process.

    Args:
        path: the file, made when missing; `open` reads and shortens it.
        files: the disk.
    """

    def __init__(self, path: Path, files: Files | None = None) -> None:
        """Describe it; nothing is read yet."""
        self._path = path
        self._files = files or Files()
        self._entries: dict[str, Entry] = {}
        self._file: AppendFile | None = None
        self._turn = asyncio.Lock()

    def open(self, now_s: float) -> None:
        """Read what earlier processes noted, forget what is old, keep the file open.

        Args:
            now_s: seconds since 1970.

        Raises:
            OSError: the file can be neither read nor written.
        """
        self._files.make_folder(self._path.parent)
        self._entries = _read(self._path, now_s)
        kept = b"".join(_line(entry) for entry in self._entries.values())
        replace_file(self._files, self._path, kept)
        self._file = self._files.open_append(self._path)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, msg_id: str) -> Entry | None:
        """Return the last thing noted of a command."""
        return self._entries.get(msg_id)

    async def begin(self, msg_id: str, now_s: float) -> None:
        """Note durably that a command is about to be done; raises `OSError`."""
        await self._note(Entry(msg_id=msg_id, at_s=now_s, step="begun"))
        crash_point("gateway.command.begun")

    async def answer(self, msg_id: str, answer: Answer, now_s: float) -> None:
        """Note durably what a command came to, or (offline, timeout) that it came to nothing yet.

        Raises `OSError`; what is noted counts in this process all the same.
        """
        settled = answer.outcome in {"done", "refused"}
        step: Literal["answered", "open"] = "answered" if settled else "open"
        await self._note(
            Entry(msg_id=msg_id, at_s=now_s, step=step, answer=answer if settled else None)
        )
        crash_point("gateway.command.answered")

    async def _note(self, entry: Entry) -> None:
        self._entries.pop(entry.msg_id, None)
        self._entries[entry.msg_id] = entry
        while len(self._entries) > MOST:
            del self._entries[next(iter(self._entries))]
        async with self._turn:
            await asyncio.to_thread(self._append, entry)

    def _append(self, entry: Entry) -> None:
        if self._file is None:
            return
        size = self._file.size()
        try:
            self._file.write_all(_line(entry))
            self._file.sync()
        except OSError:
            with contextlib.suppress(OSError):  # a torn line is passed over when it is read
                self._file.truncate(size)
            raise


def _line(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def _read(path: Path, now_s: float) -> dict[str, Entry]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, Entry] = {}
    torn = 0
    for line in lines:
        try:
            entry = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            torn += 1
            continue
        found.pop(entry.msg_id, None)
        found[entry.msg_id] = entry
    if torn:
        log.warning("lines passed over", action="gateway.ledger_torn", lines=torn)
    return _newest({key: entry for key, entry in found.items() if entry.at_s > now_s - KEPT_S})


def _newest(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    return dict(list(entries.items())[-MOST:])
