"""The classrooms of a data folder: `<id>.json`, and beside it `<id>/media` and `<id>/audio`.

A classroom is there when its document is: files are placed first, the document last, each in one
step, so a kill leaves the old state or the new one. Writers of all processes take turns by a lock
on the folder; readers need none. A classroom that others may have changed is replaced only by its
revision (`If-Match`), the hash of everything that is stored.

Everything here blocks: call it in a thread.
"""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import msgspec

from etude.classroom.digest import source_revision_hash
from etude.classroom.errors import (
    ClassroomChangedError,
    ClassroomExistsError,
    ClassroomFileMissingError,
    ClassroomFileTooLargeError,
    ClassroomFileUnknownError,
    ClassroomFolderError,
    ClassroomInvalidError,
    ClassroomNotSameError,
    ClassroomUnknownError,
)
from etude.classroom.fields import CLASSROOM_ID
from etude.classroom.loading import MAX_BYTES, MAX_TOLD, read_classroom, write_classroom
from etude.classroom.model import Classroom
from etude.classroom.references import is_file, slots_of
from etude.documents.reading import spell
from etude.files import Files, crash_point, replace_file

MAX_FILE_BYTES: Final = 200 << 20
DRAFT_AGE: Final = timedelta(days=1)
_FOLDERS: Final = ("media", "audio")
_TOKEN: Final = re.compile(r"^[A-Za-z0-9-]{1,64}$(?!\n)")


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A classroom as it is stored, and the revision by which it can be replaced."""

    classroom: Classroom
    revision: str


class Draft:
    """The files of a classroom that is not there yet; without `commit` nothing of it stays."""

    def __init__(self, library: "ClassroomLibrary", classroom_id: str, folder: Path) -> None:
        """Use `ClassroomLibrary.draft`."""
        self._library = library
        self._id = classroom_id
        self.folder = folder

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was not committed."""
        self._library.forget(self.folder)

    def put(self, reference: str, chunks: Iterable[bytes]) -> str:
        """Store a file under `media/<name>` or `audio/<name>`; return its hex sha256.

        Raises:
            ClassroomFileUnknownError: the reference has not that form.
            ClassroomFileTooLargeError: more than 200 MiB.
            ClassroomFolderError: the disk does not take it.
        """
        return self._library.write_file(self._id, self.folder, reference, chunks)

    def commit(self, classroom: Classroom) -> Stored:
        """Make the classroom visible, with its files, in one step.

        Raises:
            ClassroomInvalidError: it is not sound, or refers to a file that was not put.
            ClassroomExistsError: there is one of this id.
            ClassroomFolderError: the disk does not take it.
        """
        if classroom.id != self._id:
            raise ClassroomInvalidError(
                ClassroomNotSameError(path="id", wanted=self._id), mistakes=1
            )
        return self._library.place(classroom, self.folder)


