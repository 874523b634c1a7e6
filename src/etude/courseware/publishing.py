"""Publishing a course: gates, bundles, then one transaction whose last statement is the manifest.

Bundles are content-addressed and durable before the transaction; what a crash leaves over has no
reference and goes with the sweep. A version is visible once a manifest pins it, so there is nothing
to undo. Equal content is the same version: its stored bytes are read back through the whole gate.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.courseware import registry
from etude.courseware.bundle import Bundle
from etude.courseware.checking import check_bundle
from etude.courseware.course_manifest import (
    CourseManifest,
    PinnedModule,
    course_manifest_bytes,
    hash_of,
    read_course_manifest,
)
from etude.courseware.errors import (
    BundleStoredMissingError,
    PublishTokenMissingError,
    SourceChangedError,
)
from etude.courseware.gates import CourseSource, Passed, check_course, refused
from etude.courseware.legacy import LEGACY_SCHEMA, LegacyManifest, read_legacy
from etude.courseware.manifest import HASH_VERSION, LivePart
from etude.courseware.registry import ManifestRow, PinRow, VersionRow
from etude.courseware.zip_writing import LARGEST_BYTES
from etude.errors import EtudeError
from etude.files import crash_point
from etude.store.blobs import Blob, Blobs
from etude.store.engine import Database
from etude.store.errors import BlobMissing, StoreBusy
from etude.store.work import UnitOfWork

TOKEN_VARIABLE: Final = "ETUDE_COURSEWARE_PUBLISH_TOKEN"  # noqa: S105 - a name, no secret
LEAST_TOKEN_BYTES: Final = 32
_AT_ONCE: Final = 2
_TOGETHER_BYTES: Final = 1 << 20
MANIFEST_SCHEMA: Final = 2

log = structlog.get_logger("etude.courseware")


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What is published now.

    Attributes:
        new: False = the newest version says the same already.
        receipt: of each module, the `source_revision_hash` from which it was frozen now.
    """

    manifest: CourseManifest
    manifest_hash: str
    new: bool
    receipt: tuple[str, ...] = ()


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a course could be published.

    Attributes:
        blockers: every failure, as publishing would tell it.
        needs_model: by index of module, the parts that need a language model to be whole: no
            failure, but good to know before learners without one open it.
    """

    blockers: tuple[EtudeError, ...]
    needs_model: Mapping[int, tuple[LivePart, ...]]

    @property
    def ready(self) -> bool:
        """Whether nothing is in the way."""
        return not self.blockers


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A module whose bundle is stored: as a version that there was, or as a blob."""

    passed: Passed
    known: VersionRow | None
    blob: Blob | None


