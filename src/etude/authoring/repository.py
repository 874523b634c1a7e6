"""Rows of courses, read and written. Who may do what when is `etude.authoring.courses`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, and_, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.authoring.errors import CourseRunActiveError, CourseUnknownError
from etude.authoring.framework import CourseFramework, read_framework
from etude.authoring.records import (
    Course,
    CourseRequest,
    CourseStatus,
    Module,
    ModuleStatus,
    Problem,
    Run,
    RunState,
)
from etude.authoring.tables import course, course_module, course_run
from etude.classroom.digest import OutputDigest
from etude.clock import from_us, to_us
from etude.courseware.gates import ContinuityRef
from etude.people.records import Actor
from etude.store import UnitOfWork

_encode = msgspec.json.encode


async def add(work: UnitOfWork, new: Course, now: datetime) -> int:
    """Insert a course; return its key."""
    now_us = to_us(now)
    row = {
        "course_id": new.course_id, "owner": new.owner, "author": new.author,
        "status": new.status, "title": new.title, "request": _encode(new.request),
        "framework_revision": 0, "without_audio": False, "created_us": now_us,
        "updated_us": now_us,
    }  # fmt: skip
    made = await work.connection.execute(insert(course).values(row).returning(course.c.course_key))
    return int(made.scalar_one())


async def load(connection: AsyncConnection, course_id: str) -> Course:
    """Return a course with its modules and its run.

    Raises:
        CourseUnknownError: there is none of this id.
    """
    row = (await connection.execute(select(course).where(course.c.course_id == course_id))).first()
    if row is None:
        raise CourseUnknownError(course=course_id[:64])
    return await _whole(connection, row)


async def load_by_key(connection: AsyncConnection, course_key: int) -> Course | None:
    """Return a course by its key; None if there is none."""
    wanted = select(course).where(course.c.course_key == course_key)
    row = (await connection.execute(wanted)).first()
    return None if row is None else await _whole(connection, row)


async def listed(connection: AsyncConnection, most: int = 500) -> list[Course]:
    """Return the newest courses, without modules."""
    wanted = select(course).order_by(course.c.course_key.desc()).limit(most)
    return [_course(row) for row in await connection.execute(wanted)]


async def set_course(work: UnitOfWork, course_key: int, now: datetime, **values: Any) -> None:  # noqa: ANN401 - columns
    """Change columns of a course."""
    changed = update(course).where(course.c.course_key == course_key)
    await work.connection.execute(changed.values(**values, updated_us=to_us(now)))


async def set_framework(
    work: UnitOfWork, found: Course, framework: CourseFramework, now: datetime
) -> None:
    """Store a framework as a new revision; its modules wait, whatever there was before."""
    await set_course(
        work,
        found.course_key,
        now,
        framework=_encode(framework),
        framework_revision=course.c.framework_revision + 1,
        title=framework.course_title,
        status=CourseStatus.FRAMEWORK_READY,
        confirmed_us=None,
        error_code=None,
    )
    mine = course_module.c.course_key == found.course_key
    await work.connection.execute(delete(course_module).where(mine))
    rows = [
        {
            "course_key": found.course_key,
            "module_index": index,
            "module_id": module.module_id,
            "status": ModuleStatus.PENDING,
        }
        for index, module in enumerate(framework.modules)
    ]
    await work.connection.execute(insert(course_module), rows)


async def set_module(work: UnitOfWork, course_key: int, index: int, **values: Any) -> None:  # noqa: ANN401 - columns
    """Change columns of a module; structs become JSON."""
    plain = {
        name: value if isinstance(value, str | int | bytes | None) else _encode(value)
        for name, value in values.items()
    }
    which = and_(course_module.c.course_key == course_key, course_module.c.module_index == index)
    await work.connection.execute(update(course_module).where(which).values(**plain))


async def reset_modules(work: UnitOfWork, course_key: int, indexes: Sequence[int]) -> None:
    """Let modules wait again, without classrooms; see `unwanted.start_over`."""
    which = and_(
        course_module.c.course_key == course_key, course_module.c.module_index.in_(indexes)
    )
    waiting = {"status": ModuleStatus.PENDING, "classroom_id": None, "prompt": None}
    empty = {"requirement_sha256": None, "digest": None, "refs": None, "error_code": None}
    await work.connection.execute(update(course_module).where(which).values(**waiting, **empty))


async def needs_classroom(connection: AsyncConnection, classroom_id: str) -> bool:
    """Whether a module has a classroom, or is being made in it."""
    one = course_module.c
    needing = one.status.in_((ModuleStatus.RUNNING, ModuleStatus.SUCCEEDED))
    wanted = exists().where(one.classroom_id == classroom_id, needing)
    return bool(await connection.scalar(select(wanted)))


async def begin_run(
    work: UnitOfWork,
    course_key: int,
    run_id: str,
    kind: str,
    now: datetime,
    by: Actor | None = None,
) -> int:
    """Insert the one active run of a course, of whoever it is noted of; return its key.

    Raises:
        CourseRunActiveError: there is one.
    """
    row = {
        "run_id": run_id, "course_key": course_key, "active_course": course_key, "kind": kind,
        "state": RunState.ACTIVE, "started_us": to_us(now),
        "actor_kind": by and by.kind, "actor_key": by and by.key,
        "actor_token_key": by and by.token_key,
    }  # fmt: skip
    try:
        async with work.connection.begin_nested():
            made = insert(course_run).values(row).returning(course_run.c.run_key)
            return int((await work.connection.execute(made)).scalar_one())
    except IntegrityError as error:
        raise CourseRunActiveError(kind=kind) from error


async def end_run(
    work: UnitOfWork,
    run_key: int,
    state: RunState,
    now: datetime,
    error_code: str | None = None,
    problems: Sequence[Problem] = (),
) -> bool:
    """End a run that is active; return whether it was."""
    active = and_(course_run.c.run_key == run_key, course_run.c.state == RunState.ACTIVE)
    ended = update(course_run).where(active)
    values = {
        "state": state,
        "active_course": None,
        "ended_us": to_us(now),
        "problems": _encode(problems) if problems else None,
    }
    done = await work.connection.execute(ended.values(**values, error_code=error_code))
    return done.rowcount == 1


async def run_state(connection: AsyncConnection, run_key: int) -> RunState | None:
    """Return where a run stands."""
    wanted = select(course_run.c.state).where(course_run.c.run_key == run_key)
    found = (await connection.execute(wanted)).scalar_one_or_none()
    return None if found is None else RunState(found)


async def _whole(connection: AsyncConnection, row: Row[Any]) -> Course:
    of_course = course_module.c.course_key == row.course_key
    ordered = select(course_module).where(of_course).order_by(course_module.c.module_index)
    modules = tuple(_module(one) for one in await connection.execute(ordered))
    latest = (
        select(course_run)
        .where(course_run.c.course_key == row.course_key)
        .order_by(course_run.c.run_key.desc())
        .limit(1)
    )
    run = (await connection.execute(latest)).first()
    return msgspec.structs.replace(
        _course(row), modules=modules, run=None if run is None else _run(run)
    )


def _course(row: Row[Any]) -> Course:
    return Course(
        course_key=row.course_key,
        course_id=row.course_id,
        owner=row.owner,
        author=row.author,
        status=CourseStatus(row.status),
        title=row.title,
        request=msgspec.json.decode(row.request, type=CourseRequest),
        framework=None if row.framework is None else read_framework(row.framework),
        framework_revision=row.framework_revision,
        confirmed=row.confirmed_us is not None,
        without_audio=row.without_audio,
        error_code=row.error_code,
        created_at=from_us(row.created_us),
    )


def _module(row: Row[Any]) -> Module:
    return Module(
        index=row.module_index,
        module_id=row.module_id,
        status=ModuleStatus(row.status),
        classroom_id=row.classroom_id,
        prompt=None if row.prompt is None else row.prompt.decode(),
        requirement_sha256=row.requirement_sha256,
        digest=None if row.digest is None else msgspec.json.decode(row.digest, type=OutputDigest),
        refs=None
        if row.refs is None
        else msgspec.json.decode(row.refs, type=tuple[ContinuityRef, ...]),
        error_code=row.error_code,
    )


def _run(row: Row[Any]) -> Run:
    return Run(
        run_key=row.run_key,
        run_id=row.run_id,
        course_key=row.course_key,
        kind=row.kind,
        state=RunState(row.state),
        started_at=from_us(row.started_us),
        error_code=row.error_code,
        problems=msgspec.json.decode(row.problems, type=tuple[Problem, ...])
        if row.problems
        else (),
        by=None
        if row.actor_kind is None
        else Actor(kind=row.actor_kind, key=row.actor_key, token_key=row.actor_token_key),
    )
