"""Classrooms over HTTP: read, edited by hand, brought from and taken to OpenMAIC."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

from litestar import Response, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter
from litestar.response import Stream

from etude import i18n
from etude.authoring.classrooms.composition import open_shelf
from etude.authoring.classrooms.errors import (
    ClassroomInCourseError,
    ClassroomRevisionMissingError,
    ClassroomsADayError,
)
from etude.authoring.classrooms.shelf import ARCHIVE_BYTES, Shelf, Upload, written
from etude.classroom.errors import (
    ArchiveInvalidError,
    ArchiveNotZipError,
    ArchiveTooLargeError,
    ClassroomChangedError,
    ClassroomFileUnknownError,
    ClassroomFolderError,
    ClassroomInvalidError,
    ClassroomNotJsonError,
    ClassroomTooLongError,
    ClassroomTooNewError,
    ClassroomUnknownError,
)
from etude.classroom.loading import MAX_BYTES
from etude.classroom.model import Classroom
from etude.courseware.errors import RangeUnsatisfiableError
from etude.courseware.media_kinds import MEDIA_TYPES
from etude.people.errors import CursorInvalidError
from etude.people.paging import DEFAULT_LIMIT
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.bodies import read_body, require_media_type, stream_body
from etude.web.classroom_jobs import owner_of
from etude.web.classroom_views import (
    BroughtView,
    ClassroomPage,
    EditedView,
    LossReport,
    loss_views,
    record_view,
    url_of,
)
from etude.web.declared import EVERYWHERE, Body, declared
from etude.web.errors import DiskNotWritableError
from etude.web.paging import Cursor, Limit
from etude.web.parts import asked_part
from etude.web.representations import JSON, is_known
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/classrooms"
ZIP: Final = "application/zip"
_ARCHIVES: Final = (ZIP, "application/x-zip-compressed", "application/octet-stream")
_ONE: Final = PATH + "/{classroom_id:str}"
_TAGS: Final = ["Classrooms"]
_CHUNK: Final = 256 << 10
_READ_ERRORS: Final = (
    ClassroomUnknownError,
    ClassroomInvalidError,
    ClassroomFolderError,
    StoreUnavailable,
)
# What strangers drew is shown as a picture and runs nothing.
_MEDIA_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, no-cache",
    "Accept-Ranges": "bytes",
}
ClassroomId = Annotated[
    str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The classroom's id.")
]
Folder = Annotated[str, PathParameter(pattern=r"^(media|audio)$", description="Kind of file.")]
FileName = Annotated[str, PathParameter(max_length=200, description="The file's name.")]
Format = Annotated[
    Literal["maic.zip", "json"],
    QueryParameter(name="format", description="An archive with files, or the document alone."),
]


@get(
    PATH,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(CursorInvalidError, StoreUnavailable),
    ),
    tags=_TAGS,
)
async def list_classrooms(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> ClassroomPage:
    """List one's single classrooms, the oldest first; whoever operates sees everybody's."""
    page = await shelf_of(request).listed(owner_of(request), cursor=cursor, limit=limit)
    base_url = services_of(request).settings.base_url
    return ClassroomPage(
        items=[record_view(one, base_url) for one in page.items], next_cursor=page.next_cursor
    )


@get(
    _ONE,
    opt=declared(roles=EVERYWHERE, needs=Scope.CLASSROOMS_WRITE, raises=_READ_ERRORS),
    responses={200: ResponseSpec(Classroom, generate_examples=False, description="The classroom.")},
    tags=_TAGS,
)
async def show_classroom(request: HttpRequest, classroom_id: ClassroomId) -> Response[Any]:
    """Give a classroom's document; its revision is the `ETag`."""
    stored = await shelf_of(request).read(owner_of(request), classroom_id)
    etag = f'"{stored.revision}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if is_known(request, etag):
        return Response(None, status_code=304, headers=headers)
    return Response(written(stored), media_type=JSON, headers=headers)