class Publisher:
    """Publishes courses from a folder of classrooms. Lives as long as the process."""

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
            token: of publishing; without one of 32 bytes nothing is published.
        """
        self._database = database
        self._blobs = bundle_blobs(blobs_folder, clock)
        self._clock = clock
        self._classrooms = classrooms
        self._legacy = legacy
        self._may_publish = len(token.encode()) >= LEAST_TOKEN_BYTES

    async def readiness(self, course: CourseSource) -> Readiness:
        """Return whether the course could be published now, and everything that keeps it."""
        if not self._may_publish:
            return Readiness(blockers=(self._token_missing(),), needs_model={})
        checked = await asyncio.to_thread(check_course, course, self._classrooms)
        blockers = refused(checked.failures).parts if checked.failures else ()
        parts = {one.source.module_id: one.frozen.manifest for one in checked.passed}
        needing = {
            index: parts[module.module_id].requires_live_model
            for index, module in enumerate(course.modules)
            if module.module_id in parts and parts[module.module_id].requires_live_model
        }
        return Readiness(blockers=blockers, needs_model=needing)

    async def failures(self, course: CourseSource) -> tuple[EtudeError, ...]:
        """Return every reason for which the course could not be published now; () = it could."""
        return (await self.readiness(course)).blockers

    async def publish(self, course: CourseSource) -> Published:
        """Publish a course.

        Raises:
            PublishTokenMissingError: there is no token.
            PublishRefusedError: gates are closed; every failure is a part.
            SourceChangedError: a classroom was changed meanwhile; nothing is published.
            LegacyManifestError: an older manifest of the course cannot be read.
            BundleUnsafeError, BundleStoredMissingError, BlobCorrupt: stored bytes of equal content
                are damaged or gone: that is never success.
        """
        passed = await self._checked(course)
        older = await asyncio.to_thread(read_legacy, self._legacy, course.course_id)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def store(one: Passed) -> _Stored:
            async with turns:
                return await self._stored(one)

        outcomes = await asyncio.gather(*map(store, passed), return_exceptions=True)
        stored = [_or_raised(one) for one in outcomes]
        crash_point("courseware.bundles.stored")
        await asyncio.to_thread(_require_unchanged, passed)
        return await self._commit(course, stored, older)

    async def _checked(self, course: CourseSource) -> tuple[Passed, ...]:
        if not self._may_publish:
            raise self._token_missing()
        checked = await asyncio.to_thread(check_course, course, self._classrooms)
        if checked.failures:
            raise refused(checked.failures)
        return checked.passed

    def _token_missing(self) -> PublishTokenMissingError:
        return PublishTokenMissingError(variable=TOKEN_VARIABLE, bytes=LEAST_TOKEN_BYTES)

    async def _stored(self, passed: Passed) -> _Stored:
        frozen = passed.frozen
        courseware_id = passed.source.module_id
        async with self._database.read() as connection:
            known = await registry.version_with(connection, courseware_id, frozen.content_hash)
        if known is not None:
            await self.check_stored(known)
            return _Stored(passed=passed, known=known, blob=None)
        blob = await self._blobs.put_stream(_off_loop(frozen.blocks()))
        await asyncio.to_thread(self._check_bytes, blob.sha256, courseware_id, frozen.content_hash)
        return _Stored(passed=passed, known=None, blob=blob)

    async def check_stored(self, row: VersionRow) -> None:
        """Read the stored bytes of a version back and run the whole gate on them.

        Raises:
            BundleStoredMissingError: they are gone.
            BundleUnsafeError: they are not what was published.
        """
        try:
            await asyncio.to_thread(
                self._check_bytes, row.bundle_sha256, row.courseware_id, row.content_hash
            )
        except FileNotFoundError as error:
            raise BundleStoredMissingError(
                courseware=row.courseware_id, version=row.version
            ) from error

    def _check_bytes(self, sha256: str, courseware_id: str, content_hash: str) -> None:
        # Not `Blobs.open`, which hashes everything once more: the gate looks at every byte.
        with Bundle.open(self._blobs.file_of(sha256)) as bundle:
            check_bundle(bundle, courseware_id, content_hash)

    async def _commit(
        self, course: CourseSource, stored: Sequence[_Stored], older: LegacyManifest | None
    ) -> Published:
        now_us = to_us(self._clock.now())
        async with self._database.transaction() as work:
            await registry.lock_course(work, course.course_id)
            versions = [
                await self._version(work, course, index, one, now_us)
                for index, one in enumerate(stored)
            ]
            crash_point("courseware.versions.inserted")
            before = await self._before(work, course, older, now_us)
            published = _next(course, versions, before)
            if before is not None and not published.new:
                gone = await registry.withdrawal(work.connection, course.course_id, before.version)
                published = published if gone is None else _renewed(published)
            if published.new:
                await self._add(work, published, stored, now_us)
            crash_point("courseware.manifest.inserted")
        log.info(
            "a course was published",
            action="courseware.published",
            course=course.course_id,
            version=published.manifest.version,
            new=published.new,
        )
        receipt = tuple(one.passed.looked.source_revision_hash for one in stored)
        return msgspec.structs.replace(published, receipt=receipt)

    async def _version(
        self, work: UnitOfWork, course: CourseSource, index: int, stored: _Stored, now_us: int
    ) -> VersionRow:
        """Return the version that has a module's content, adding it if there is none yet."""
        source, frozen = stored.passed.source, stored.passed.frozen
        known = await registry.version_with(work.connection, source.module_id, frozen.content_hash)
        if known is not None or stored.blob is None:
            return known or _required(stored.known)
        row = VersionRow(
            courseware_id=source.module_id,
            version=await registry.next_version(work, source.module_id),
            content_hash=frozen.content_hash,
            content_hash_version=HASH_VERSION,
            bundle_sha256=stored.blob.sha256,
            size_bytes=stored.blob.size,
            title=source.title,
            course_id=course.course_id,
            module_index=index,
            created_us=now_us,
        )
        try:
            owner = registry.owner(source.module_id)
            await self._blobs.add_reference(work, stored.blob.sha256, owner)
        except BlobMissing as error:  # swept just now
            raise StoreBusy(reason="blob") from error
        await registry.add_version(work, row)
        return row

    async def _before(
        self, work: UnitOfWork, course: CourseSource, older: LegacyManifest | None, now_us: int
    ) -> ManifestRow | None:
        """Return the newest manifest of a course, taking over an older system's if that is all."""
        newest = await registry.manifest(work.connection, course.course_id)
        if newest is not None or older is None:
            return newest
        row = ManifestRow(
            course_id=course.course_id,
            version=older.version,
            schema_version=LEGACY_SCHEMA,
            title=older.title,
            body=older.body,
            manifest_hash=hash_of(older.body),
            published_us=now_us,
        )
        await registry.add_manifest(work, row)
        return row

    async def _add(
        self, work: UnitOfWork, published: Published, stored: Sequence[_Stored], now_us: int
    ) -> None:
        manifest = published.manifest
        pins = [
            PinRow(
                course_id=manifest.course_id,
                version=manifest.version,
                module_index=module.index,
                courseware_id=module.courseware_id,
                courseware_version=module.courseware_version,
                source_revision_hash=one.passed.looked.source_revision_hash,
            )
            for module, one in zip(manifest.modules, stored, strict=True)
        ]
        await registry.add_pins(work, pins)
        row = ManifestRow(
            course_id=manifest.course_id,
            version=manifest.version,
            schema_version=MANIFEST_SCHEMA,
            title=manifest.title,
            body=course_manifest_bytes(manifest),
            manifest_hash=published.manifest_hash,
            published_us=now_us,
        )
        await registry.add_manifest(work, row)


