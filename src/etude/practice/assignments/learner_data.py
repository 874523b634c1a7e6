"""A learner's assignments: exported as a file, removed when the learner is erased.

What a class was assigned while the learner was in it is exported too; it is not the learner's, and
stays.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from etude.clock import Clock
from etude.files import crash_point
from etude.people.changes import mark_changed
from etude.people.learner_data import ExportFile, LearnerData
from etude.practice.assigned import ASSIGNMENTS
from etude.practice.assignments import repository
from etude.practice.assignments.records import Assignment
from etude.practice.assignments.tables import assignment
from etude.store import Database, UnitOfWork

CONTEXT: Final = "assignments"


def assignments_data(clock: Clock) -> LearnerData:
    """Return what this package registers; gateways forget an erased learner's assignments too."""

    async def erase(work: UnitOfWork, learner_key: int) -> None:
        gone = await repository.remove_of_learner(work.connection, learner_key)
        await mark_changed(work, ASSIGNMENTS, gone, clock.now())
        crash_point("practice.assignment.erased")

    return LearnerData(
        context=CONTEXT,
        tables=(assignment,),
        export_learner=_exported,
        erase_learner=erase,
    )


async def _exported(database: Database, learner_key: int) -> AsyncIterator[ExportFile]:
    async with database.read() as connection:
        found = await repository.of_learner(connection, learner_key)
    lines = msgspec.json.Encoder().encode_lines([_shown(one) for one in found])
    yield ExportFile(path="assignments.jsonl", chunks=_once(lines))


def _shown(one: Assignment) -> dict[str, Any]:
    hidden = {"assignment_key", "learner_key", "learner_id", "class_key", "device_key", "device_id"}
    return {
        name: value for name, value in msgspec.structs.asdict(one).items() if name not in hidden
    }


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
