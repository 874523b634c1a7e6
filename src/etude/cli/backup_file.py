"""The file that `etude backup` writes: members, manifest, and whether it holds what it says."""

import contextlib
import hashlib
import os
import sqlite3
import tarfile
import tempfile
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from etude.cli.errors import BackupInvalidError
from etude.settings import SQLITE_FILE

FORMAT: Final = "etude-backup-1"
MANIFEST: Final = "manifest.json"
CHUNK_BYTES: Final = 1 << 20


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a backup."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds. `files` by name, as in the data folder."""

    format: str
    made_at: datetime
    files: dict[str, Member]


def verify_backup(target: Path) -> Manifest:
    """Read a whole backup and compare it with its manifest; return the manifest.

    Raises:
        BackupInvalidError: something is missing, surplus, changed or unreadable.
    """
    try:
        with tarfile.open(target, "r:") as archive, tempfile.TemporaryDirectory() as scratch:
            found = _read_members(archive, Path(scratch))
            manifest = _manifest_of(archive, target)
            if found != manifest.files:
                differing = min(name for name, _ in found.items() ^ manifest.files.items())
                raise BackupInvalidError(target=str(target), reason=differing)
            _check_snapshot(Path(scratch) / SQLITE_FILE, set(found), target)
            return manifest
    except (OSError, tarfile.TarError, sqlite3.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise BackupInvalidError(target=str(target), reason=reason) from error


def blob_name(sha256: str) -> str:
    """Return the name of a blob in the data folder and so in a backup."""
    return f"blobs/{sha256[:2]}/{sha256[2:4]}/{sha256}"


def referenced(snapshot: Path) -> set[str]:
    """Return the names of the blobs that a copied database refers to."""
    with contextlib.closing(sqlite3.connect(snapshot)) as database:
        rows = database.execute("SELECT DISTINCT sha256 FROM blob_reference")
        return {blob_name(sha256) for (sha256,) in rows}


def _read_members(archive: tarfile.TarFile, scratch: Path) -> dict[str, Member]:
    found = {}
    for entry in archive:
        file = archive.extractfile(entry)
        parts = PurePosixPath(entry.name).parts
        if file is None or not entry.isreg() or entry.name.startswith("/") or ".." in parts:
            message = f"unexpected member {entry.name}"
            raise tarfile.ReadError(message)
        if entry.name == MANIFEST:
            continue
        digest = hashlib.sha256()
        kept = scratch / SQLITE_FILE if entry.name == SQLITE_FILE else Path(os.devnull)
        with kept.open("wb") as copy:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                copy.write(chunk)
        found[entry.name] = Member(size=entry.size, sha256=digest.hexdigest())
    return found


def _manifest_of(archive: tarfile.TarFile, target: Path) -> Manifest:
    try:
        file = archive.extractfile(MANIFEST)
        assert file is not None  # noqa: S101 - `_read_members` refused everything but files
        manifest = msgspec.json.decode(file.read(), type=Manifest)
    except (KeyError, msgspec.DecodeError) as error:
        raise BackupInvalidError(target=str(target), reason=MANIFEST) from error
    if manifest.format != FORMAT:
        raise BackupInvalidError(target=str(target), reason=manifest.format)
    return manifest


def _check_snapshot(snapshot: Path, names: set[str], target: Path) -> None:
    with contextlib.closing(sqlite3.connect(snapshot)) as database:
        verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        raise BackupInvalidError(target=str(target), reason=verdict)
    missing = referenced(snapshot) - names
    if missing:
        raise BackupInvalidError(target=str(target), reason=min(missing))
