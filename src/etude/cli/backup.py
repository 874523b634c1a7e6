"""`etude backup`: one file that holds a consistent copy of an installation on SQLite.

The file is a tar whose members lie as they do in the data folder, so that `tar -x` restores them;
its last member, `manifest.json`, names every other with size and sha256 (`docs/backup.md`).
"""

import asyncio
import contextlib
import hashlib
import io
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Final

import msgspec
import typer

from etude.cli import terminal
from etude.cli.backup_file import (
    FORMAT,
    MANIFEST,
    Manifest,
    Member,
    blob_name,
    referenced,
    verify_backup,
)
from etude.cli.errors import (
    BackupInvalidError,
    BackupOfServerError,
    BackupTargetError,
    FolderUnusableError,
)
from etude.cli.installation import KEY_MODE, keys_folder, require_folder, settings_for
from etude.clock import SystemClock
from etude.files import Files, crash_point
from etude.i18n import text
from etude.settings import SQLITE_FILE, Settings
from etude.store import check
from etude.store.connect import mapped
from etude.store.errors import DiskFull
from etude.store.sqlite import translate

ATTEMPTS: Final = 3
_DIGEST_LENGTH: Final = 64
_SQLITE: Final = "sqlite:///"


def backup(
    *,
    target: Annotated[Path, typer.Argument(help="The backup: a new .tar file.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the backup TARGET instead of making it.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Copy database, recordings, classrooms and keys into one file, at any time; or verify one."""
    if verify:
        manifest = verify_backup(target)
    else:
        settings = settings_for("backup", data)
        manifest = make_backup(settings, target, SystemClock().now(), Files())
    size = sum(member.size for member in manifest.files.values())
    if as_json:
        shown = {"target": str(target), "files": len(manifest.files), "bytes": size}
        terminal.print_json(shown | {"made_at": manifest.made_at})
        return
    key = "cli.backup.sound" if verify else "cli.backup.made"
    count = len(manifest.files)
    line = text(key, terminal.locale(), target=target, count=count, mib=f"{size / 2**20:.1f}")
    terminal.print_text(line)


def make_backup(settings: Settings, target: Path, now: datetime, files: Files) -> Manifest:
    """Write a backup to `target`; it appears whole or not at all.

    Raises:
        BackupTargetError: there is something at `target`.
        BackupOfServerError: the database is PostgreSQL, which has a tool of its own.
        NotInitialisedError, SchemaBehind, StoreUnavailable: the installation is not sound.
        FolderUnusableError: the target's folder takes nothing, or is full.
    """
    if not settings.database_url.startswith(_SQLITE):
        raise BackupOfServerError(data=str(settings.data))
    require_folder(settings)
    if target.exists():
        raise BackupTargetError(target=str(target))
    asyncio.run(check(settings.database_url))
    # Names without a process id: what a killed run leaves, the next one to this target removes.
    temporary, snapshot = (target.with_name(f".{target.name}.{end}") for end in ("tmp", "db"))
    try:
        manifest = _write(settings, temporary, snapshot, now)
        crash_point("cli.backup.written")
        files.link(temporary, target)
        files.sync_folder(target.absolute().parent)
    except FileExistsError as error:
        raise BackupTargetError(target=str(target)) from error
    except DiskFull as error:  # where the copy goes, not where the database is
        reason = str(error.params["reason"])
        raise FolderUnusableError(folder=str(target.parent), reason=reason) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FolderUnusableError(folder=str(target.parent), reason=reason) from error
    finally:
        files.remove(temporary)
        files.remove(snapshot)
    crash_point("cli.backup.durable")
    return manifest


def _write(settings: Settings, temporary: Path, snapshot: Path, now: datetime) -> Manifest:
    """Write the tar, again if a recording was erased between the database's copy and its own."""
    for _ in range(ATTEMPTS):
        snapshot.unlink(missing_ok=True)
        _copy_database(Path(settings.database_url.removeprefix(_SQLITE)), snapshot)
        crash_point("cli.backup.copied")
        temporary.unlink(missing_ok=True)
        with temporary.open("wb") as raw:
            temporary.chmod(KEY_MODE)
            manifest = _write_members(raw, settings, snapshot, now)
            raw.flush()
            os.fsync(raw.fileno())
        if not referenced(snapshot) - set(manifest.files):
            return manifest
    raise BackupInvalidError(target=str(temporary), reason="blobs")


def _write_members(raw: IO[bytes], settings: Settings, snapshot: Path, now: datetime) -> Manifest:
    members: dict[str, Member] = {}
    with tarfile.open(fileobj=raw, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, path in _sources(settings, snapshot):
            with contextlib.suppress(FileNotFoundError):  # erased just now; see `_write`
                members[name] = _add(archive, name, path, now)
        manifest = Manifest(format=FORMAT, made_at=now, files=members)
        encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        archive.addfile(_header(MANIFEST, len(encoded), now), io.BytesIO(encoded))
    return manifest


def _sources(settings: Settings, snapshot: Path) -> Iterator[tuple[str, Path]]:
    yield SQLITE_FILE, snapshot
    for path in sorted(keys_folder(settings.data).glob("[!.]*")):
        yield f"keys/{path.name}", path
    for path in sorted(settings.blobs.glob("??/??/*")):
        if len(path.name) == _DIGEST_LENGTH:
            yield blob_name(path.name), path
    yield from _classrooms(settings.classrooms)


def _classrooms(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each classroom, its document last: of one that is removed meanwhile nothing counts."""
    for document in sorted(folder.glob("[!.]*.json")):
        for path in sorted(folder.glob(f"{document.stem}/*/[!.]*")):
            yield f"classrooms/{path.relative_to(folder).as_posix()}", path
        yield f"classrooms/{document.name}", document


class _Hashing(io.RawIOBase):
    """Passes reads through and digests them on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self.digest.update(chunk)
        return chunk


def _add(archive: tarfile.TarFile, name: str, path: Path, now: datetime) -> Member:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        hashing = _Hashing(file)
        archive.addfile(_header(name, size, now), hashing)
        return Member(size=size, sha256=hashing.digest.hexdigest())


def _header(name: str, size: int, now: datetime) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode, header.mtime = size, KEY_MODE, int(now.timestamp())
    return header


def _copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database as of one instant, writers going on, into one file without a log."""
    read_only = f"{source.absolute().as_uri()}?mode=ro"
    target.touch(KEY_MODE)
    with (
        mapped(translate),
        contextlib.closing(sqlite3.connect(read_only, uri=True)) as one,
        contextlib.closing(sqlite3.connect(target)) as two,
    ):
        one.backup(two)
        two.execute("PRAGMA journal_mode = DELETE")