@put(
    _ONE,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomUnknownError,
            ClassroomInvalidError,
            ClassroomNotJsonError,
            ClassroomTooLongError,
            ClassroomTooNewError,
            ClassroomChangedError,
            ClassroomRevisionMissingError,
            ClassroomFolderError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(JSON,), limit_bytes=MAX_BYTES, description="The classroom's document."
        ),
    ),
    tags=_TAGS,
)
async def edit_classroom(request: HttpRequest, classroom_id: ClassroomId) -> Response[EditedView]:
    """Replace a classroom's document, of the revision in `If-Match`; its files stay."""
    require_media_type(request, JSON)
    revision = request.headers.get("if-match", "").strip().strip('"')
    if not revision:
        raise ClassroomRevisionMissingError
    data = await read_body(request, MAX_BYTES)
    stored = await shelf_of(request).edit(owner_of(request), classroom_id, revision, data)
    view = EditedView(classroom_id=classroom_id, revision=stored.revision)
    return Response(view, headers={"ETag": f'"{stored.revision}"'})


@delete(
    _ONE,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomUnknownError,
            ClassroomInCourseError,
            ClassroomFolderError,
            StoreUnavailable,
        ),
    ),
    tags=_TAGS,
    status_code=204,
)
async def remove_classroom(request: HttpRequest, classroom_id: ClassroomId) -> None:
    """Remove a classroom, unless a course is made of it."""
    await shelf_of(request).remove(owner_of(request), classroom_id)


@get(
    _ONE + "/{folder:str}/{name:str}",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomUnknownError,
            ClassroomFileUnknownError,
            RangeUnsatisfiableError,
            StoreUnavailable,
        ),
    ),
    media_type="application/octet-stream",
    tags=_TAGS,
)
async def show_classroom_file(
    request: HttpRequest, classroom_id: ClassroomId, folder: Folder, name: FileName
) -> Response[Any]:
    """Give a picture, film or sound of a classroom, or a part of it (`Range`)."""
    path = await shelf_of(request).file(owner_of(request), classroom_id, f"{folder}/{name}")
    try:
        file = await services_of(request).in_thread(path.open, "rb")
    except OSError as error:
        raise ClassroomFileUnknownError(classroom=classroom_id, file=name) from error
    status = path.stat()
    etag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
    kind = MEDIA_TYPES.get(path.suffix.lower().lstrip("."), "application/octet-stream")
    headers = _MEDIA_HEADERS | {"ETag": etag, "Content-Type": kind}
    if is_known(request, etag):
        file.close()
        return Response(b"", status_code=304, headers=headers)
    try:
        part = asked_part(request, etag, status.st_size)
    except RangeUnsatisfiableError:
        file.close()
        raise
    start, end = part or (0, status.st_size)
    headers["Content-Length"] = str(end - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{status.st_size}"
    return Stream(
        _sent(file, start, end), status_code=200 if part is None else 206, headers=headers
    )


@post(
    PATH + "/import",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomInvalidError,
            ClassroomNotJsonError,
            ClassroomTooNewError,
            ClassroomsADayError,
            ArchiveInvalidError,
            ArchiveNotZipError,
            ArchiveTooLargeError,
            ClassroomFolderError,
            DiskNotWritableError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(JSON, *_ARCHIVES),
            limit_bytes=ARCHIVE_BYTES,
            description="A document of OpenMAIC (at most 32 MiB), or its `.maic.zip`.",
        ),
    ),
    tags=_TAGS,
    status_code=201,
)
async def bring_classroom(request: HttpRequest) -> Response[BroughtView]:
    """Take in a classroom of OpenMAIC, and tell what was left out or mended."""
    kind = require_media_type(request, JSON, *_ARCHIVES)
    shelf, owner = shelf_of(request), owner_of(request)
    async with shelf.upload() as upload:
        if kind == JSON:
            data = await read_body(request, MAX_BYTES)
            brought = await shelf.bring_document(owner, upload, data)
        else:
            await _spool(request, upload)
            brought = await shelf.bring_archive(owner, upload)
    classroom = brought.stored.classroom
    url = url_of(services_of(request).settings.base_url, classroom.id)
    view = BroughtView(
        classroom_id=classroom.id,
        url=url,
        title=classroom.stage.name,
        scenes_count=len(classroom.scenes),
        revision=brought.stored.revision,
        losses=loss_views(brought.losses, _locale(request)),
    )
    headers = {"Location": url, "ETag": f'"{brought.stored.revision}"'}
    return Response(view, status_code=201, headers=headers)


@get(
    _ONE + "/export",
    opt=declared(roles=EVERYWHERE, needs=Scope.CLASSROOMS_WRITE, raises=_READ_ERRORS),
    media_type=ZIP,
    tags=_TAGS,
)
async def take_classroom(
    request: HttpRequest, classroom_id: ClassroomId, format_: Format = "maic.zip"
) -> Response[Any]:
    """Give a classroom as OpenMAIC reads it; `Etude-Losses` counts what is left out or changed."""
    shelf, owner = shelf_of(request), owner_of(request)
    headers = {"Content-Disposition": f'attachment; filename="{classroom_id}.{format_}"'}
    if format_ == "json":
        document, losses = await shelf.take_document(owner, classroom_id)
        headers |= {"Etude-Losses": str(len(losses))}
        return Response(document, media_type=JSON, headers=headers)
    with shelf.scratch() as folder:
        target = folder / "classroom.maic.zip"
        losses = await shelf.take_archive(owner, classroom_id, target)
        # Without a name it is gone with its last reader, however that one ends.
        file, size = await services_of(request).in_thread(_opened, target)
    headers |= {"Etude-Losses": str(len(losses)), "Content-Length": str(size)}
    return Stream(_sent(file, 0, size), headers=headers | {"Content-Type": ZIP})


@get(
    _ONE + "/export/losses",
    opt=declared(roles=EVERYWHERE, needs=Scope.CLASSROOMS_WRITE, raises=_READ_ERRORS),
    tags=_TAGS,
)
async def show_losses(
    request: HttpRequest, classroom_id: ClassroomId, format_: Format = "maic.zip"
) -> LossReport:
    """Tell what an export leaves out or changes, each with its path."""
    archive = format_ == "maic.zip"
    losses = await shelf_of(request).losses(owner_of(request), classroom_id, archive=archive)
    return LossReport(format=format_, losses=loss_views(losses, _locale(request)))


def shelf_of(request: HttpRequest) -> Shelf:
    """Return the classrooms of the application that `request` came to."""
    services = services_of(request)
    return open_shelf(services.database, services.clock, services.ids, services.settings)


async def _spool(request: HttpRequest, upload: Upload) -> None:
    """Write the body to the disk, a piece at a time."""
    try:
        with await asyncio.to_thread(upload.path.open, "xb") as file:
            waiting = bytearray()
            async for part in stream_body(request, ARCHIVE_BYTES):
                waiting += part
                if len(waiting) >= _CHUNK:
                    await asyncio.to_thread(file.write, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(file.write, bytes(waiting))
    except OSError as error:
        raise DiskNotWritableError(reason=error.strerror or type(error).__name__) from error


def _opened(path: Path) -> tuple[BinaryIO, int]:
    return path.open("rb"), path.stat().st_size


async def _sent(file: BinaryIO, start: int, end: int) -> AsyncIterator[bytes]:
    with file:
        await asyncio.to_thread(file.seek, start)
        left = end - start
        while left > 0:
            chunk = await asyncio.to_thread(file.read, min(_CHUNK, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk


def _locale(request: HttpRequest) -> str:
    return i18n.negotiate(request.headers.get("accept-language"))


route_handlers = [
    list_classrooms,
    show_classroom,
    edit_classroom,
    remove_classroom,
    show_classroom_file,
    bring_classroom,
    take_classroom,
    show_losses,
]
