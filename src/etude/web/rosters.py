"""Rosters over HTTP: who is in a class when, one by one or from a file."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from etude.people import audit
from etude.people.class_errors import (
    ClassArchivedError,
    ClassNotYoursError,
    ClassUnknownError,
    MemberIntervalError,
    MemberOverlapError,
    MemberUnknownError,
    RosterEmptyError,
    RosterFileUnreadableError,
    RosterInvalidError,
    RosterTooLongError,
)
from etude.people.errors import LearnerErasedError, LearnerUnknownError, TimeOutOfRangeError
from etude.people.learners import DEFAULT_LOCALE
from etude.people.records import Member
from etude.people.roster_files import MAX_BYTES, read_roster
from etude.people.roster_import import Imported, import_roster
from etude.people.rosters import join_class, leave_class, roster_at, roster_ever
from etude.people.scopes import Scope
from etude.people.times import check_time
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.bodies import read_body, require_media_type
from etude.web.classes import PATH, READS, ClassId, own_class
from etude.web.declared import Body, declared
from etude.web.devices import Instant
from etude.web.learners import LearnerId
from etude.web.services import HttpRequest, services_of

CSV: Final = "text/csv"
_ROSTER: Final = PATH + "/{class_id:str}/roster"
At: TypeAlias = Annotated[
    datetime | None, QueryParameter(name="at", description="RFC 3339 with an offset; else now.")
]
History: TypeAlias = Annotated[
    bool,
    QueryParameter(name="history", description="Also who has left, and who joins later."),
]
Locale: TypeAlias = Annotated[
    Literal["en", "zh-CN"],
    QueryParameter(name="locale", description="The language of learners who are new."),
]


class Stay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From when (null: now) until just before when (null: further notice)."""

    starts_at: Instant | None = None
    ends_at: Instant | None = None


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """A learner is in a class from `starts_at` until just before `ends_at` (null: still)."""

    learner_id: str
    display_name: str
    starts_at: datetime
    ends_at: datetime | None


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """Who is in a class, in order of joining."""

    items: list[MemberView]


@get(
    _ROSTER,
    opt=declared(
        roles=("server",),
        needs=READS,
        raises=(ClassUnknownError, ClassNotYoursError, TimeOutOfRangeError, StoreUnavailable),
    ),
    tags=["People"],
)
async def show_roster(
    request: HttpRequest,
    class_id: ClassId,
    at: At = None,
    history: History = False,  # noqa: FBT002 - Litestar passes it by name
) -> Roster:
    """List who is in a class; each learner shown is an entry in the audit log."""
    services = services_of(request)
    now = services.clock.now()
    moment = now if at is None else check_time(at)
    async with services.database.transaction() as work:
        found = await own_class(request, work.connection, class_id)
        members = (
            await roster_ever(work.connection, found.class_key)
            if history
            else await roster_at(work.connection, found.class_key, moment)
        )
        await audit.record_all(
            work,
            principal_of(request),
            "class.roster_read",
            subjects=[("learner", key) for key in sorted({each.learner_key for each in members})],
            now=now,
            detail={"class": found.class_key},
        )
    return Roster(items=[_view(each) for each in members])


@put(
    _ROSTER + "/{learner_id:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            ClassUnknownError,
            ClassArchivedError,
            LearnerUnknownError,
            LearnerErasedError,
            MemberOverlapError,
            MemberIntervalError,
            TimeOutOfRangeError,
            StoreUnavailable,
        ),
    ),
    tags=["People"],
)
async def put_member(
    request: HttpRequest, class_id: ClassId, learner_id: LearnerId, data: JSONBody[Stay]
) -> MemberView:
    """Put a learner into a class: what the class is assigned counts for them from then on.

    Who is in it already stays, and nothing changes; another time that overlaps is 409.
    """
    services = services_of(request)
    now = services.clock.now()
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        joined = await join_class(
            work,
            class_id,
            learner_id,
            starts_at=data.starts_at or now,
            ends_at=data.ends_at,
            actor=principal_of(request),
            now=now,
        )
    return _view(joined)


@delete(
    _ROSTER + "/{learner_id:str}",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            ClassUnknownError,
            LearnerUnknownError,
            LearnerErasedError,
            MemberUnknownError,
            TimeOutOfRangeError,
            StoreUnavailable,
        ),
    ),
    tags=["People"],
)
async def drop_member(
    request: HttpRequest, class_id: ClassId, learner_id: LearnerId, at: At = None
) -> Response[None]:
    """Take a learner out of a class, now or at `at`; twice is once. A lesson that runs goes on."""
    services = services_of(request)
    now = services.clock.now()
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        await leave_class(
            work, class_id, learner_id, at=at or now, actor=principal_of(request), now=now
        )
    return Response(None, status_code=204)


@post(
    _ROSTER,
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            ClassUnknownError,
            ClassArchivedError,
            RosterInvalidError,
            RosterEmptyError,
            RosterTooLongError,
            RosterFileUnreadableError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(CSV,),
            limit_bytes=MAX_BYTES,
            compressible=True,
            description="CSV in UTF-8, a learner a line: `name[,id][,device_id]`.",
        ),
    ),
    tags=["People"],
)
async def post_roster(
    request: HttpRequest, class_id: ClassId, locale: Locale = DEFAULT_LOCALE
) -> Imported:
    """Import a roster: everybody in it is in the class from now on, who is new is made.

    All or nothing: 422 `ROSTER_INVALID` has every wrong line in `errors`. Nobody leaves by being
    absent, and the same file again changes nothing. A device is given to its line's learner.
    """
    services = services_of(request)
    require_media_type(request, CSV)
    roster = read_roster(await read_body(request, MAX_BYTES))
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        return await import_roster(
            work,
            class_id,
            roster,
            locale=locale,
            actor=principal_of(request),
            now=services.clock.now(),
            ids=services.ids,
        )


def _view(member: Member) -> MemberView:
    return MemberView(
        learner_id=member.learner_id,
        display_name=member.display_name,
        starts_at=member.starts_at,
        ends_at=member.ends_at,
    )


route_handlers = [show_roster, put_member, drop_member, post_roster]
