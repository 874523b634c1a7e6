"""Learners over HTTP: add, read, export, erase. Every read by staff or a service is audited."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from litestar import Response, delete, get, post
from litestar.params import JSONBody, PathParameter
from litestar.response import Stream
from msgspec import Meta

from etude.people import audit
from etude.people.erasure import erase_learner
from etude.people.errors import (
    CursorInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    NameInvalidError,
)
from etude.people.export import export_archive
from etude.people.learners import DEFAULT_LOCALE, add_learner, get_learner, list_learners
from etude.people.names import MAX_NAME
from etude.people.paging import DEFAULT_LIMIT
from etude.people.records import Learner, Subject
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/learners"
_ONE_ERRORS: Final = (LearnerUnknownError, LearnerErasedError, StoreUnavailable)
LearnerId = Annotated[
    str, PathParameter(description="The learner's id, as given when it was added.")
]


class NewLearner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A learner to add."""

    display_name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    locale: Literal["en", "zh-CN"] = DEFAULT_LOCALE


class LearnerView(msgspec.Struct, frozen=True, kw_only=True):
    """A learner. `learner_id` is random: it says nothing about the person."""

    learner_id: str
    display_name: str
    locale: str
    created_at: datetime


class LearnerPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list of learners, oldest first."""

    items: list[LearnerView]
    next_cursor: str | None


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """The learner's rows are gone; a job now clears the deleted bytes out of the files."""

    status: Literal["erased"] = "erased"
    files: Literal["queued"] = "queued"


@post(
    PATH,
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(NameInvalidError, StoreUnavailable)
    ),
    tags=["People"],
)
async def create_learner(request: HttpRequest, data: JSONBody[NewLearner]) -> Response[LearnerView]:
    """Add a learner; the id is made here and is in the answer."""
    services, now = services_of(request), services_of(request).clock.now()
    async with services.database.transaction() as work:
        made = await add_learner(
            work.connection,
            learner_id=services.ids.new(),
            display_name=data.display_name,
            locale=data.locale,
            now=now,
        )
        subject: Subject = ("learner", made.learner_key)
        await audit.record(work, principal_of(request), "learner.added", subject=subject, now=now)
    return Response(_view(made), status_code=201, headers={"Location": f"{PATH}/{made.learner_id}"})


@get(
    PATH,
    opt=declared(
        roles=("server",),
        needs=(Scope.LEARNERS_READ, Scope.OPERATE),
        raises=(CursorInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def show_learners(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> LearnerPage:
    """List the learners; each one shown is an entry in the audit log."""
    services = services_of(request)
    async with services.database.transaction() as work:
        page = await list_learners(work.connection, cursor=cursor, limit=limit)
        await audit.record_all(
            work,
            principal_of(request),
            "learner.listed",
            subjects=[("learner", each.learner_key) for each in page.items],
            now=services.clock.now(),
        )
    return LearnerPage(items=[_view(each) for each in page.items], next_cursor=page.next_cursor)


@get(
    PATH + "/{learner_id:str}",
    opt=declared(roles=("server",), needs=(Scope.LEARNERS_READ, Scope.OPERATE), raises=_ONE_ERRORS),
    tags=["People"],
)
async def show_learner(request: HttpRequest, learner_id: LearnerId) -> LearnerView:
    """Show a learner; 410 if it was erased."""
    return _view(await _read(request, learner_id, "learner.read"))


@get(
    PATH + "/{learner_id:str}/export",
    opt=declared(roles=("server",), needs=Scope.OPERATE, raises=_ONE_ERRORS),
    media_type="application/zip",
    tags=["People"],
)
async def export_learner(request: HttpRequest, learner_id: LearnerId) -> Stream:
    """Give everything that is kept of a learner as one ZIP archive."""
    services = services_of(request)
    learner = await _read(request, learner_id, "learner.exported")
    archive = export_archive(
        services.database, services.learner_data, learner.learner_key, services.clock.now()
    )
    name = f'attachment; filename="learner-{learner.learner_id}.zip"'
    return Stream(archive, media_type="application/zip", headers={"Content-Disposition": name})


@delete(
    PATH + "/{learner_id:str}",
    status_code=202,
    opt=declared(roles=("server",), needs=Scope.OPERATE, raises=_ONE_ERRORS),
    tags=["People"],
)
async def remove_learner(request: HttpRequest, learner_id: LearnerId) -> Erased:
    """Erase a learner with everything that is kept of them, for ever.

    When this answers, the rows are gone, the learner's tokens refused, and later uploads of their
    sessions answered with 410. The files of the database are cleared by a job soon after.
    """
    services = services_of(request)
    async with services.database.transaction() as work:
        await erase_learner(
            work,
            services.learner_data,
            learner_id,
            actor=principal_of(request),
            now=services.clock.now(),
        )
    return Erased()


async def _read(request: HttpRequest, learner_id: str, action: str) -> Learner:
    services = services_of(request)
    async with services.database.transaction() as work:
        found = await get_learner(work.connection, learner_id)
        await audit.record(
            work,
            principal_of(request),
            action,
            subject=("learner", found.learner_key),
            now=services.clock.now(),
        )
    return found


def _view(learner: Learner) -> LearnerView:
    return LearnerView(
        learner_id=learner.learner_id,
        display_name=learner.display_name,
        locale=learner.locale,
        created_at=learner.created_at,
    )


route_handlers = [create_learner, show_learners, show_learner, export_learner, remove_learner]
