"""The server's side of a publication: nothing that came is believed.

    reception = await receiver.begin(submission)
    async with reception:
        for each part: await reception.bundle(index, chunks)
        answer = await reception.finish()

Bundles go to the disk as they come. Every gate that can be tried on them is, all failures are told
together, and only then comes the one transaction. What is not published is removed at once.
"""

import asyncio
import shutil
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Self

import structlog

from etude.classroom.digest import DIGEST_VERSION
from etude.clock import Clock
from etude.courseware import registry
from etude.courseware.bundle_errors import BundleTooLargeError
from etude.courseware.errors import (
    ContinuityStaleError,
    ContinuityUnverifiedError,
    FindingError,
    ModuleSetMismatchError,
    SemanticDriftError,
)
from etude.courseware.gates import NO_MODULE, refused
from etude.courseware.registering import CheckedCourse, CheckedModule, Published, Registrar
from etude.courseware.remote_errors import CoursewareForeignError
from etude.courseware.submission import (
    FORMAT_VERSION,
    MOST_BYTES,
    Answer,
    AnsweredModule,
    Offer,
    Submission,
    SubmittedModule,
)
from etude.courseware.zip_writing import LARGEST_BYTES
from etude.errors import EtudeError
from etude.files import crash_point
from etude.people.records import PUBLISHER
from etude.store.blobs import Blob
from etude.store.engine import Database
from etude.store.errors import BlobTooLarge, DiskFull, StoreUnavailable

RESERVE_BYTES: Final = 256 << 20
"""Room that a publication leaves for uploads and the database."""
KEEP_EVERY_S: Final = 300.0

log = structlog.get_logger("etude.courseware")


class Receiver:
    """Takes courses that others froze. Lives as long as the process."""

    def __init__(
        self, database: Database, blobs_folder: Path, clock: Clock, *, legacy: Path
    ) -> None:
        """`legacy` is the folder of older manifests."""
        self._database = database
        self._folder = blobs_folder
        self._registrar = Registrar(database, blobs_folder, clock, legacy=legacy)

    async def offer(self, announced_bytes: int = 0) -> Offer:
        """Say what would be taken.

        Raises:
            DiskFull: there is no room for so much.
        """
        free_bytes = await asyncio.to_thread(self._free_bytes)
        if announced_bytes + RESERVE_BYTES > free_bytes:
            raise DiskFull(reason="ENOSPC")
        return Offer(
            format_version=FORMAT_VERSION,
            limit_bytes=MOST_BYTES,
            free_bytes=free_bytes - RESERVE_BYTES,
        )

    async def begin(self, submission: Submission) -> "Reception":
        """Begin to receive a course."""
        failures = [*_module_set(submission), *_continuity(submission.modules)]
        async with self._database.read() as connection:
            for module in submission.modules:
                owner = await registry.course_of(connection, module.courseware_id)
                if owner not in {None, submission.course_id}:
                    foreign = CoursewareForeignError(courseware=module.courseware_id)
                    failures.append((module.index, foreign))
        return Reception(self._database, self._registrar, submission, failures)

    def _free_bytes(self) -> int:
        folder = next(one for one in (self._folder, *self._folder.parents) if one.is_dir())
        return shutil.disk_usage(folder).free


