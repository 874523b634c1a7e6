"""Classrooms of modules that came to nothing: they leave the disk, whatever is killed meanwhile.

A module has its classroom's id before the classroom is made. Whoever takes the id from it asks, in
the same transaction, for a job that removes the classroom: what no module needs is never forgotten.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from etude.authoring import repository
from etude.authoring.records import Course, Module, ModuleStatus
from etude.classroom.library import ClassroomLibrary
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs import Job, ask_again
from etude.store import Database, UnitOfWork

UNWANTED: Final = "authoring.module_removal"
"""The kind of job that removes a classroom; its key is the classroom's id."""
UNTIL_NOTICED: Final = timedelta(minutes=1)
"""A worker that has not noticed yet that its run is over may still place a classroom."""
log: Final = structlog.get_logger("etude.authoring")


async def ask_removal(work: UnitOfWork, modules: Iterable[Module], now: datetime) -> None:
    """Ask for the removal of what was made for modules that have not succeeded.

    Nobody may need these classrooms once `work` is committed: the modules are not being made any
    more, or lose the ids of their classrooms.
    """
    ids = [one.classroom_id for one in modules if one.status is not ModuleStatus.SUCCEEDED]
    asked: dict[str, dict[str, int]] = {one: {} for one in ids if one is not None}
    await ask_again(work, UNWANTED, asked, run_after=now + UNTIL_NOTICED, now=now)


async def start_over(
    work: UnitOfWork, course: Course, indexes: Sequence[int], now: datetime
) -> None:
    """Let modules wait again; classrooms that succeeded stay on disk, nobody refers to them."""
    await ask_removal(work, [course.modules[at] for at in indexes], now)
    await repository.reset_modules(work, course.course_key, indexes)


async def remove_unwanted(database: Database, library: ClassroomLibrary, classroom_id: str) -> None:
    """Remove a classroom unless a module has it, or is being made in it.

    An id that no module needs is never needed again: each attempt anew has another one.
    """
    async with database.read() as connection:
        needed = await repository.needs_classroom(connection, classroom_id)
    if not needed:
        await asyncio.to_thread(library.remove, classroom_id)
        crash_point("authoring.module.removed")


async def remove_at_once(database: Database, library: ClassroomLibrary, classroom_id: str) -> None:
    """Remove a classroom if that can be done now; the job that was asked for comes back to it."""
    with contextlib.suppress(EtudeError):
        return await remove_unwanted(database, library, classroom_id)
    log.warning("a classroom is removed later", action="authoring.removal")
    return None


class ModuleRemoval:
    """The handler of `authoring.module_removal` jobs."""

    def __init__(self, database: Database, library: ClassroomLibrary) -> None:
        """Remove from `library`."""
        self._database = database
        self._library = library

    async def __call__(self, job: Job) -> None:
        """Remove the classroom that the job names; it may be removed already."""
        await remove_unwanted(self._database, self._library, job.key)
