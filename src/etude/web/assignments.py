"""Assignments over HTTP: what learners, classes and devices are to practise, and until when."""

from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec
from litestar import Response, delete, get, post
from litestar.params import JSONBody, PathParameter, QueryParameter
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.examiner.repository import keep_rubric
from etude.people import audit
from etude.people.class_errors import ClassArchivedError, ClassNotYoursError, ClassUnknownError
from etude.people.class_staff import require_own
from etude.people.classes import get_class
from etude.people.devices import get_device
from etude.people.errors import (
    CursorInvalidError,
    DeviceUnknownError,
    LearnerErasedError,
    LearnerUnknownError,
    TimeOutOfRangeError,
)
from etude.people.learners import get_learner
from etude.people.names import MAX_DEVICE_ID, MAX_ID
from etude.people.paging import DEFAULT_LIMIT
from etude.people.scopes import Scope
from etude.practice.assigned import CoursewarePin
from etude.practice.assignments.assigning import (
    assign,
    require_own_assignment,
    subject_of,
    withdraw,
)
from etude.practice.assignments.errors import (
    AssignmentHolderError,
    AssignmentIntervalError,
    AssignmentUnknownError,
)
from etude.practice.assignments.published_scenes import require_standing
from etude.practice.assignments.records import Assignment, NewAssignment
from etude.practice.assignments.repository import list_assignments
from etude.practice.records import LISTEN_RATIO_MAX, LISTEN_RATIO_MIN
from etude.rubric.library import rubric_json
from etude.store.errors import StoreUnavailable
from etude.web.assigned_lessons import LESSON_ERRORS, LessonBody, found_lesson
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.devices import Instant
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/assignments"
_NEEDS: Final = (Scope.LESSONS_ASSIGN, Scope.OPERATE)
AssignmentId = Annotated[
    str, PathParameter(description="The assignment's id, as given when it was made.")
]
OfLearner: TypeAlias = Annotated[
    str | None, QueryParameter(name="learner", max_length=MAX_ID, description="Of this learner.")
]
OfClass: TypeAlias = Annotated[
    str | None,
    QueryParameter(name="class", max_length=MAX_ID, description="Of this class itself."),
]
OfDevice: TypeAlias = Annotated[
    str | None,
    QueryParameter(name="device", max_length=MAX_DEVICE_ID, description="Of this device itself."),
]


class NewAssignmentBody(LessonBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lesson or a scene for a learner, on whichever device they have; a class; or a device.

    Exactly one of `learner_id`, `class_id` (whoever is in the class at that moment) and `device_id`
    (whoever has it). It counts from `starts_at` (null: now) until just
    before `ends_at` (null: until further notice). `listen_ratio` null: as the task says.
    """

    learner_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)] | None = None
    class_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)] | None = None
    device_id: Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID)] | None = None
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    listen_ratio: Annotated[float, Meta(ge=LISTEN_RATIO_MIN, le=LISTEN_RATIO_MAX)] | None = None


class AssignmentView(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment. `withdrawn_at`: it counts no more. `courseware`: where its lesson is from."""

    assignment_id: str
    app_id: str
    task_id: str
    lesson_id: str
    learner_id: str | None
    class_id: str | None
    device_id: str | None
    listen_ratio: float | None
    courseware: CoursewarePin | None
    starts_at: datetime
    ends_at: datetime | None
    created_at: datetime
    withdrawn_at: datetime | None


class AssignmentPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list of assignments, oldest first."""

    items: list[AssignmentView]
    next_cursor: str | None


@post(
    PATH,
    opt=declared(
        roles=("server",),
        needs=_NEEDS,
        raises=(
            *LESSON_ERRORS,
            AssignmentHolderError,
            AssignmentIntervalError,
            TimeOutOfRangeError,
            LearnerUnknownError,
            LearnerErasedError,
            ClassUnknownError,
            ClassArchivedError,
            ClassNotYoursError,
            DeviceUnknownError,
            StoreUnavailable,
        ),
    ),
    tags=["Practice"],
)
async def create_assignment(
    request: HttpRequest, data: JSONBody[NewAssignmentBody]
) -> Response[AssignmentView]:
    """Assign a lesson or a course's scene; the toy plays it when it is asked to start practice.

    A lesson that runs is not changed. Where several count, a learner's own comes before a class's
    and that before a device's, and of these the one that starts last. A teacher without `operate`
    assigns to own classes. A scene is that of one version for good, whatever is published later.
    """
    services = services_of(request)
    found = await found_lesson(services, data)
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        now = services.clock.now()
        if found.scene is not None:
            await require_standing(work, found.scene.pin)
            await keep_rubric(work, rubric_json(found.scene.scene.rubric), now)
        wanted = NewAssignment(
            lesson=found.address,
            courseware=found.pin,
            learner_id=data.learner_id,
            class_id=data.class_id,
            device_id=data.device_id,
            starts_at=data.starts_at,
            ends_at=data.ends_at,
            listen_ratio=data.listen_ratio,
        )
        made = await assign(
            work,
            wanted,
            assignment_id=services.ids.new(),
            actor=principal_of(request),
            now=now,
        )
    location = f"{PATH}/{made.assignment_id}"
    return Response(_view(made), status_code=201, headers={"Location": location})


@get(
    PATH,
    opt=declared(
        roles=("server",),
        needs=_NEEDS,
        raises=(
            CursorInvalidError,
            LearnerUnknownError,
            LearnerErasedError,
            ClassUnknownError,
            ClassNotYoursError,
            DeviceUnknownError,
            StoreUnavailable,
        ),
    ),
    tags=["Practice"],
)
async def show_assignments(
    request: HttpRequest,
    learner: OfLearner = None,
    of_class: OfClass = None,
    device: OfDevice = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> AssignmentPage:
    """List the assignments, past and withdrawn ones too; each learner shown is audited."""
    services = services_of(request)
    async with services.database.transaction() as work:
        connection = work.connection
        page = await list_assignments(
            connection,
            learner_key=(await get_learner(connection, learner)).learner_key if learner else None,
            class_key=await _own(request, connection, of_class) if of_class else None,
            device_key=(await get_device(connection, device)).device_key if device else None,
            cursor=cursor,
            limit=limit,
        )
        shown = {subject_of(each) for each in page.items if each.learner_key is not None}
        await audit.record_all(
            work,
            principal_of(request),
            "assignment.listed",
            subjects=sorted(shown),
            now=services.clock.now(),
        )
    return AssignmentPage(items=[_view(each) for each in page.items], next_cursor=page.next_cursor)


@delete(
    PATH + "/{assignment_id:str}",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=_NEEDS,
        raises=(AssignmentUnknownError, ClassNotYoursError, StoreUnavailable),
    ),
    tags=["Practice"],
)
async def remove_assignment(request: HttpRequest, assignment_id: AssignmentId) -> Response[None]:
    """Withdraw an assignment: it counts no more, and a lesson that runs goes on. Twice is once."""
    services = services_of(request)
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        actor = principal_of(request)
        await require_own_assignment(work.connection, assignment_id, actor)
        await withdraw(work, assignment_id, actor=actor, now=services.clock.now())
    return Response(None, status_code=204)


async def _own(request: HttpRequest, connection: AsyncConnection, class_id: str) -> int:
    found = await get_class(connection, class_id)
    await require_own(connection, principal_of(request), found)
    return found.class_key


def _view(found: Assignment) -> AssignmentView:
    fields = msgspec.structs.asdict(found)
    return AssignmentView(**{name: fields[name] for name in AssignmentView.__struct_fields__})


route_handlers = [create_assignment, show_assignments, remove_assignment]
