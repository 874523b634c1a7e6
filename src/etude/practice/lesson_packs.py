"""Installed lessons of web on a gateway with a data folder of its own (`docs/rules.md 44`).

What web tells of a lesson is a `Pack`: its clips with their hashes, and their texts. The gateway
fetches all of it, compares every byte, and puts it in its place in one step:

    <root>/{app_id}/{task_id}/lessons/{lesson_id}/01.mp3, 01.txt … and pack.json

A damaged one is removed and fetched again. The folder may be deleted while no gateway runs.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec
import structlog
from msgspec import Meta

from etude.files import Files, crash_point
from etude.practice.assigned import LessonAddress
from etude.practice.lesson_errors import LessonPackError
from etude.practice.lesson_folders import (
    MOST_CLIPS,
    TEXT_SUFFIX,
    clip_files,
    is_plain,
    lesson_folder,
    read_text,
)
from etude.speech.audio import SUFFIXES

PACK: Final = "pack.json"
_log = structlog.get_logger(__name__)


class PackClip(msgspec.Struct, frozen=True, kw_only=True):
    """A clip: its file's name, size and SHA-256, and what is read in it; None = unknown."""

    clip: Annotated[str, Meta(max_length=255)]
    size_bytes: Annotated[int, Meta(ge=1)]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    text: Annotated[str, Meta(max_length=8192)] | None


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson as it is installed, whole."""

    app_id: str
    task_id: str
    lesson_id: str
    clips: Annotated[tuple[PackClip, ...], Meta(min_length=1, max_length=MOST_CLIPS)]

    @property
    def address(self) -> LessonAddress:
        """Where it is installed."""
        return LessonAddress(app_id=self.app_id, task_id=self.task_id, lesson_id=self.lesson_id)


AskPack = Callable[[LessonAddress], Pack]
"""Asks web what a lesson holds; raises `LessonPackError`."""
FetchClip = Callable[[LessonAddress, PackClip, BinaryIO], None]
"""Writes a clip to a file; raises `LessonPackError`."""


def read_pack(root: Path, address: LessonAddress) -> Pack | None:
    """Return what an installed lesson holds, every clip hashed; None if there is none. Disk."""
    folder = lesson_folder(root, address.app_id, address.task_id, address.lesson_id)
    found = clip_files(folder)[:MOST_CLIPS] if folder is not None else []
    clips = tuple(
        PackClip(
            clip=one.name,
            size_bytes=one.path.stat().st_size,
            sha256=_digest(one.path),
            text=read_text(one.text),
        )
        for one in found
        if one.path.stat().st_size
    )
    if not clips:
        return None
    return Pack(
        app_id=address.app_id, task_id=address.task_id, lesson_id=address.lesson_id, clips=clips
    )


class LessonPacks:
    """The packs that a gateway has. Works on disk and network: never call it on an event loop."""

    def __init__(
        self, root: Path, own: Path, ask: AskPack, fetch: FetchClip, files: Files | None = None
    ) -> None:
        """Keep packs below `root`; what is installed below `own` needs none."""
        self._root = root
        self._own = own
        self._ask = ask
        self._fetch = fetch
        self._files = files or Files()

    def at_hand(self, address: LessonAddress) -> Path | None:
        """Return where a lesson is that can be played now: installed, or fetched and whole."""
        own = _folder(self._own, address)
        if clip_files(own):
            return own
        return None if self.kept(address) is None else _folder(self._root, address)

    def kept(self, address: LessonAddress) -> Pack | None:
        """Return the pack that was fetched, every byte as it was; a damaged one is removed."""
        folder = _folder(self._root, address)
        try:
            pack = msgspec.json.decode((folder / PACK).read_bytes(), type=Pack)
            whole = pack.address == address and read_pack(self._root, address) == pack
        except FileNotFoundError:
            whole, pack = not folder.exists(), None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            whole, pack = False, None
        if not whole:
            _log.warning("a lesson pack is damaged", action="lesson_pack.damaged")
            shutil.rmtree(folder, ignore_errors=True)
            return None
        return pack

    def made(self, address: LessonAddress) -> Path:
        """Return where a lesson is, as web has it now; fetched if it is not installed here.

        Raises:
            LessonPackError: web has none, or it cannot be had whole.
            OSError: the disk does not take it.
        """
        own = _folder(self._own, address)
        if clip_files(own):
            return own
        pack = self._ask(address)
        _check(pack, address)
        if self.kept(address) != pack:
            self._placed(pack)
        return _folder(self._root, address)

    def _placed(self, pack: Pack) -> None:
        target = _folder(self._root, pack.address)
        waiting = target.with_name(f".{target.name}.new")
        files = self._files
        try:
            files.remove_tree(waiting)
            files.make_folder(waiting)
            for clip in pack.clips:
                self._clip(pack.address, clip, waiting)
            files.write_new(waiting / PACK, msgspec.json.encode(pack))
            files.sync_folder(waiting)
            crash_point("practice.lesson_pack.written")
            files.remove_tree(target)
            files.rename(waiting, target)
            files.sync_folder(target.parent)
            crash_point("practice.lesson_pack.placed")
        except (OSError, LessonPackError):
            shutil.rmtree(waiting, ignore_errors=True)
            raise

    def _clip(self, address: LessonAddress, clip: PackClip, into: Path) -> None:
        file = into / clip.clip
        with file.open("xb") as target:
            self._fetch(address, clip, target)
        if file.stat().st_size != clip.size_bytes or _digest(file) != clip.sha256:
            raise LessonPackError(lesson=address.lesson_id, reason="changed meanwhile")
        opened = self._files.open_append(file)
        try:
            opened.sync()
        finally:
            opened.close()
        if clip.text is not None:
            self._files.write_new(file.with_suffix(TEXT_SUFFIX), f"{clip.text}\n".encode())


def _check(pack: Pack, address: LessonAddress) -> None:
    """Refuse what was not asked for, and names that are no clips'."""
    names = [one.clip for one in pack.clips]
    plain = all(is_plain(one) and Path(one).suffix.lower() in SUFFIXES for one in names)
    stems = {Path(one).stem for one in names}
    if pack.address != address or not plain or len(stems) != len(names):
        raise LessonPackError(lesson=address.lesson_id, reason="not this lesson")


def _folder(root: Path, address: LessonAddress) -> Path:
    found = lesson_folder(root, address.app_id, address.task_id, address.lesson_id)
    if found is None:
        raise LessonPackError(lesson=address.lesson_id[:31], reason="no lesson's name")
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
