"""The one transaction of a publication, whoever froze the bundles: versions, pins, manifest last.

Bundles are content-addressed, durable and checked before it; what a crash leaves over has no
reference and goes with the sweep. A version is visible once a manifest pins it, so there is nothing
to undo.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.classroom.model import Classroom
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
from etude.courseware.entries import enter
from etude.courseware.errors import BundleStoredMissingError
from etude.courseware.legacy import LEGACY_SCHEMA, LegacyManifest, read_legacy
from etude.courseware.manifest import HASH_VERSION
from etude.courseware.registry import ManifestRow, PinRow, VersionRow
from etude.courseware.zip_writing import LARGEST_BYTES
from etude.files import crash_point
from etude.people.records import Actor
from etude.store.blobs import Blob, Blobs
from etude.store.engine import Database
from etude.store.errors import BlobMissing, StoreBusy
from etude.store.work import UnitOfWork

MANIFEST_SCHEMA: Final = 2

log = structlog.get_logger("etude.courseware")


class CheckedModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module whose bundle is durable and passed the whole gate.

    Attributes:
        known: the version that has this content already.
        blob: the bundle otherwise.
    """

    courseware_id: str
    title: str
    description: str
    content_hash: str
    known: VersionRow | None
    blob: Blob | None


class CheckedCourse(msgspec.Struct, frozen=True, kw_only=True):
    """A course whose modules are all there."""

    course_id: str
    title: str
    modules: tuple[CheckedModule, ...]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What is published now. `new`: False = the newest version says the same already."""

    manifest: CourseManifest
    manifest_hash: str
    new: bool


InTransaction = Callable[[UnitOfWork, Published], Awaitable[None]]
"""What else belongs to a publication; it may raise, and then nothing is published."""


async def nothing_else(_work: UnitOfWork, _published: Published) -> None:
    """Add nothing to the transaction."""


class Registrar:
    """Enters publications in the registry. Lives as long as the process."""

    def __init__(
        self, database: Database, blobs_folder: Path, clock: Clock, *, legacy: Path
    ) -> None:
        """`legacy` is the folder of older manifests."""
        self._database = database
        self.blobs = bundle_blobs(blobs_folder, clock)
        self._clock = clock
        self._legacy = legacy

    async def known(self, courseware_id: str, content_hash: str) -> VersionRow | None:
        """Return the version that has this content, after checking its stored bytes.

        Raises:
            BundleUnsafeError, BundleStoredMissingError: they are damaged or gone.
        """
        async with self._database.read() as connection:
            row = await registry.version_with(connection, courseware_id, content_hash)
        if row is not None:
            await self.check_stored(row)
        return row

    async def check_stored(self, row: VersionRow) -> None:
        """Read the stored bytes of a version back and run the whole gate on them.

        Raises:
            BundleStoredMissingError: they are gone.
            BundleUnsafeError: they are not what was published.
        """
        try:
            await self.check_bytes(row.bundle_sha256, row.courseware_id, row.content_hash)
        except FileNotFoundError as error:
            raise BundleStoredMissingError(
                courseware=row.courseware_id, version=row.version
            ) from error

    async def check_bytes(self, sha256: str, courseware_id: str, content_hash: str) -> Classroom:
        """Run the whole gate on stored bytes; return the classroom in them.

        Raises:
            BundleUnsafeError: the first thing that is wrong.
            FileNotFoundError: there are none.
        """

        def check() -> Classroom:
            # Not `Blobs.open`, which hashes everything once more: the gate looks at every byte.
            with Bundle.open(self.blobs.file_of(sha256)) as bundle:
                return check_bundle(bundle, courseware_id, content_hash)

        return await asyncio.to_thread(check)

    async def register(
        self, course: CheckedCourse, by: Actor, also: InTransaction = nothing_else
    ) -> Published:
        """Enter a course whose bundles are durable; the same as the newest is no new version.

        A new version stands in the audit log as published by `by`.

        Raises:
            LegacyManifestError: an older manifest of the course cannot be read.
        """
        older = await asyncio.to_thread(read_legacy, self._legacy, course.course_id)
        now = self._clock.now()
        now_us = to_us(now)
        async with self._database.transaction() as work:
            await registry.lock_course(work, course.course_id)
            versions = [
                await self._version(work, course, index, one, now_us)
                for index, one in enumerate(course.modules)
            ]
            crash_point("courseware.versions.inserted")
            before = await self._before(work, course.course_id, older, now_us)
            published = _next(course, versions, before)
            if before is not None and not published.new:
                gone = await registry.withdrawal(work.connection, course.course_id, before.version)
                published = published if gone is None else _renewed(published)
            await also(work, published)
            if published.new:
                await self._add(work, published, now_us)
                version = published.manifest.version
                await enter(work, "course.published", course.course_id, version, actor=by, now=now)
            crash_point("courseware.manifest.inserted")
        log.info(
            "a course was published",
            action="courseware.published",
            course=course.course_id,
            version=published.manifest.version,
            new=published.new,
        )
        return published

    async def _version(
        self,
        work: UnitOfWork,
        course: CheckedCourse,
        index: int,
        module: CheckedModule,
        now_us: int,
    ) -> VersionRow:
        """Return the version that has a module's content, adding it if there is none yet."""
        courseware_id = module.courseware_id
        known = await registry.version_with(work.connection, courseware_id, module.content_hash)
        if known is not None or module.blob is None:
            return known or _required(module.known)
        row = VersionRow(
            courseware_id=courseware_id,
            version=await registry.next_version(work, courseware_id),
            content_hash=module.content_hash,
            content_hash_version=HASH_VERSION,
            bundle_sha256=module.blob.sha256,
            size_bytes=module.blob.size,
            title=module.title,
            course_id=course.course_id,
            module_index=index,
            created_us=now_us,
        )
        try:
            owner = registry.owner(courseware_id)
            await self.blobs.add_reference(work, module.blob.sha256, owner)
        except BlobMissing as error:  # swept just now
            raise StoreBusy(reason="blob") from error
        await registry.add_version(work, row)
        return row

    async def _before(
        self, work: UnitOfWork, course_id: str, older: LegacyManifest | None, now_us: int
    ) -> ManifestRow | None:
        """Return the newest manifest of a course, taking over an older system's if that is all."""
        newest = await registry.manifest(work.connection, course_id)
        if newest is not None or older is None:
            return newest
        row = ManifestRow(
            course_id=course_id,
            version=older.version,
            schema_version=LEGACY_SCHEMA,
            title=older.title,
            body=older.body,
            manifest_hash=hash_of(older.body),
            published_us=now_us,
        )
        await registry.add_manifest(work, row)
        return row

    async def _add(self, work: UnitOfWork, published: Published, now_us: int) -> None:
        manifest = published.manifest
        pins = [
            PinRow(
                course_id=manifest.course_id,
                version=manifest.version,
                module_index=module.index,
                courseware_id=module.courseware_id,
                courseware_version=module.courseware_version,
            )
            for module in manifest.modules
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
    course: CheckedCourse, versions: Sequence[VersionRow], before: ManifestRow | None
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


def _required(row: VersionRow | None) -> VersionRow:
    if row is None:  # rows are never removed
        raise StoreBusy(reason="version")
    return row
