"""Publishing a course in this installation's own registry: gates, bundles, one transaction.

Equal content is the same version: its stored bytes are read back through the whole gate.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from etude.clock import Clock
from etude.courseware import receipts
from etude.courseware.errors import PublishTokenMissingError, SourceChangedError
from etude.courseware.gates import Checked, CourseSource, Passed, check_course, refused
from etude.courseware.manifest import LivePart
from etude.courseware.publish_token import LEAST_TOKEN_BYTES, TOKEN_VARIABLE, PublishToken
from etude.courseware.receipts import HERE, Receipt, ReceiptModule
from etude.courseware.registering import (
    CheckedCourse,
    CheckedModule,
    Published,
    Registrar,
)
from etude.courseware.registry import VersionRow
from etude.errors import EtudeError
from etude.files import crash_point
from etude.people.records import Actor
from etude.store.engine import Database
from etude.store.work import UnitOfWork

_AT_ONCE: Final = 2
_TOGETHER_BYTES: Final = 1 << 20

Allowed = Callable[[UnitOfWork], Awaitable[None]]
"""Raises in the last transaction if the publication was cancelled meanwhile."""


async def always_allowed(_work: UnitOfWork) -> None:
    """Let every publication end."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a course could be published.

    Attributes:
        blockers: every failure, as publishing would tell it.
        needs_model: by index of module, the parts that need a language model to be whole: no
            failure, but good to know before learners without one open it.
        unprotected: the token would go to its server as anybody on the way can read it.
    """

    blockers: tuple[EtudeError, ...]
    needs_model: Mapping[int, tuple[LivePart, ...]]
    unprotected: bool = False

    @property
    def ready(self) -> bool:
        """Whether nothing is in the way."""
        return not self.blockers


class CoursePublisher(Protocol):
    """Publishes courses, here (`Publisher`) or at another server (`sending.RemotePublisher`)."""

    @property
    def target(self) -> str:
        """Where to; `receipts.HERE` or the address of a server."""

    def require_token(self) -> None:
        """Raise `PublishTokenMissingError` where nothing can be published at all."""

    async def readiness(self, course: CourseSource) -> Readiness:
        """Return whether the course could be published now, and everything that keeps it."""

    async def publish(
        self, course: CourseSource, by: Actor, allowed: Allowed = always_allowed
    ) -> Published:
        """Publish a course in the name of `by` and note the receipt, or raise every reason."""


class Publisher:
    """Publishes courses from a folder of classrooms. Lives as long as the process."""

    target = HERE

    def __init__(
        self,
        database: Database,
        blobs_folder: Path,
        clock: Clock,
        *,
        classrooms: Path,
        legacy: Path,
        token: str,
    ) -> None:
        """Publish what is in `classrooms`.

        Args:
            database: the registry's.
            blobs_folder: where bundles are kept, the folder of all blobs.
            clock: for times of publication.
            classrooms: the folder of `etude.classroom.library`.
            legacy: the folder of older manifests.
            token: of publishing, as `PublishToken` reads it; without one nothing is published.
        """
        self._database = database
        self._registrar = Registrar(database, blobs_folder, clock, legacy=legacy)
        self._blobs = self._registrar.blobs
        self._clock = clock
        self._classrooms = classrooms
        self._token = PublishToken(token)

    def require_token(self) -> None:
        """Raise `PublishTokenMissingError` where nothing can be published at all."""
        if not self._token.usable:
            raise token_missing()

    async def readiness(self, course: CourseSource) -> Readiness:
        """Return whether the course could be published now, and everything that keeps it."""
        if not self._token.usable:
            return Readiness(blockers=(token_missing(),), needs_model={})
        return readiness_of(course, await asyncio.to_thread(check_course, course, self._classrooms))

    async def failures(self, course: CourseSource) -> tuple[EtudeError, ...]:
        """Return every reason for which the course could not be published now; () = it could."""
        return (await self.readiness(course)).blockers

    async def publish(
        self, course: CourseSource, by: Actor, allowed: Allowed = always_allowed
    ) -> Published:
        """Publish a course.

        Args:
            course: which.
            by: who publishes it; a new version is entered in the audit log.
            allowed: asked in the transaction, before the manifest.

        Raises:
            PublishTokenMissingError: there is no token.
            PublishRefusedError: gates are closed; every failure is a part.
            SourceChangedError: a classroom was changed meanwhile; nothing is published.
            LegacyManifestError: an older manifest of the course cannot be read.
            BundleUnsafeError, BundleStoredMissingError, BlobCorrupt: stored bytes of equal content
                are damaged or gone: that is never success.
        """
        self.require_token()
        passed = await checked(course, self._classrooms)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def store(one: Passed) -> CheckedModule:
            async with turns:
                return await self._stored(one)

        outcomes = await asyncio.gather(*map(store, passed), return_exceptions=True)
        modules = tuple(_or_raised(one) for one in outcomes)
        crash_point("courseware.bundles.stored")
        await asyncio.to_thread(require_unchanged, passed)

        async def also(work: UnitOfWork, published: Published) -> None:
            await allowed(work)
            receipt = receipt_of(published, passed, HERE, self._clock)
            await receipts.keep(work, receipt)

        course_there = CheckedCourse(
            course_id=course.course_id, title=course.title, modules=modules
        )
        return await self._registrar.register(course_there, by, also)

    async def check_stored(self, row: VersionRow) -> None:
        """Read the stored bytes of a version back; see `Registrar.check_stored`."""
        await self._registrar.check_stored(row)

    async def _stored(self, passed: Passed) -> CheckedModule:
        frozen, source = passed.frozen, passed.source
        known = await self._registrar.known(source.module_id, frozen.content_hash)
        blob = None
        if known is None:
            blob = await self._blobs.put_stream(_off_loop(frozen.blocks()))
            await self._registrar.check_bytes(blob.sha256, source.module_id, frozen.content_hash)
        return CheckedModule(
            courseware_id=source.module_id,
            title=source.title,
            description=source.description,
            content_hash=frozen.content_hash,
            known=known,
            blob=blob,
        )


async def checked(course: CourseSource, classrooms: Path) -> tuple[Passed, ...]:
    """Return the modules of a course, all of which passed every gate.

    Raises:
        PublishRefusedError: gates are closed; every failure is a part.
    """
    found = await asyncio.to_thread(check_course, course, classrooms)
    if found.failures:
        raise refused(found.failures)
    return found.passed


def readiness_of(course: CourseSource, found: Checked) -> Readiness:
    """Return what trying every gate says of a course."""
    blockers = refused(found.failures).parts if found.failures else ()
    parts = {one.source.module_id: one.frozen.manifest for one in found.passed}
    needing = {
        index: parts[module.module_id].requires_live_model
        for index, module in enumerate(course.modules)
        if module.module_id in parts and parts[module.module_id].requires_live_model
    }
    return Readiness(blockers=blockers, needs_model=needing)


def token_missing() -> PublishTokenMissingError:
    """Return what is said where no token is set."""
    return PublishTokenMissingError(variable=TOKEN_VARIABLE, bytes=LEAST_TOKEN_BYTES)


def require_unchanged(passed: Sequence[Passed]) -> None:
    """Raise `SourceChangedError` if anything of the classrooms was touched; blocks."""
    for one in passed:
        try:
            unchanged = one.looked.is_unchanged()
        except OSError:
            unchanged = False
        if not unchanged:
            raise SourceChangedError(file=one.looked.classroom.id)


def receipt_of(
    published: Published, passed: Sequence[Passed], target: str, clock: Clock
) -> Receipt:
    """Return the receipt of what is published, with the states from which it was frozen."""
    modules = tuple(
        ReceiptModule(
            index=module.index,
            courseware_id=module.courseware_id,
            courseware_version=module.courseware_version,
            content_hash=module.content_hash,
            source_revision_hash=one.looked.source_revision_hash,
        )
        for module, one in zip(published.manifest.modules, passed, strict=True)
    )
    return Receipt(
        course_id=published.manifest.course_id,
        target=target,
        version=published.manifest.version,
        manifest_hash=published.manifest_hash,
        modules=modules,
        received_at=clock.now(),
    )


def _or_raised(outcome: CheckedModule | BaseException) -> CheckedModule:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _off_loop(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield what `blocks` does, read in threads; small pieces are put together."""
    while piece := await asyncio.to_thread(_next_piece, blocks):
        yield piece


def _next_piece(blocks: Iterator[bytes]) -> bytes:
    gathered: list[bytes] = []
    size = 0
    for block in blocks:
        gathered.append(block)
        size += len(block)
        if size >= _TOGETHER_BYTES:
            break
    return b"".join(gathered) if len(gathered) != 1 else gathered[0]