def bundle_blobs(folder: Path, clock: Clock) -> Blobs:
    """Return the blob store with room for bundles."""
    return Blobs(folder, clock, max_bytes=LARGEST_BYTES)


def _next(
    course: CourseSource, versions: Sequence[VersionRow], before: ManifestRow | None
) -> Published:
    """Return the next manifest, or the one before if it says the same and stands."""
    modules = tuple(
        PinnedModule(
            index=index,
            title=module.title,
            description=module.description,
            courseware_id=row.courseware_id,
            courseware_version=row.version,
            content_hash=row.content_hash,
        )
        for index, (module, row) in enumerate(zip(course.modules, versions, strict=True))
    )
    manifest = CourseManifest(
        schema_version=MANIFEST_SCHEMA,
        course_id=course.course_id,
        version=1 if before is None else before.version + 1,
        title=course.title,
        modules=modules,
    )
    if before is not None and before.schema_version == MANIFEST_SCHEMA:
        last = read_course_manifest(before.body)
        if msgspec.structs.replace(last, version=manifest.version) == manifest:
            return Published(manifest=last, manifest_hash=before.manifest_hash, new=False)
    body = course_manifest_bytes(manifest)
    return Published(manifest=manifest, manifest_hash=hash_of(body), new=True)


def _renewed(withdrawn: Published) -> Published:
    """Return the same content as a new version, because the old one was withdrawn."""
    version = withdrawn.manifest.version + 1
    manifest = msgspec.structs.replace(withdrawn.manifest, version=version)
    body = course_manifest_bytes(manifest)
    return Published(manifest=manifest, manifest_hash=hash_of(body), new=True)


def _or_raised(outcome: _Stored | BaseException) -> _Stored:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _required(row: VersionRow | None) -> VersionRow:
    if row is None:  # rows are never removed
        raise StoreBusy(reason="version")
    return row


def _require_unchanged(passed: Sequence[Passed]) -> None:
    for one in passed:
        try:
            unchanged = one.looked.is_unchanged()
        except OSError:
            unchanged = False
        if not unchanged:
            raise SourceChangedError(file=one.looked.classroom.id)


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
