"""Published courses and their bundles: for anybody, immutable, in parts (RFC 9110 §14)."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
import structlog
from litestar import Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, PathParameter, QueryParameter
from litestar.response import Stream

from etude.clock import from_us
from etude.courseware import catalogue
from etude.courseware.catalogue import CourseEntry
from etude.courseware.course_manifest import CourseManifest
from etude.courseware.errors import (
    BundleStoredMissingError,
    CourseUnpublishedError,
    CoursewareUnknownError,
    LegacyManifestError,
    ManifestUnpinnedError,
    ManifestWithdrawnError,
    PublishTokenMissingError,
    RangeUnsatisfiableError,
)
from etude.courseware.publishers import remote_publisher
from etude.courseware.registry import VersionRow
from etude.courseware.remote_errors import PublishServerError
from etude.courseware.submission import WithdrawalSent
from etude.people.records import Actor, Principal
from etude.people.scopes import Scope
from etude.practice.assignments import published_scenes
from etude.store.blob_files import OpenBlob
from etude.store.errors import BlobMissing, StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import Access, declared
from etude.web.representations import JSON, is_known
from etude.web.services import HttpRequest, Services, services_of

log = structlog.get_logger("etude.web")

ZIP: Final = "application/zip"
FOREVER: Final = "public, max-age=31536000, immutable"
_MANIFEST_ERRORS: Final = (
    CourseUnpublishedError,
    ManifestWithdrawnError,
    ManifestUnpinnedError,
    LegacyManifestError,
    StoreUnavailable,
)
_VERSION_ERRORS: Final = (CoursewareUnknownError, ManifestWithdrawnError, StoreUnavailable)
_LARGEST: Final = 2**31 - 1
_ID: Final = r"^[A-Za-z0-9_-]{1,64}$"
_VERSION: Final = re.compile(r"[1-9][0-9]{0,9}")
_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})", re.ASCII)

CourseId = Annotated[str, PathParameter(pattern=_ID, description="The course's id.")]
CoursewareId = Annotated[str, PathParameter(pattern=_ID, description="The courseware's id.")]
PathVersion = Annotated[str, PathParameter(description="Which version, a number from 1.")]
Version = Annotated[
    int | None, QueryParameter(name="version", ge=1, le=_LARGEST, description="Which version.")
]


class Courses(msgspec.Struct, frozen=True, kw_only=True):
    """The published courses."""

    items: list[CourseEntry]


class CoursewareView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A version of a courseware: what the registry says, and where its bundle is."""

    courseware_id: str
    version: int
    content_hash: str
    content_hash_version: int
    title: str
    size_bytes: int
    bundle_url: str
    created_at: datetime


@get(
    "/api/learn/courses",
    opt=declared(roles=("server", "learner"), needs=Access.PUBLIC, raises=(StoreUnavailable,)),
    tags=["Courseware"],
)
async def list_courses(request: HttpRequest) -> Courses:
    """List the published courses, each in its newest version."""
    async with services_of(request).database.read() as connection:
        return Courses(items=await catalogue.courses(connection))


@get(
    "/api/learn/courses/{course_id:str}",
    opt=declared(roles=("server", "learner"), needs=Access.PUBLIC, raises=_MANIFEST_ERRORS),
    responses={
        200: ResponseSpec(CourseManifest, generate_examples=False, description="The manifest.")
    },
    tags=["Courseware"],
)
async def show_manifest(
    request: HttpRequest, course_id: CourseId, version: Version = None
) -> Response[Any]:
    """Give the manifest of a course as it was published: id, version and hash of every module."""
    services = services_of(request)
    folder = services.settings.course_manifests
    older = await services.in_thread(catalogue.legacy_of, folder, course_id)
    async with services.database.read() as connection:
        row = await catalogue.manifest_of(connection, course_id, version, older)
    etag = _etag(row.manifest_hash.partition(":")[2])
    # A withdrawal must be seen: even a fixed version is asked for again.
    headers = {"ETag": etag, "Cache-Control": "public, no-cache"}
    if is_known(request, etag):
        return Response(None, status_code=304, headers=headers)
    return Response(row.body, media_type=JSON, headers=headers)


@get(
    "/api/coursewares/{courseware_id:str}",
    opt=declared(roles=("server", "learner"), needs=Access.PUBLIC, raises=_VERSION_ERRORS),
    tags=["Courseware"],
)
async def show_courseware(
    request: HttpRequest, courseware_id: CoursewareId, version: Version = None
) -> CoursewareView:
    """Tell what the registry knows of a version that a course pins."""
    services = services_of(request)
    async with services.database.read() as connection:
        row = await catalogue.version_of(connection, courseware_id, version)
    return _view(row, services.settings.courseware_url)


