"""Making and withdrawing assignments: audited, and marked for the gateways in the same transaction.

Several may count at once; `etude.practice.assigned.current` says which one is meant. So to assign
something else is to assign it: nothing has to be withdrawn before.
"""

from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.changes import mark_changed
from etude.people.class_staff import require_own
from etude.people.classes import get_active_class, get_class
from etude.people.devices import get_device
from etude.people.learners import get_learner
from etude.people.records import Actor, Principal, Subject
from etude.people.times import check_time
from etude.practice.assigned import ASSIGNMENTS
from etude.practice.assignments import repository
from etude.practice.assignments.errors import (
    AssignmentHolderError,
    AssignmentIntervalError,
    AssignmentRatioError,
)
from etude.practice.assignments.records import Assignment, NewAssignment
from etude.practice.records import LISTEN_RATIO_MAX, LISTEN_RATIO_MIN
from etude.store import UnitOfWork


async def assign(
    work: UnitOfWork,
    wanted: NewAssignment,
    *,
    assignment_id: str,
    actor: Actor | Principal,
    now: datetime,
) -> Assignment:
    """Store an assignment under a fresh random id (from `Ids.new`).

    Whether there is such a lesson is `require_lesson`'s to say, before the transaction.

    Raises:
        AssignmentHolderError: not exactly one of learner, class and device is named.
        AssignmentIntervalError, TimeOutOfRangeError: the time is empty, or no usable time.
        AssignmentRatioError: no follow-read takes that ratio.
        LearnerUnknownError, LearnerErasedError, DeviceUnknownError: as they say.
        ClassUnknownError, ClassArchivedError: as they say.
        ClassNotYoursError: the actor is a teacher of other classes.
    """
    row = _row(wanted, assignment_id, now)
    holder = await _holder(work, wanted, actor)
    row |= {f"{holder[0]}_key": holder[1]}
    key = await repository.add(work.connection, row)
    crash_point("practice.assignment.stored")
    detail = {"assignment": key}
    await audit.record(work, actor, "assignment.made", subject=holder, now=now, detail=detail)
    await mark_changed(work, ASSIGNMENTS, [key], now)
    return await repository.get(work.connection, assignment_id)


async def withdraw(
    work: UnitOfWork, assignment_id: str, *, actor: Actor | Principal, now: datetime
) -> Assignment:
    """Let an assignment count no more; a lesson that runs goes on. Twice is once.

    Raises `AssignmentUnknownError`.
    """
    found = await repository.get(work.connection, assignment_id, lock=True)
    if found.withdrawn_at is not None:
        return found
    await repository.withdraw(work.connection, found.assignment_key, to_us(now))
    crash_point("practice.assignment.withdrawn")
    detail = {"assignment": found.assignment_key}
    await audit.record(
        work, actor, "assignment.withdrawn", subject=subject_of(found), now=now, detail=detail
    )
    await mark_changed(work, ASSIGNMENTS, [found.assignment_key], now)
    return await repository.get(work.connection, assignment_id)


async def require_own_assignment(
    connection: AsyncConnection, assignment_id: str, actor: Actor | Principal
) -> None:
    """Raise `ClassNotYoursError` if it is of a class that the actor may not assign to.

    Raises `AssignmentUnknownError`.
    """
    found = await repository.get(connection, assignment_id)
    if found.class_id is not None:
        await require_own(connection, actor, await get_class(connection, found.class_id))


def subject_of(found: Assignment) -> Subject:
    """Return whose an assignment is, for the audit log."""
    if found.learner_key is not None:
        return ("learner", found.learner_key)
    if found.class_key is not None:
        return ("class", found.class_key)
    return ("device", found.device_key or 0)


async def _holder(work: UnitOfWork, wanted: NewAssignment, actor: Actor | Principal) -> Subject:
    """Find who it is for; a learner's row is locked, so that no erasure passes it by."""
    named = (wanted.learner_id, wanted.class_id, wanted.device_id)
    if sum(each is not None for each in named) != 1:
        raise AssignmentHolderError
    if wanted.learner_id is not None:
        learner = await get_learner(work.connection, wanted.learner_id, lock=True)
        return ("learner", learner.learner_key)
    if wanted.class_id is not None:
        of_class = await get_active_class(work.connection, wanted.class_id)
        await require_own(work.connection, actor, of_class)
        return ("class", of_class.class_key)
    device = await get_device(work.connection, wanted.device_id or "")
    return ("device", device.device_key)


def _row(wanted: NewAssignment, assignment_id: str, now: datetime) -> dict[str, Any]:
    starts_at = check_time(wanted.starts_at or now)
    ends_at = None if wanted.ends_at is None else check_time(wanted.ends_at)
    if ends_at is not None and ends_at <= starts_at:
        raise AssignmentIntervalError(starts_at=starts_at.isoformat(), ends_at=ends_at.isoformat())
    ratio, pin = wanted.listen_ratio, wanted.courseware
    if ratio is not None and not LISTEN_RATIO_MIN <= ratio <= LISTEN_RATIO_MAX:
        raise AssignmentRatioError(lowest=LISTEN_RATIO_MIN, highest=LISTEN_RATIO_MAX)
    return {
        "assignment_id": assignment_id,
        "app_id": wanted.lesson.app_id,
        "task_id": wanted.lesson.task_id,
        "lesson_id": wanted.lesson.lesson_id,
        "listen_ratio": ratio,
        "courseware_id": pin and pin.courseware_id,
        "courseware_version": pin and pin.version,
        "content_hash": pin and pin.content_hash,
        "scene_id": pin and pin.scene_id,
        "starts_us": to_us(starts_at),
        "ends_us": None if ends_at is None else to_us(ends_at),
        "created_us": to_us(now),
    }