class ClassroomLibrary:
    """The classrooms of one folder. Lives as long as the process; several may share the folder."""

    def __init__(self, folder: Path, files: Files | None = None) -> None:
        """Keep classrooms below `folder`, which is made when needed."""
        self._folder = folder
        self._files = files or Files()

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all classrooms, sorted."""
        with _mapped():
            names = [path.stem for path in self._folder.glob("*.json")]
        return tuple(sorted(name for name in names if CLASSROOM_ID.match(name)))

    def read(self, classroom_id: str) -> Classroom:
        """Return a classroom, brought up to the newest version.

        Raises:
            ClassroomUnknownError: there is none of this id.
            ClassroomInvalidError: what is stored is not sound.
            ClassroomFolderError: it cannot be read.
        """
        path = self._document(classroom_id)
        try:
            with _mapped(), path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError as error:
            raise ClassroomUnknownError(classroom=classroom_id) from error
        return read_classroom(data)

    def stored(self, classroom_id: str) -> Stored:
        """Return a classroom with its revision; every file is hashed for it. Raises as `read`."""
        with self._turn():
            return self._stored(classroom_id)

    def draft(self, classroom_id: str, token: str) -> Draft:
        """Begin a new classroom; `token` is an id that nobody else has.

        >>> def keep(library: ClassroomLibrary, classroom: Classroom, picture: bytes) -> str:
        ...     with library.draft(classroom.id, "2f1c") as draft:
        ...         draft.put("media/tide.png", [picture])
        ...         return draft.commit(classroom).revision
        """
        self._document(classroom_id)
        if _TOKEN.match(token) is None:
            raise ValueError(token)
        folder = self._folder / f".draft-{classroom_id}-{token}"
        with _mapped():
            for name in _FOLDERS:
                self._files.make_folder(folder / name)
        return Draft(self, classroom_id, folder)

    def place(self, classroom: Classroom, folder: Path) -> Stored:
        """Move the files of a draft to their place and write the document; see `Draft.commit`."""
        data = write_classroom(classroom)
        hashes = _hashes(folder)
        _require_files(classroom, hashes)
        target = self._folder / classroom.id
        with self._turn(), _mapped():
            if self._document(classroom.id).exists():
                raise ClassroomExistsError(classroom=classroom.id)
            self._files.remove_tree(target)  # left over: without a document nobody sees it
            for name in _FOLDERS:
                self._files.sync_folder(folder / name)
            self._files.sync_folder(folder)
            crash_point("classroom.draft.synced")
            self._files.rename(folder, target)
            self._files.sync_folder(self._folder)
            crash_point("classroom.draft.placed")
            replace_file(self._files, self._document(classroom.id), data)
        return Stored(classroom=classroom, revision=source_revision_hash(classroom, hashes))

    def replace(self, classroom: Classroom, *, expected: str) -> Stored:
        """Write another content of a classroom that is there.

        Args:
            classroom: the new content.
            expected: the revision that it replaces.

        Raises:
            ClassroomUnknownError: there is none of this id.
            ClassroomChangedError: it is of another revision by now.
            ClassroomInvalidError: it is not sound, or refers to a file that is not there.
            ClassroomFolderError: the disk does not take it.
        """
        data = write_classroom(classroom)
        with self._turn(), _mapped():
            before = self._stored(classroom.id)
            if before.revision != expected:
                raise ClassroomChangedError(classroom=classroom.id)
            hashes = self.media_hashes(classroom.id)
            _require_files(classroom, hashes)
            replace_file(self._files, self._document(classroom.id), data)
        return Stored(classroom=classroom, revision=source_revision_hash(classroom, hashes))

    def put_file(self, classroom_id: str, reference: str, chunks: Iterable[bytes]) -> str:
        """Add or replace a file of a classroom that is there; return its hex sha256.

        The classroom's revision is another one then. Raises as `Draft.put`, and
        `ClassroomUnknownError`.
        """
        with self._turn(), _mapped():
            if not self._document(classroom_id).exists():
                raise ClassroomUnknownError(classroom=classroom_id)
            folder = self._folder / classroom_id
            for name in _FOLDERS:
                self._files.make_folder(folder / name)
            return self.write_file(classroom_id, folder, reference, chunks)

    def media_hashes(self, classroom_id: str) -> dict[str, str]:
        """Return `media/x.png` → hex sha256 of every file of a classroom."""
        self._document(classroom_id)
        return _hashes(self._folder / classroom_id)

    def file(self, classroom_id: str, reference: str) -> Path:
        """Return where a file is; never a place outside, never a link.

        Raises:
            ClassroomFileUnknownError: there is no such file.
        """
        self._document(classroom_id)
        path = self._folder / classroom_id / reference
        if not is_file(reference) or path.is_symlink() or not path.is_file():
            raise ClassroomFileUnknownError(classroom=classroom_id, file=reference[:200])
        return path

    def remove(self, classroom_id: str) -> None:
        """Remove a classroom, its document first; one that is not there is removed already."""
        with self._turn(), _mapped():
            self._files.remove(self._document(classroom_id))
            self._files.sync_folder(self._folder)
            crash_point("classroom.removal.unlisted")
            self._files.remove_tree(self._folder / classroom_id)

    def sweep(self, now: datetime) -> int:
        """Remove what kills left over: drafts older than a day, files without a document."""
        removed = 0
        with self._turn(), _mapped():
            for waiting in self._folder.glob(".*.tmp"):
                self._files.remove(waiting)
            for path in sorted(self._folder.iterdir()):
                if path.is_symlink() or not path.is_dir():
                    continue
                age = now.timestamp() - path.stat().st_mtime
                draft = path.name.startswith(".draft-")
                if age > DRAFT_AGE.total_seconds() if draft else not self._has_document(path):
                    self._files.remove_tree(path)
                    removed += 1
        return removed

    def forget(self, folder: Path) -> None:
        """Remove the folder of a draft, if it is still there; see `Draft`."""
        with contextlib.suppress(OSError):  # the sweep comes back to it
            self._files.remove_tree(folder)

    def write_file(
        self, classroom_id: str, folder: Path, reference: str, chunks: Iterable[bytes]
    ) -> str:
        """Write a file below `folder` in one step; see `Draft.put` and `put_file`."""
        if not is_file(reference):
            raise ClassroomFileUnknownError(classroom=classroom_id, file=reference[:200])
        path = folder / reference
        waiting = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        digest, size = hashlib.sha256(), 0
        with _mapped(), self._writing(waiting) as write:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise ClassroomFileTooLargeError(limit=MAX_FILE_BYTES, file=reference)
                digest.update(chunk)
                write(chunk)
        with _mapped():
            crash_point("classroom.file.written")
            self._files.rename(waiting, path)
            self._files.sync_folder(path.parent)
            crash_point("classroom.file.renamed")
        return digest.hexdigest()

    def _stored(self, classroom_id: str) -> Stored:
        classroom = self.read(classroom_id)
        revision = source_revision_hash(classroom, self.media_hashes(classroom_id))
        return Stored(classroom=classroom, revision=revision)

    def _document(self, classroom_id: str) -> Path:
        if CLASSROOM_ID.match(classroom_id) is None:
            raise ClassroomUnknownError(classroom=classroom_id[:100])
        return self._folder / f"{classroom_id}.json"

    def _has_document(self, folder: Path) -> bool:
        """Whether a folder belongs to a classroom; what was left in it by a kill goes."""
        if not (self._folder / f"{folder.name}.json").exists():
            return False
        for waiting in folder.glob("*/.*.tmp"):
            self._files.remove(waiting)
        return True

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the folder's lock: one writer of all processes at a time."""
        with _mapped():
            self._files.make_folder(self._folder)
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with _mapped():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _writing(self, path: Path) -> Iterator[Callable[[bytes], None]]:
        """Write a new file; it is synced at the end, and removed if there is none."""
        self._files.remove(path)
        file = self._files.open_append(path)
        try:
            yield file.write_all
            file.sync()
        except BaseException:
            with contextlib.suppress(OSError):  # what was to be said is said already
                self._files.remove(path)
            raise
        finally:
            file.close()


def _require_files(classroom: Classroom, there: Container[str]) -> None:
    missing = [
        ClassroomFileMissingError(path=spell(slot.path), file=slot.reference)
        for slot in slots_of(classroom)
        if is_file(slot.reference) and slot.reference not in there
    ]
    if missing:
        raise ClassroomInvalidError(*missing[:MAX_TOLD], mistakes=len(missing))


def _hashes(folder: Path) -> dict[str, str]:
    found = {}
    with _mapped():
        for name in _FOLDERS:
            inside = folder / name
            for path in sorted(inside.iterdir()) if inside.is_dir() else ():
                if is_file(f"{name}/{path.name}") and not path.is_symlink():
                    with path.open("rb") as file:
                        found[f"{name}/{path.name}"] = hashlib.file_digest(
                            file, "sha256"
                        ).hexdigest()
    return found


@contextlib.contextmanager
def _mapped() -> Iterator[None]:
    """Say an operating system's error as ours; a file that is not there is the caller's to name."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ClassroomFolderError(reason=error.strerror or type(error).__name__) from error