class Reception:
    """One publication that comes in. Belongs to one request."""

    def __init__(
        self,
        database: Database,
        registrar: Registrar,
        submission: Submission,
        failures: list[tuple[int, EtudeError]],
    ) -> None:
        """Use `Receiver.begin`."""
        self._database = database
        self._registrar = registrar
        self._submission = submission
        self._failures = failures
        self._modules: dict[int, CheckedModule] = {}
        self._blobs: dict[int, Blob] = {}
        self._published: Published | None = None
        self._kept_s = monotonic()

    async def bundle(self, index: int, chunks: AsyncIterable[bytes]) -> None:
        """Store and check the bundle of a module; what is wrong with it is told by `finish`.

        Raises:
            DiskFull, StoreUnavailable: it cannot be stored.
        """
        module = self._submission.modules[index]
        try:
            await self._take(module, chunks)
        except StoreUnavailable:
            raise
        except BlobTooLarge:
            limit = BundleTooLargeError(entry="", limit_bytes=LARGEST_BYTES)
            self._failures.append((index, limit))
        except EtudeError as error:
            # The single findings say more than that there are some.
            found: list[EtudeError] = [one for one in error.parts if isinstance(one, FindingError)]
            self._failures += [(index, one) for one in found or [error]]

    async def finish(self) -> Answer:
        """Publish what came.

        Raises:
            PublishRefusedError: gates are closed, or bundles are missing; every failure is a part.
            LegacyManifestError: an older manifest of the course cannot be read.
        """
        course = self._submission
        if len(self._blobs) != len(course.modules) and not self._failures:
            missing = ModuleSetMismatchError(planned=len(course.modules), found=len(self._blobs))
            self._failures.append((NO_MODULE, missing))
        if self._failures:
            raise refused(self._failures)
        modules = tuple(self._modules[index] for index in range(len(course.modules)))
        checked = CheckedCourse(course_id=course.course_id, title=course.title, modules=modules)
        crash_point("courseware.bundles.received")
        self._published = await self._registrar.register(checked, PUBLISHER)
        return self._answer(self._published)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove at once what came and was not published; after a kill it goes with the sweep."""
        if self._published is not None:
            return
        try:
            for blob in self._blobs.values():
                await self._registrar.blobs.discard(self._database, blob.sha256)
        except StoreUnavailable as failure:
            log.warning("left to the sweep", action="courseware.left_over", code=failure.code)

    async def _take(self, module: SubmittedModule, chunks: AsyncIterable[bytes]) -> None:
        registrar, courseware_id = self._registrar, module.courseware_id
        # Before the same bytes come again: what is stored must be good by itself.
        known = await registrar.known(courseware_id, module.content_hash)
        blob = await registrar.blobs.put_stream(self._kept_young(chunks))
        self._blobs[module.index] = blob
        await registrar.check_bytes(blob.sha256, courseware_id, module.content_hash)
        self._modules[module.index] = CheckedModule(
            courseware_id=courseware_id,
            title=module.title,
            description=module.description,
            content_hash=module.content_hash,
            known=known,
            blob=None if known else blob,
        )

    async def _kept_young(self, chunks: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
        """Yield the chunks; what has come already is not swept, however long all of it takes."""
        async for chunk in chunks:
            if monotonic() - self._kept_s > KEEP_EVERY_S:
                self._kept_s = monotonic()
                for blob in self._blobs.values():
                    await asyncio.to_thread(self._registrar.blobs.keep_young, blob.sha256)
            yield chunk

    def _answer(self, published: Published) -> Answer:
        manifest = published.manifest
        return Answer(
            course_id=manifest.course_id,
            manifest_version=manifest.version,
            manifest_hash=published.manifest_hash,
            new=published.new,
            modules=tuple(
                AnsweredModule(
                    index=one.index,
                    courseware_id=one.courseware_id,
                    courseware_version=one.courseware_version,
                    content_hash=one.content_hash,
                    bundle_sha256=self._blobs[one.index].sha256,
                )
                for one in manifest.modules
            ),
        )


def _module_set(submission: Submission) -> list[tuple[int, EtudeError]]:
    indexes = [module.index for module in submission.modules]
    ids = {module.courseware_id for module in submission.modules}
    if indexes != list(range(len(indexes))) or len(ids) != len(indexes):
        return [(NO_MODULE, ModuleSetMismatchError(planned=len(indexes), found=len(ids)))]
    return []


def _continuity(modules: Sequence[SubmittedModule]) -> list[tuple[int, EtudeError]]:
    """Try the gates that look at the maker's record: digests, and what each module builds on."""
    found: list[tuple[int, EtudeError]] = []
    for index, module in enumerate(modules):
        if module.digest_version != DIGEST_VERSION:
            found.append((index, SemanticDriftError(moduleIndex=index)))
        refs = module.continuity_input_refs
        if [one.module_index for one in refs] != list(range(index)):
            found.append((index, ContinuityUnverifiedError(moduleIndex=index)))
            continue
        for earlier, ref in enumerate(refs):
            if ref.semantic_hash != modules[earlier].semantic_hash:
                stale = ContinuityStaleError(
                    moduleIndex=index, earlierIndex=earlier, reason="semanticHash"
                )
                found.append((index, stale))
    return found
