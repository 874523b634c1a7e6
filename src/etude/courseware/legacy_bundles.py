"""Bundles of an older system (content hash version 1: the SHA-256 of the raw bytes).

They are `.maic.zip` archives. One is taken only if the registry has exactly its id and version and
its bytes are those that the registry knows; then it is read as any foreign archive is, and must be
complete. Its pages are made self-contained again, because nobody did.
"""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from etude.classroom.archive import Archive
from etude.classroom.importing import Imported, import_archive
from etude.classroom.model import Classroom
from etude.courseware.bundle_errors import (
    BundleClassroomError,
    BundleIdMismatchError,
    BundleIncompleteError,
)
from etude.courseware.errors import FreezeRefusedError, LegacyHashUntrustedError
from etude.courseware.freezing import completed
from etude.courseware.manifest import MANIFEST
from etude.courseware.source_files import SourceFile, hash_files
from etude.errors import EtudeError

LEGACY_HASH_VERSION: Final = 1
_MANIFEST_BYTES: Final = 32 << 20
_LOST: Final = frozenset({"media_missing", "media_refused"})
_MADE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""These archives do not say when; the same archive is to give the same classroom."""


class LegacyContents(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an older bundle: the classroom, complete, and its files on disk."""

    classroom: Classroom
    files: Mapping[str, SourceFile]


@contextlib.contextmanager
def legacy_contents(
    file: BinaryIO, courseware_id: str, content_hash: str
) -> Iterator[LegacyContents]:
    """Open an older bundle; its files are in a temporary folder as long as the block runs.

    Raises:
        LegacyHashUntrustedError: its bytes are not those of the registry.
        BundleIdMismatchError: it says that it is of another courseware.
        BundleClassroomError: it cannot be read.
        BundleIncompleteError: something is missing; parts say what.
    """
    _check_bytes(file, content_hash)
    with tempfile.TemporaryDirectory(prefix="etude-") as name:
        folder = Path(name)
        copy = folder / "bundle.zip"
        with copy.open("wb") as target:
            file.seek(0)
            shutil.copyfileobj(file, target)
        try:
            with Archive.open(copy) as archive:
                imported = _imported(archive, courseware_id)
                _unpack(archive, imported, folder)
        except (BundleIdMismatchError, BundleIncompleteError):
            raise
        except EtudeError as error:
            raise BundleClassroomError(*error.parts, reason=error.code) from error
        files = hash_files(folder)
        try:
            classroom = completed(imported.classroom, files)
        except FreezeRefusedError as error:
            raise BundleIncompleteError(*error.parts, findings=len(error.parts)) from error
        yield LegacyContents(classroom=classroom, files=files)


def _check_bytes(file: BinaryIO, content_hash: str) -> None:
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    if f"sha256:{digest.hexdigest()}" != content_hash:
        raise LegacyHashUntrustedError


def _imported(archive: Archive, courseware_id: str) -> Imported:
    imported = import_archive(archive, classroom_id=courseware_id, now=_MADE)
    said: Any = msgspec.json.decode(archive.read(MANIFEST, limit=_MANIFEST_BYTES))
    found = said.get("coursewareId", courseware_id)
    if found != courseware_id:
        raise BundleIdMismatchError(expected=courseware_id, found=str(found)[:64])
    state = said.get("completeness")
    complete = not isinstance(state, dict) or state.get("complete") is True
    lost = sum(loss.code in _LOST for loss in imported.losses)
    if lost or not complete:
        raise BundleIncompleteError(findings=lost)
    return imported


def _unpack(archive: Archive, imported: Imported, folder: Path) -> None:
    """Write the files under names of our own; a name of the archive never becomes a path."""
    for reference, entry in imported.files.items():
        target = folder / reference
        target.parent.mkdir(exist_ok=True)
        with target.open("xb") as file:
            file.writelines(archive.stream(entry))
