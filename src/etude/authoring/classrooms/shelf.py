"""The classrooms that people have: read, edited by hand, brought from and taken to OpenMAIC.

A classroom belongs to whoever had it made or brought it; those of courses to whoever operates the
installation. What is somebody else's is not there. The row that says whose a classroom is comes
before its document and goes after it, so none is ever without an owner.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.authoring.classrooms import repository
from etude.authoring.classrooms.errors import ClassroomInCourseError
from etude.authoring.classrooms.jobs import Quota, check_day, owns
from etude.authoring.classrooms.records import ClassroomRecord, Owner
from etude.classroom.archive import Archive
from etude.classroom.errors import (
    ClassroomFolderError,
    ClassroomInvalidError,
    ClassroomNotSameError,
    ClassroomUnknownError,
)
from etude.classroom.exporting import archive_losses, export_archive, export_document
from etude.classroom.importing import Imported, import_archive, import_document
from etude.classroom.library import ClassroomLibrary, Draft, Stored
from etude.classroom.loading import read_classroom, write_classroom
from etude.classroom.mending import Loss
from etude.clock import Clock, Ids, to_us
from etude.files import crash_point
from etude.people.erasure import principal_tombstone
from etude.people.records import Page
from etude.store import Database

ARCHIVE_BYTES: Final = 512 << 20
UPLOAD: Final = "upload"
_CHUNK: Final = 256 << 10
log = structlog.get_logger("etude.authoring")


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """A classroom that was taken in, and what was left out or changed."""

    stored: Stored
    losses: tuple[Loss, ...]


class Shelf:
    """The classrooms of an installation. Lives as long as the process."""

    def __init__(
        self, database: Database, folder: Path, clock: Clock, ids: Ids, quota: Quota
    ) -> None:
        """`folder` is that of the classrooms."""
        self._database = database
        self._folder = folder
        self._library = ClassroomLibrary(folder)
        self._clock = clock
        self._ids = ids
        self._quota = quota

    async def listed(
        self, owner: Owner, *, cursor: str | None, limit: int
    ) -> Page[ClassroomRecord]:
        """Return the owner's classrooms, the oldest first; everybody's for whoever sees all."""
        async with self._database.read() as connection:
            return await repository.records(connection, owner, cursor=cursor, limit=limit)

    async def read(self, owner: Owner, classroom_id: str) -> Stored:
        """Return a classroom with its revision.

        Raises:
            ClassroomUnknownError: there is none, or it is somebody else's.
            ClassroomInvalidError, ClassroomFolderError: it cannot be read.
        """
        await self._theirs(owner, classroom_id)
        return await asyncio.to_thread(self._library.stored, classroom_id)

    async def file(self, owner: Owner, classroom_id: str, reference: str) -> Path:
        """Return where a file of a classroom is (`media/tide.png`).

        Raises:
            ClassroomUnknownError: as above.
            ClassroomFileUnknownError: it has no such file.
        """
        await self._theirs(owner, classroom_id)
        return await asyncio.to_thread(self._library.file, classroom_id, reference)

    async def edit(self, owner: Owner, classroom_id: str, revision: str, data: bytes) -> Stored:
        """Replace the document of a classroom by JSON; its files stay.

        A module of a course then says something else than was confirmed, until that is accepted
        (`Courses.accept_source`).

        Raises:
            ClassroomUnknownError: as above.
            ClassroomInvalidError: its parts are the mistakes, each with its path.
            ClassroomChangedError: it is of another revision by now.
        """
        record = await self._theirs(owner, classroom_id)

        def replace() -> Stored:
            classroom = read_classroom(data)
            if classroom.id != classroom_id:
                mistake = ClassroomNotSameError(path="id", wanted=classroom_id)
                raise ClassroomInvalidError(mistake, mistakes=1)
            return self._library.replace(classroom, expected=revision)

        stored = await asyncio.to_thread(replace)
        crash_point("authoring.classroom.edited")
        if record is not None:
            await self._entitle(record.classroom_key, stored)
        log.info("a classroom was edited", action="authoring.classroom_edited")
        return stored

    @asynccontextmanager
    async def upload(self) -> AsyncIterator["Upload"]:
        """Yield where a classroom that is brought is put together; nothing of it stays behind."""
        classroom_id = f"k-{self._ids.new()}"
        draft = await asyncio.to_thread(self._library.draft, classroom_id, self._ids.new())
        try:
            yield Upload(classroom_id=classroom_id, draft=draft)
        finally:
            await asyncio.to_thread(draft.__exit__)

    async def bring_document(self, owner: Owner, upload: "Upload", data: bytes) -> Brought:
        """Take in a plain document; it comes without files.

        Raises:
            ClassroomNotJsonError, ClassroomTooNewError, ClassroomInvalidError: not this one.
            ClassroomsADayError: not today.
            LearnerErasedError: the owner is gone.
        """

        def take_in() -> Imported:
            return import_document(data, classroom_id=upload.classroom_id, files=frozenset())

        return await self._brought(owner, upload, await asyncio.to_thread(take_in))

    async def bring_archive(self, owner: Owner, upload: "Upload") -> Brought:
        """Take in the `.maic.zip` that was written to `upload.path`.

        Raises:
            ArchiveInvalidError, ArchiveNotZipError, ArchiveTooLargeError, …: not this archive.
            ClassroomNotJsonError, ClassroomInvalidError: its manifest is no classroom.
            ClassroomsADayError, LearnerErasedError: as above.
        """
        now = self._clock.now()

        def take_in() -> Imported:
            with Archive.open(upload.path) as archive:
                taken = import_archive(archive, classroom_id=upload.classroom_id, now=now)
                for reference, entry in taken.files.items():
                    upload.draft.put(reference, archive.stream(entry))
            upload.path.unlink()
            return taken

        return await self._brought(owner, upload, await asyncio.to_thread(take_in))

    async def take_document(
        self, owner: Owner, classroom_id: str
    ) -> tuple[bytes, tuple[Loss, ...]]:
        """Return a classroom as OpenMAIC keeps it, and what it lacks then. Raises as `read`."""
        await self._theirs(owner, classroom_id)

        def export() -> tuple[bytes, tuple[Loss, ...]]:
            made = export_document(self._library.read(classroom_id))
            return msgspec.json.encode(made.document), made.losses

        return await asyncio.to_thread(export)

    async def take_archive(self, owner: Owner, classroom_id: str, target: Path) -> tuple[Loss, ...]:
        """Write a classroom as a `.maic.zip` to a new file; return what it lacks.

        Raises:
            ClassroomUnknownError, ClassroomInvalidError, ClassroomFolderError: as above.
        """
        await self._theirs(owner, classroom_id)

        def read(reference: str) -> Iterator[bytes]:
            with self._library.file(classroom_id, reference).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk

        def export() -> tuple[Loss, ...]:
            stored = self._library.stored(classroom_id)
            # Its own time, not that of asking: the same classroom is the same archive.
            made_at = stored.classroom.created_at
            return export_archive(stored.classroom, target, read, made_at)

        return await asyncio.to_thread(export)

    async def losses(self, owner: Owner, classroom_id: str, *, archive: bool) -> tuple[Loss, ...]:
        """Return what an export leaves out or changes. Raises as `read`."""
        await self._theirs(owner, classroom_id)

        def look() -> tuple[Loss, ...]:
            classroom = self._library.read(classroom_id)
            return archive_losses(classroom) if archive else export_document(classroom).losses

        return await asyncio.to_thread(look)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a folder for something that is on its way out; the sweep takes what a kill left."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            folder = tempfile.TemporaryDirectory(prefix=".draft-out-", dir=self._folder)
        except OSError as error:
            raise ClassroomFolderError(reason=error.strerror or type(error).__name__) from error
        with folder as name:
            yield Path(name)

    async def remove(self, owner: Owner, classroom_id: str) -> None:
        """Remove a classroom.

        Raises:
            ClassroomUnknownError: there is none, or it is somebody else's.
            ClassroomInCourseError: a course is made of it.
        """
        record = await self._theirs(owner, classroom_id)
        async with self._database.read() as connection:
            course = await repository.course_of(connection, classroom_id)
        if course is not None:
            raise ClassroomInCourseError(classroom=classroom_id, course=course)
        if classroom_id not in await asyncio.to_thread(self._library.ids):
            raise ClassroomUnknownError(classroom=classroom_id)
        if record is not None:
            gone_us = to_us(self._clock.now())
            async with self._database.transaction() as work:
                await repository.set_record(work, record.classroom_key, removed_us=gone_us)
            crash_point("authoring.classroom.removed")
        await asyncio.to_thread(self._library.remove, classroom_id)
        if record is not None:
            async with self._database.transaction() as work:
                await repository.remove_record(work, record.classroom_key)

    async def _brought(self, owner: Owner, upload: "Upload", taken: Imported) -> Brought:
        now = self._clock.now()
        async with self._database.transaction() as work:
            await principal_tombstone(work.connection, learner_key=owner.learner_key, lock=True)
            await check_day(work, owner, self._quota, now)
            title = taken.classroom.stage.name
            key = await repository.add_record(
                work, upload.classroom_id, owner, "imported", title, now
            )
            crash_point("authoring.classroom.brought")
        try:
            stored = await asyncio.to_thread(upload.draft.commit, taken.classroom)
        except BaseException:
            async with self._database.transaction() as work:
                await repository.remove_record(work, key)
            raise
        crash_point("authoring.classroom.kept")
        await self._entitle(key, stored)
        log.info("a classroom was brought", action="authoring.classroom_brought")
        return Brought(stored=stored, losses=taken.losses)

    async def _entitle(self, classroom_key: int, stored: Stored) -> None:
        title, now = stored.classroom.stage.name[:300], self._clock.now()
        async with self._database.transaction() as work:
            await repository.set_record(work, classroom_key, title=title, placed_us=to_us(now))

    async def _theirs(self, owner: Owner, classroom_id: str) -> ClassroomRecord | None:
        """Return whose a classroom is; None for one that a course had made.

        Raises:
            ClassroomUnknownError: it is somebody else's, or was removed.
        """
        async with self._database.read() as connection:
            record = await repository.record_of(connection, classroom_id)
        if record is None and owner.sees_all:
            return None
        if record is None or record.removed or not owns(owner, record.owner):
            raise ClassroomUnknownError(classroom=classroom_id[:100])
        return record


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A classroom that is being brought."""

    classroom_id: str
    draft: Draft

    @property
    def path(self) -> Path:
        """Where the archive goes before it is looked into."""
        return self.draft.folder / UPLOAD


def written(stored: Stored) -> bytes:
    """Return a classroom as JSON, as it is stored."""
    return write_classroom(stored.classroom)
