"""A learner's export as one ZIP archive, made while it is read, in bounded memory."""

import contextlib
import os
import zipfile
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

from etude.files import Files, crash_point
from etude.people.errors import ExportTargetError
from etude.people.learner_data import ExportFile

_PIECE_BYTES: Final = 64 * 1024


class _Outflow:
    """Where the archive is written to and from where it is sent on; it cannot be sought in."""

    def __init__(self) -> None:
        self._held = bytearray()

    def __len__(self) -> int:
        return len(self._held)

    def write(self, data: bytes, /) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        taken = bytes(self._held)
        self._held.clear()
        return taken


async def zip_files(files: AsyncIterator[ExportFile], now: datetime) -> AsyncIterator[bytes]:
    """Yield the bytes of a ZIP archive (with ZIP64 where needed) of `files`, dated `now`.

    Holds about 128 KiB and one chunk of the file that is being read. If reading fails, the archive
    ends without its directory, so that nobody can take it for whole. A path that is absolute, leads
    upwards or was there already is a `ValueError`.
    """
    out = _Outflow()
    seen: set[str] = set()
    with zipfile.ZipFile(out, "w") as archive:
        async for file in files:
            with archive.open(_entry(file, now, seen), "w", force_zip64=True) as member:
                async for chunk in file.chunks:
                    for start in range(0, len(chunk), _PIECE_BYTES):
                        member.write(chunk[start : start + _PIECE_BYTES])
                        if len(out) >= _PIECE_BYTES:
                            yield out.take()
    yield out.take()


async def save_archive(files: Files, path: Path, chunks: AsyncIterator[bytes]) -> int:
    """Write the archive to `path`, which must not exist, readable by its owner only.

    Returns the size in bytes. `ExportTargetError` if the file exists or cannot be written; nothing
    is left behind then, nor when reading fails.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        files.remove(temporary)
        size = await _fill(files, temporary, chunks)
        crash_point("people.export.written")
        files.link(temporary, path)
        files.sync_folder(path.parent)
    except OSError as error:
        raise ExportTargetError(path=str(path), reason=error.strerror or "") from error
    finally:
        with contextlib.suppress(OSError):
            files.remove(temporary)
    return size


async def _fill(files: Files, path: Path, chunks: AsyncIterator[bytes]) -> int:
    file = files.open_append(path)
    try:
        async for chunk in chunks:
            file.write_all(chunk)
        file.sync()
        return file.size()
    finally:
        file.close()


def _entry(file: ExportFile, now: datetime, seen: set[str]) -> zipfile.ZipInfo:
    parts = PurePosixPath(file.path)
    if parts.is_absolute() or ".." in parts.parts or file.path in seen:
        raise ValueError(file.path)
    seen.add(file.path)
    entry = zipfile.ZipInfo(file.path, now.timetuple()[:6])
    entry.external_attr = 0o600 << 16
    entry.compress_type = zipfile.ZIP_STORED if file.compressed else zipfile.ZIP_DEFLATED
    return entry
