"""Lesson folders on the server's disk: names, order, texts. Reads, and changes nothing.

`<root>/{app_id}/{task_id}/lessons/{lesson_id}/01.mp3`, with `01.txt` beside it. The root is the
operator's; a lesson may have been unpacked from somewhere, so none that is a symbolic link is
played, nor such a clip or text, and no name leads anywhere else.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from etude.speech.audio import SUFFIXES

LESSONS: Final = "lessons"
TEXT_SUFFIX: Final = ".txt"
LARGEST_TEXT_BYTES: Final = 8_192
MOST_CLIPS: Final = 500
"""Of one lesson. All are encoded, and held in memory, before the first one plays."""
_LONGEST_NAME_BYTES: Final = 255
_BOM: Final = "\ufeff"


class ClipFile(msgspec.Struct, frozen=True, kw_only=True):
    """A clip on the disk, and the file of its text, which may not be there."""

    path: Path
    text: Path

    @property
    def name(self) -> str:
        """The clip's file name."""
        return self.path.name


def lesson_folder(root: Path, app_id: str, task_id: str, lesson_id: str) -> Path | None:
    """Return where a lesson lies, None if one of the names would lead elsewhere."""
    if all(map(is_plain, (app_id, task_id, lesson_id))):
        return root / app_id / task_id / LESSONS / lesson_id
    return None


def lesson_ids(root: Path, app_id: str, task_id: str) -> list[str]:
    """Return the names of a task's lesson folders in byte order; none if the task has no folder."""
    if not (is_plain(app_id) and is_plain(task_id)):
        return []
    return [
        entry.name
        for entry in _entries(root / app_id / task_id / LESSONS)
        if entry.is_dir(follow_symlinks=False)
    ]


def clip_files(folder: Path) -> list[ClipFile]:
    """Return the clips of a lesson folder in byte order of name; none if it is no folder."""
    if folder.is_symlink():
        return []
    return [
        ClipFile(path=folder / entry.name, text=(folder / entry.name).with_suffix(TEXT_SUFFIX))
        for entry in _entries(folder)
        if Path(entry.name).suffix.lower() in SUFFIXES and entry.is_file(follow_symlinks=False)
    ]


def read_text(path: Path) -> str | None:
    """Return the text beside a clip without white space around it, None if there is none to use.

    None also if it is empty, larger than 8 KiB, no UTF-8, or a symbolic link: `etude lesson build`
    says which.
    """
    if path.is_symlink():
        return None
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_TEXT_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text.removeprefix(_BOM).strip() or None if len(data) <= LARGEST_TEXT_BYTES else None


def is_plain(name: str) -> bool:
    """Whether a name is that of one visible file or folder, wherever it comes from."""
    return (
        0 < len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME_BYTES
        and not name.startswith(".")
        and not {"/", "\\", "\0"} & set(name)
    )


def byte_order(name: str) -> bytes:
    """Return the key that puts names in byte order (`docs/rules.md 15`)."""
    return name.encode("utf-8", "surrogateescape")


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield the visible entries of a folder in byte order; none if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            entries = [entry for entry in found if is_plain(entry.name)]
    except OSError:
        return
    yield from sorted(entries, key=lambda entry: byte_order(entry.name))
