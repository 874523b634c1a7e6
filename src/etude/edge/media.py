"""Recordings beside a journal: kept before they are named, sent after the events.

The rules: `docs/rules.md 5`.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from etude.edge import layout
from etude.edge.errors import MediaTooLargeError, MediaTypeUnknownError, disk_error
from etude.files import Files, crash_point, replace_file

MAX_BYTES: Final = 32 * 1024 * 1024

SUFFIXES: Final = {
    "audio/wav": ".wav",
    "audio/ogg": ".ogg",
    "audio/webm": ".webm",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/flac": ".flac",
    "video/mp4": ".mp4",
    "video/webm": ".webm_video",
    "image/jpeg": ".jpg",
    "image/png": ".png",
}
_TYPES: Final = {suffix: kind for kind, suffix in SUFFIXES.items()}


def keep_recording(folder: Path, data: bytes, content_type: str, files: Files | None = None) -> str:
    """Keep a recording durably and return its sha256, for `meta.media` of an event.

    The same bytes are kept once. Call it before the event is written, so that no event names a
    recording that a crash took.

    Args:
        folder: the session's (`SessionWriter.folder`).
        data: the recording as a whole.
        content_type: one of `SUFFIXES`.
        files: the disk.

    Raises:
        MediaTypeUnknownError, MediaTooLargeError: it could not be uploaded.
        JournalDiskFullError, JournalWriteError: it is not kept.
    """
    if content_type not in SUFFIXES:
        raise MediaTypeUnknownError(content_type=content_type, known=", ".join(SUFFIXES))
    if len(data) > MAX_BYTES:
        raise MediaTooLargeError(size_bytes=len(data), limit_bytes=MAX_BYTES)
    sha256 = hashlib.sha256(data).hexdigest()
    files = files or Files()
    path = folder / layout.MEDIA / f"{sha256}{SUFFIXES[content_type]}"
    try:
        files.make_folder(path.parent)
        if path.exists():
            files.sync_folder(path.parent)  # whoever made it may have been killed before that
        else:
            replace_file(files, path, data)
        files.sync_folder(folder)
    except OSError as error:
        raise disk_error(error, path, 0) from error
    crash_point("edge.media.kept")
    return sha256


def recordings(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield sha256, file and content type of each recording of a session, by name."""
    kept = folder / layout.MEDIA
    for path in sorted(kept.iterdir()) if kept.is_dir() else ():
        if path.suffix in _TYPES and not path.name.startswith("."):
            yield path.stem, path, _TYPES[path.suffix]
