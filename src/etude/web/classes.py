"""Classes over HTTP: what they are called, and who teaches them."""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, patch, post, put
from litestar.params import JSONBody, PathParameter
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.class_errors import (
    ClassExistsError,
    ClassNotYoursError,
    ClassStaffUnknownError,
    ClassUnknownError,
)
from etude.people.class_staff import (
    add_teacher,
    only_own_classes_of,
    remove_teacher,
    require_own,
    teachers_of,
)
from etude.people.classes import ClassChange, change_class, create_class, get_class, list_classes
from etude.people.errors import (
    CursorInvalidError,
    IdInvalidError,
    NameInvalidError,
    StaffUnknownError,
)
from etude.people.names import ID_PATTERN, MAX_ID, MAX_NAME
from etude.people.paging import DEFAULT_LIMIT
from etude.people.records import SchoolClass
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/classes"
READS: Final = (Scope.LEARNERS_READ, Scope.OPERATE)
ClassId = Annotated[str, PathParameter(description="The class's id, percent-encoded.")]
StaffId = Annotated[str, PathParameter(description="A sign-in name, percent-encoded.")]
Called = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class NewClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class to add. Without `class_id` one is made."""

    name: Called
    grade: Called | None = None
    class_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID, pattern=ID_PATTERN)] | None = (
        None
    )


class ClassPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be different; what is left out stays. `grade` null: it has none."""

    name: Called | UnsetType = UNSET
    grade: Called | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET


class ClassView(msgspec.Struct, frozen=True, kw_only=True):
    """A class. `archived_at`: nobody counts as in it since then."""

    class_id: str
    name: str
    grade: str | None
    created_at: datetime
    archived_at: datetime | None


class ClassDetail(ClassView, frozen=True, kw_only=True):
    """A class and the sign-in names of those who teach it."""

    teachers: list[str]


class ClassPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list of classes, oldest first."""

    items: list[ClassView]
    next_cursor: str | None


@post(
    PATH,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(ClassExistsError, IdInvalidError, NameInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def add_class(request: HttpRequest, data: JSONBody[NewClass]) -> Response[ClassView]:
    """Add a class."""
    services = services_of(request)
    async with services.database.transaction() as work:
        made = await create_class(
            work,
            class_id=data.class_id or services.ids.new(),
            name=data.name,
            grade=data.grade,
            actor=principal_of(request),
            now=services.clock.now(),
        )
    return Response(_view(made), status_code=201, headers={"Location": f"{PATH}/{made.class_id}"})


@get(
    PATH,
    opt=declared(roles=("server",), needs=READS, raises=(CursorInvalidError, StoreUnavailable)),
    tags=["People"],
)
async def show_classes(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> ClassPage:
    """List the classes, archived ones too; a teacher without `operate` sees own ones."""
    async with services_of(request).database.read() as connection:
        page = await list_classes(
            connection,
            staff_key=only_own_classes_of(principal_of(request)),
            cursor=cursor,
            limit=limit,
        )
    return ClassPage(items=[_view(each) for each in page.items], next_cursor=page.next_cursor)


@get(
    PATH + "/{class_id:str}",
    opt=declared(
        roles=("server",),
        needs=READS,
        raises=(ClassUnknownError, ClassNotYoursError, StoreUnavailable),
    ),
    tags=["People"],
)
async def show_class(request: HttpRequest, class_id: ClassId) -> ClassDetail:
    """Show a class, and who teaches it."""
    async with services_of(request).database.read() as connection:
        found = await own_class(request, connection, class_id)
        teachers = await teachers_of(connection, found.class_key)
    return ClassDetail(
        class_id=found.class_id,
        name=found.name,
        grade=found.grade,
        created_at=found.created_at,
        archived_at=found.archived_at,
        teachers=list(teachers),
    )


@patch(
    PATH + "/{class_id:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(ClassUnknownError, NameInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def alter_class(
    request: HttpRequest, class_id: ClassId, data: JSONBody[ClassPatch]
) -> ClassView:
    """Rename a class, archive it (`archived` true), or take it back.

    Archived, it keeps its roster, but nobody counts as in it: what was assigned to it counts no
    more, nobody joins it, and nothing is assigned to it.
    """
    services = services_of(request)
    change = ClassChange(name=data.name, grade=data.grade, archived=data.archived)
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        changed = await change_class(
            work, class_id, change, actor=principal_of(request), now=services.clock.now()
        )
    return _view(changed)


_TEACHER_ERRORS: Final = (ClassUnknownError, StaffUnknownError, StoreUnavailable)


@put(
    PATH + "/{class_id:str}/teachers/{staff_id:str}",
    status_code=204,
    opt=declared(roles=("server",), needs=Scope.OPERATE, raises=_TEACHER_ERRORS),
    tags=["People"],
)
async def put_teacher(request: HttpRequest, class_id: ClassId, staff_id: StaffId) -> Response[None]:
    """Let a member of staff teach a class, so see it and assign to it. Twice is once."""
    services = services_of(request)
    async with services.database.transaction() as work:
        await add_teacher(
            work, class_id, staff_id, actor=principal_of(request), now=services.clock.now()
        )
    return Response(None, status_code=204)


@delete(
    PATH + "/{class_id:str}/teachers/{staff_id:str}",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(*_TEACHER_ERRORS, ClassStaffUnknownError),
    ),
    tags=["People"],
)
async def drop_teacher(
    request: HttpRequest, class_id: ClassId, staff_id: StaffId
) -> Response[None]:
    """Let a member of staff teach a class no more."""
    services = services_of(request)
    async with services.database.transaction() as work:
        await remove_teacher(
            work, class_id, staff_id, actor=principal_of(request), now=services.clock.now()
        )
    return Response(None, status_code=204)


async def own_class(
    request: HttpRequest, connection: AsyncConnection, class_id: str
) -> SchoolClass:
    """Return a class that whoever asks may see.

    Raises `ClassUnknownError`, or `ClassNotYoursError` to a teacher of other classes.
    """
    found = await get_class(connection, class_id)
    await require_own(connection, principal_of(request), found)
    return found


def _view(found: SchoolClass) -> ClassView:
    fields = msgspec.structs.asdict(found)
    return ClassView(**{name: fields[name] for name in ClassView.__struct_fields__})


route_handlers = [
    add_class,
    show_classes,
    show_class,
    alter_class,
    put_teacher,
    drop_teacher,
]
