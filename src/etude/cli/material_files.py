"""The material that commands are given: files, and folders of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from etude.authoring.errors import MaterialUnknownError, MaterialUnreadableError
from etude.authoring.material import Material
from etude.classroom.errors import ClassroomNotJsonError
from etude.classroom.loading import MAX_BYTES
from etude.cli.errors import ClassroomFileNotJsonError

TEXTS: Final = frozenset({".md", ".markdown", ".txt"})
SOUNDS: Final = frozenset({".mp3", ".wav", ".ogg", ".flac"})
_KINDS: Final = ".md .markdown .txt .mp3 .wav .ogg .flac"


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return files, and for folders the texts and sounds in them; what else is there is left alone.

    Raises:
        MaterialUnknownError: there is no such file or folder.
        MaterialUnreadableError: a file, or all that a folder has, is of no kind that is read.
    """
    known = TEXTS | SOUNDS
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.suffix.lower() in known)
            if not inside:
                raise MaterialUnreadableError(file=str(path), reason=_KINDS)
            found += inside
        elif path.is_file():
            if path.suffix.lower() not in known:
                raise MaterialUnreadableError(file=path.name, reason=_KINDS)
            found.append(path)
        else:
            raise MaterialUnknownError(file=str(path))
    return found


def text_of(path: Path) -> Material:
    """Return a file as material.

    Raises:
        MaterialUnknownError: it is not there.
        MaterialUnreadableError: it is no text in UTF-8.
    """
    try:
        return Material(name=path.name, text=path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise MaterialUnknownError(file=str(path)) from error
    except UnicodeDecodeError as error:
        raise MaterialUnreadableError(file=path.name, reason="UTF-8") from error
    except OSError as error:
        raise MaterialUnreadableError(
            file=path.name, reason=error.strerror or type(error).__name__
        ) from error


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a document, one more than it may have at most; `MaterialUnknownError`."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise MaterialUnknownError(file=str(path)) from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file, where what is read of it in the block is no JSON: what reads knows none.

    Raises:
        ClassroomFileNotJsonError: in the place of `ClassroomNotJsonError`.
    """
    try:
        yield
    except ClassroomNotJsonError as error:
        raise ClassroomFileNotJsonError(file=str(path), reason=error.params["reason"]) from error
