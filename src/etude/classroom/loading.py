"""Reading and writing a classroom: checked on both ways, every mistake named by its path."""

from itertools import islice
from typing import Any, Final

import msgspec

from etude.classroom.errors import (
    ClassroomEmptyError,
    ClassroomInvalidError,
    ClassroomKeyMissingError,
    ClassroomKeyUnknownError,
    ClassroomMistakeError,
    ClassroomNotAError,
    ClassroomNotJsonError,
    ClassroomNotOneOfError,
    ClassroomOutOfBoundsError,
    ClassroomTooLongError,
)
from etude.classroom.free_json import is_deeper
from etude.classroom.model import Classroom
from etude.classroom.plain import plain
from etude.classroom.rules import mistakes_of
from etude.classroom.versions import migrate
from etude.documents import Document, Mistake, check

MAX_BYTES: Final = 32 << 20
MAX_NESTING: Final = 100
MAX_TOLD: Final = 200
"""So many mistakes are parts of the error; the others are counted, up to a hundred times that."""
_COUNTED: Final = MAX_TOLD * 100

_KINDS: Final[dict[str, type[ClassroomMistakeError]]] = {
    "unknown_key": ClassroomKeyUnknownError,
    "missing": ClassroomKeyMissingError,
    "not_a": ClassroomNotAError,
    "not_one_of": ClassroomNotOneOfError,
    "empty": ClassroomEmptyError,
    "out_of_bounds": ClassroomOutOfBoundsError,
}


def read_classroom(data: bytes) -> Classroom:
    """Return the classroom that `data` (JSON) says, brought up to the newest version.

    Raises:
        ClassroomTooLongError: more than 32 MiB.
        ClassroomNotJsonError: no JSON object.
        ClassroomTooNewError, ClassroomVersionUnknownError: not a version of ours.
        ClassroomInvalidError: its parts are the mistakes.
    """
    return classroom_from(migrate(read_object(data)))


def write_classroom(classroom: Classroom) -> bytes:
    """Return the JSON of a classroom, always of the newest version.

    Raises:
        ClassroomTooLongError: more than 32 MiB.
        ClassroomInvalidError: its parts are the mistakes; nothing unsound is written.
    """
    try:
        data = msgspec.json.encode(plain(classroom))
    except (UnicodeEncodeError, RecursionError, OverflowError) as error:
        raise ClassroomNotJsonError(reason=type(error).__name__) from error
    classroom_from(read_object(data))
    return data


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`, of bounded length and depth."""
    if len(data) > MAX_BYTES:
        raise ClassroomTooLongError(limit=MAX_BYTES)
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClassroomNotJsonError(reason=str(error)[:200]) from error
    except RecursionError as error:
        raise ClassroomNotJsonError(reason="nested too deeply") from error
    if not isinstance(value, dict):
        raise ClassroomNotJsonError(reason=type(value).__name__)
    if is_deeper(value, MAX_NESTING):  # whoever walks through it later may do so by recursion
        raise ClassroomNotJsonError(reason="nested too deeply")
    return value


def classroom_from(document: dict[str, Any]) -> Classroom:
    """Return the classroom that a plain document of the newest version says.

    Raises:
        ClassroomInvalidError: its parts are the mistakes.
    """
    found = all_mistakes(document)
    if found:
        raise ClassroomInvalidError(*found[:MAX_TOLD], mistakes=len(found))
    return msgspec.convert(document, Classroom)


def all_mistakes(document: dict[str, Any]) -> list[ClassroomMistakeError]:
    """Return the mistakes of a plain document: of its shape, else of its rules."""
    try:
        classroom = msgspec.convert(document, Classroom)
    except msgspec.ValidationError as error:
        return shape_mistakes(document, Classroom) or [_unplaced(error)]
    return list(islice(mistakes_of(classroom), _COUNTED))


def shape_mistakes(value: object, shape: type[Any]) -> list[ClassroomMistakeError]:
    """Return every mistake that keeps `value` from being of `shape`, a part of a classroom."""
    return [_error_of(mistake) for mistake in check(Document(value, {}), shape, most=_COUNTED)]


def _error_of(mistake: Mistake) -> ClassroomMistakeError:
    return _KINDS[mistake.kind](path=mistake.path or "/", **mistake.params)


def _unplaced(error: msgspec.ValidationError) -> ClassroomMistakeError:
    """Say what msgspec found and the comparison did not."""
    return ClassroomOutOfBoundsError(path="/", reason=str(error)[:300])
