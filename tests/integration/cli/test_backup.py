"""`etude backup`: whole or not at all, restorable with tar, and honest when it is damaged."""

import os
import sys
import tarfile
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from etude.cli.backup import make_backup
from etude.cli.backup_file import Manifest, verify_backup
from etude.cli.errors import (
    BackupInvalidError,
    BackupOfServerError,
    BackupTargetError,
    FolderUnusableError,
)
from etude.cli.installation import make_folder, make_keys
from etude.clock import SystemClock
from etude.files import Files, armed
from etude.settings import Settings, load
from etude.store import Blobs, Database
from etude.testing.waiting import run_bounded

Run = Callable[[Coroutine[Any, Any, Any]], Any]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RECORDING = bytes(range(256)) * 5000


class KilledError(BaseException):
    """The process ends here."""


async def keep(settings: Settings, owner: str, data: bytes) -> str:
    blobs = Blobs(settings.blobs, SystemClock())
    async with await Database.open(settings.database_url) as database:
        stored = await blobs.put_bytes(data)
        async with database.transaction() as work:
            await blobs.add_reference(work, stored.sha256, owner)
    return stored.sha256


@pytest.fixture
def settings(tmp_path: Path, sqlite_url: str, run: Run) -> Settings:
    """An installation with one recording."""
    data = tmp_path / "data"
    make_folder(Files(), data)
    make_keys(Files(), data)
    Path(sqlite_url.removeprefix("sqlite:///")).rename(data / "etude.db")
    chosen = load(data=data)
    run(keep(chosen, "session:1", RECORDING))
    return chosen


def made(settings: Settings, target: Path) -> Manifest:
    return make_backup(settings, target, NOW, Files())


def test_tar_restores_an_installation(settings: Settings, tmp_path: Path, run: Run) -> None:
    """Database, recording and keys come back as they were, with closed files."""
    target, restored = tmp_path / "b.tar", tmp_path / "restored"
    assert made(settings, target) == verify_backup(target)
    restored.mkdir(0o700)
    run_bounded(["tar", "-xf", target, "-C", restored], check=True)
    again = load(data=restored)
    sha256 = run(keep(again, "session:2", RECORDING))
    assert run(Blobs(again.blobs, SystemClock()).read(sha256)) == RECORDING
    for key in (settings.data / "keys").iterdir():
        assert (restored / "keys" / key.name).read_bytes() == key.read_bytes()
        assert (restored / "keys" / key.name).stat().st_mode & 0o077 == 0


def test_classrooms_come_back(settings: Settings, tmp_path: Path) -> None:
    """What courses are made of is in the copy with its files; drafts and left-overs are not."""
    room = settings.classrooms / "c-1"
    (room / "media").mkdir(parents=True)
    (room / "media" / "tide.png").write_bytes(b"picture")
    (room / "media" / ".tide.png.7.tmp").write_bytes(b"half")
    (settings.classrooms / "c-1.json").write_bytes(b"{}")
    (settings.classrooms / ".draft-c-2-x" / "media").mkdir(parents=True)
    (settings.classrooms / "c-3" / "audio").mkdir(parents=True)
    (settings.classrooms / "c-3" / "audio" / "left.mp3").write_bytes(b"sound")
    target, restored = tmp_path / "b.tar", tmp_path / "restored"
    assert made(settings, target) == verify_backup(target)
    restored.mkdir(0o700)
    run_bounded(["tar", "-xf", target, "-C", restored], check=True)
    found = {
        one.relative_to(restored).as_posix(): one.read_bytes()
        for one in (restored / "classrooms").rglob("*")
        if one.is_file()
    }
    assert found == {"classrooms/c-1.json": b"{}", "classrooms/c-1/media/tide.png": b"picture"}