@get(
    "/api/coursewares/{courseware_id:str}/bundles/{version:str}/download",
    opt=declared(
        roles=("server", "learner"),
        needs=Access.PUBLIC,
        raises=(*_VERSION_ERRORS, BundleStoredMissingError, RangeUnsatisfiableError),
    ),
    media_type=ZIP,
    tags=["Courseware"],
)
async def download_bundle(
    request: HttpRequest, courseware_id: CoursewareId, version: PathVersion
) -> Response[Any]:
    """Give a bundle, or a part of it (`Range`); its bytes never change under this address."""
    services = services_of(request)
    number = number_of(version)
    if number is None:
        raise CoursewareUnknownError(courseware=courseware_id, version=version[:20])
    async with services.database.read() as connection:
        row = await catalogue.version_of(connection, courseware_id, number)
    etag = _etag(row.bundle_sha256)
    headers = {"ETag": etag, "Cache-Control": FOREVER, "Accept-Ranges": "bytes"}
    if is_known(request, etag):
        return Response(b"", status_code=304, media_type=ZIP, headers=headers)
    part = _asked_part(request, etag, row.size_bytes)
    try:
        # Unchecked, for speed: whoever loads a bundle recomputes its hash, and must.
        bundle = await services.in_thread(OpenBlob.open, services.blobs.file_of(row.bundle_sha256))
    except BlobMissing as error:
        raise BundleStoredMissingError(courseware=courseware_id, version=number) from error
    start, end = part or (0, bundle.size)
    headers["Content-Length"] = str(end - start)
    headers["Content-Disposition"] = f'attachment; filename="{courseware_id}-v{number}.zip"'
    headers["Content-Type"] = ZIP  # Litestar's parameter loses to the route's
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{bundle.size}"
    status = 200 if part is None else 206
    return Stream(_part_of(bundle, start, end), status_code=status, headers=headers)


@post(
    "/api/courses/{course_id:str}/manifests/{version:str}/withdraw",
    status_code=204,
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(
            CourseUnpublishedError,
            PublishTokenMissingError,
            PublishServerError,
            StoreUnavailable,
        ),
    ),
    tags=["Courseware"],
)
async def withdraw_manifest(
    request: HttpRequest, course_id: CourseId, version: PathVersion, data: JSONBody[WithdrawalSent]
) -> None:
    """Take a version of a course away from everybody, where it was published: 410 from then on."""
    services = services_of(request)
    number = number_of(version)
    if number is None:
        raise CourseUnpublishedError(course=course_id, version=version[:20])
    actor = principal_of(request)
    remote = remote_publisher(services.settings, services.database, services.clock)
    if remote is not None:
        await remote.withdraw(course_id, number, data.reason, actor=actor)
        return
    await withdraw_here(services, course_id, number, data.reason, actor)


async def withdraw_here(
    services: Services, course_id: str, version: int, reason: str, actor: Actor | Principal
) -> None:
    """Take a version of a course away from everybody, and the assignments of what it alone pinned.

    Raises:
        CourseUnpublishedError: there is no such version.
    """
    now = services.clock.now()
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        await catalogue.withdraw(work, course_id, version, reason, actor=actor, now=now)
        assignments = await published_scenes.withdraw_unpinned(
            work, course_id, version, actor=actor, now=now
        )
    log.info(
        "a version of a course was withdrawn",
        action="courseware.withdrawn",
        course=course_id,
        version=version,
        assignments=assignments,
        by=actor.kind,
    )


def _view(row: VersionRow, base_url: str) -> CoursewareView:
    return CoursewareView(
        courseware_id=row.courseware_id,
        version=row.version,
        content_hash=row.content_hash,
        content_hash_version=row.content_hash_version,
        title=row.title,
        size_bytes=row.size_bytes,
        bundle_url=f"{base_url}/api/coursewares/{row.courseware_id}/bundles/{row.version}/download",
        created_at=from_us(row.created_us),
    )


def number_of(version: str) -> int | None:
    """Return the number in a path; None for what no version is called."""
    return int(version) if _VERSION.fullmatch(version) and int(version) <= _LARGEST else None


def _etag(sha256: str) -> str:
    return f'"sha256-{sha256}"'


def _asked_part(request: HttpRequest, etag: str, size: int) -> tuple[int, int] | None:
    """Return which bytes are asked for, first and behind the last; None = all of them.

    Several ranges, or a form that is not known, count as none (RFC 9110 §14.2).
    """
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    if request.headers.get("if-range", etag) != etag:
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= size or start >= end:
        raise RangeUnsatisfiableError(size=size)
    return start, end


async def _part_of(bundle: OpenBlob, start: int, end: int) -> AsyncIterator[bytes]:
    with bundle:
        at = start
        while at < end:
            chunk = (await asyncio.to_thread(bundle.read_at, at))[: end - at]
            if not chunk:
                return
            at += len(chunk)
            yield chunk


route_handlers = [
    list_courses,
    show_manifest,
    show_courseware,
    download_bundle,
    withdraw_manifest,
]
