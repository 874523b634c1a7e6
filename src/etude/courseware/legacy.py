"""Manifests of an older system: one JSON file a course, without pins, or a history of such.

They are read and never served to learners (`409 MANIFEST_UNPINNED`); the next publication keeps
the old record verbatim and goes on with its highest version plus one.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from etude.courseware.errors import LegacyManifestError

MOST_BYTES: Final = 4 << 20
LEGACY_SCHEMA: Final = 1
_LARGEST: Final = 2**31 - 2


class LegacyManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the file of a course says; `body` are its bytes."""

    course_id: str
    version: int
    title: str
    body: bytes


def read_legacy(folder: Path, course_id: str) -> LegacyManifest | None:
    """Return the older manifest of a course; None if there is none.

    Raises:
        LegacyManifestError: there is one, and it cannot be read: nothing may be published over it.
    """
    path = folder / f"{course_id}.json"
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LegacyManifestError(course=course_id, reason=error.strerror or "OSError") from error
    return _read(course_id, body)


def _read(course_id: str, body: bytes) -> LegacyManifest:
    if len(body) > MOST_BYTES:
        raise LegacyManifestError(course=course_id, reason=f"more than {MOST_BYTES} bytes")
    try:
        record: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LegacyManifestError(course=course_id, reason=str(error)[:200]) from error
    records = _records(record)
    versions = [one.get("version", 1) for one in records]
    if not records or not all(_is_version(one) for one in versions):
        raise LegacyManifestError(course=course_id, reason="no version that is a number from 1")
    if any(one.get("courseId", course_id) != course_id for one in records):
        raise LegacyManifestError(course=course_id, reason="it is of another course")
    titles = [
        one[key]
        for one in records
        for key in ("title", "courseTitle")
        if isinstance(one.get(key), str) and one[key]
    ]
    title = titles[-1] if titles else course_id
    return LegacyManifest(course_id=course_id, version=max(versions), title=title[:300], body=body)


def _records(record: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """Return the manifests in a file: itself, or those of a history."""
    if not isinstance(record, dict):
        return []
    for key in ("manifests", "versions", "history"):
        if isinstance(inner := record.get(key), list):
            return [one for one in inner if isinstance(one, dict)]
    return [record]


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST
