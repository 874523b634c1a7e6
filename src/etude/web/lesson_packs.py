"""Installed lessons for gateways on other machines: what they hold, and their clips."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Final

from litestar import Response, get
from litestar.params import PathParameter
from litestar.response import Stream

from etude.people.scopes import Scope
from etude.practice.assigned import LessonAddress
from etude.practice.assignments.errors import LessonNotInstalledError
from etude.practice.lesson_folders import clip_files, lesson_folder
from etude.practice.lesson_packs import Pack, read_pack
from etude.store.blob_files import OpenBlob
from etude.store.errors import BlobMissing, StoreUnavailable
from etude.web.declared import declared
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/gateway/lessons/{app_id:str}/{task_id:str}/{lesson_id:str}"
_BINARY: Final = "application/octet-stream"
AppId = Annotated[str, PathParameter(description="The app's id.")]
TaskId = Annotated[str, PathParameter(description="The task's id.")]
LessonId = Annotated[str, PathParameter(description="The lesson's id.")]
ClipName = Annotated[str, PathParameter(description="The clip's file name.")]


@get(
    PATH,
    opt=declared(
        roles=("server",),
        needs=Scope.GATEWAY_LINK,
        raises=(LessonNotInstalledError, StoreUnavailable),
    ),
    tags=["Practice"],
)
async def show_pack(
    request: HttpRequest, app_id: AppId, task_id: TaskId, lesson_id: LessonId
) -> Pack:
    """Tell a gateway what an installed lesson holds: clips with their hashes, and texts."""
    services = services_of(request)
    address = LessonAddress(app_id=app_id, task_id=task_id, lesson_id=lesson_id)
    pack = await services.in_thread(read_pack, services.settings.lessons, address)
    if pack is None:
        raise _missing(address)
    return pack


@get(
    PATH + "/clips/{clip:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.GATEWAY_LINK,
        raises=(LessonNotInstalledError, StoreUnavailable),
    ),
    media_type=_BINARY,
    tags=["Practice"],
)
async def download_clip(
    request: HttpRequest, app_id: AppId, task_id: TaskId, lesson_id: LessonId, clip: ClipName
) -> Response[Any]:
    """Give a gateway one clip of an installed lesson."""
    services = services_of(request)
    address = LessonAddress(app_id=app_id, task_id=task_id, lesson_id=lesson_id)
    file = await services.in_thread(_clip, services.settings.lessons, address, clip)
    if file is None:
        raise _missing(address)
    try:
        opened = await services.in_thread(OpenBlob.open, file)
    except BlobMissing as error:
        raise _missing(address) from error
    headers = {"Content-Length": str(opened.size), "Content-Type": _BINARY}
    return Stream(_blocks(opened), headers=headers)


def _clip(root: Path, address: LessonAddress, name: str) -> Path | None:
    """Return a clip's file: one that is in the lesson's folder, never a path made of the name."""
    folder = lesson_folder(root, address.app_id, address.task_id, address.lesson_id)
    found = clip_files(folder) if folder is not None else []
    return next((one.path for one in found if one.name == name), None)


def _missing(address: LessonAddress) -> LessonNotInstalledError:
    lesson = f"{address.app_id}/{address.task_id}/{address.lesson_id}"
    return LessonNotInstalledError(lesson=lesson[:120])


async def _blocks(opened: OpenBlob) -> AsyncIterator[bytes]:
    with opened:
        async for block in opened:
            yield block


route_handlers = [show_pack, download_clip]