def test_the_backup_is_closed_to_others(settings: Settings, tmp_path: Path) -> None:
    """It holds the keys, so it has their mode."""
    made(settings, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").stat().st_mode & 0o077 == 0


def test_nothing_is_overwritten(settings: Settings, tmp_path: Path) -> None:
    """A file at the target stays."""
    target = tmp_path / "b.tar"
    target.write_text("precious")
    with pytest.raises(BackupTargetError):
        made(settings, target)
    assert target.read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(settings: Settings, tmp_path: Path) -> None:
    """The error says which folder cannot be written."""
    with pytest.raises(FolderUnusableError):
        made(settings, tmp_path / "no" / "b.tar")


def test_a_full_disk_at_the_target_is_named_and_left_clean(
    settings: Settings, tmp_path: Path
) -> None:
    """The message names the target's folder, and no part of a backup stays in it."""
    target = tmp_path / "out" / "b.tar"
    target.parent.mkdir()
    small = f'ulimit -f 150; exec "{sys.executable}" -m etude backup "{target}"'
    ended = run_bounded(
        ["sh", "-c", small],
        env=os.environ | {"ETUDE_DATA": str(settings.data), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (4, "")
    assert str(target.parent) in ended.stderr
    assert ended.stderr.endswith("[FOLDER_UNUSABLE]\n")
    assert list(target.parent.iterdir()) == []


def test_a_server_database_is_left_to_its_own_tools(settings: Settings, tmp_path: Path) -> None:
    """PostgreSQL is refused with a pointer to pg_dump."""
    url = "postgresql://nobody@localhost/none"
    with pytest.raises(BackupOfServerError):
        made(load(data=settings.data, database_url=url), tmp_path / "b.tar")


@pytest.mark.parametrize("instant", ["cli.backup.copied", "cli.backup.written"])
def test_a_kill_leaves_no_half_backup(settings: Settings, tmp_path: Path, instant: str) -> None:
    """Nothing is at the target; the next run makes a sound one and leaves nothing else."""
    target = tmp_path / "out" / "b.tar"
    target.parent.mkdir()

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        made(settings, target)
    assert not target.exists()
    made(settings, target)
    verify_backup(target)
    assert [path.name for path in target.parent.iterdir()] == ["b.tar"]


def test_a_recording_that_goes_meanwhile_starts_the_copy_again(
    settings: Settings, tmp_path: Path, run: Run
) -> None:
    """A recording erased after the database was copied is not missed by the backup."""
    (path,) = settings.blobs.glob("??/??/*")
    copies: list[str] = []

    async def erase() -> None:
        async with (
            await Database.open(settings.database_url) as database,
            database.transaction() as work,
        ):
            await Blobs(settings.blobs, SystemClock()).remove_references(work, "session:1")

    def erase_once(name: str) -> None:
        if name == "cli.backup.copied":
            copies.append(name)
            if len(copies) == 1:
                run(erase())

    with armed(erase_once):
        manifest = made(settings, tmp_path / "b.tar")
    assert len(copies) == 2
    assert not path.exists()
    assert not any(name.endswith(path.name) for name in manifest.files)
    assert verify_backup(tmp_path / "b.tar") == manifest


def test_every_damage_is_found(settings: Settings, tmp_path: Path) -> None:
    """A flipped byte in any member, a cut, a missing and a surplus member are each refused."""
    target, bad = tmp_path / "b.tar", tmp_path / "bad.tar"
    made(settings, target)
    whole = target.read_bytes()
    with tarfile.open(target) as archive:
        places = [entry.offset_data + entry.size // 2 for entry in archive]
    for place in places[:-1]:
        bad.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(BackupInvalidError):
            verify_backup(bad)
    for size in (0, 100, 512, len(whole) // 2, places[-1]):
        bad.write_bytes(whole[:size])
        with pytest.raises(BackupInvalidError):
            verify_backup(bad)
    for drop, add in (("keys/server-secret.key", None), (None, "keys/other.key"), (None, "../x")):
        rewrite(target, bad, drop, add)
        with pytest.raises(BackupInvalidError):
            verify_backup(bad)


def rewrite(source: Path, target: Path, drop: str | None, add: str | None) -> None:
    with tarfile.open(source) as one, tarfile.open(target, "w") as two:
        for entry in one:
            if entry.name != drop:
                two.addfile(entry, one.extractfile(entry))
        if add is not None:
            two.addfile(tarfile.TarInfo(add))
