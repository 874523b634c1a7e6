"""What single classrooms keep of a learner: exported as files, removed when the learner is erased.

Files cannot be removed within a transaction: the rows lose whose they were, and a job that is asked
for in the same transaction removes the files.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import delete, select, update

from etude.authoring.classrooms import repository
from etude.authoring.classrooms.jobs import blob_owner, ledger_subject
from etude.authoring.classrooms.records import MAKE, REMOVE, ClassroomJob, ClassroomRecord
from etude.authoring.classrooms.tables import classroom_job, classroom_record
from etude.classroom.library import ClassroomLibrary
from etude.classroom.loading import write_classroom
from etude.clock import Clock, to_us
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs import JobMissing, ask_again, cancel
from etude.people.learner_data import ExportFile, LearnerData
from etude.people.spending import ledger
from etude.people.spending.tables import model_call
from etude.store import Blobs, Database, UnitOfWork

CONTEXT: Final = "classrooms"
_CHUNK: Final = 256 << 10
_UNTIL_NOTICED: Final = timedelta(seconds=5)
"""After so long a worker has noticed that what it makes is not wanted any more."""


def classrooms_data(clock: Clock, blobs: Blobs, folder: Path) -> LearnerData:
    """Return what this package registers; `folder` is that of the classrooms."""
    library = ClassroomLibrary(folder)

    async def erase(work: UnitOfWork, learner_key: int) -> None:
        await _erase(work, blobs, learner_key, clock)
        crash_point("authoring.classroom.erased")

    async def export(database: Database, learner_key: int) -> AsyncIterator[ExportFile]:
        async with database.read() as connection:
            found = await repository.of_learner(connection, learner_key)
        lines = msgspec.json.Encoder().encode_lines([_shown(one, job) for one, job in found])
        yield ExportFile(path="classrooms.jsonl", chunks=_once(lines))
        for one, _ in found:
            for file in _files(library, one):
                yield file

    return LearnerData(
        context=CONTEXT,
        tables=(classroom_record, classroom_job, model_call),
        export_learner=export,
        erase_learner=erase,
    )


async def _erase(work: UnitOfWork, blobs: Blobs, learner_key: int, clock: Clock) -> None:
    now = clock.now()
    mine = classroom_record.c.learner_key == learner_key
    keys = select(classroom_record.c.classroom_key).where(mine)
    wanted = list((await work.connection.execute(keys)).scalars())
    jobs = select(classroom_job.c.classroom_job_key).where(classroom_job.c.classroom_key.in_(keys))
    for job_key in list((await work.connection.execute(jobs)).scalars()):
        await blobs.remove_references(work, blob_owner(job_key))
        await ledger.erase(work, ledger_subject(job_key))
        found = await repository.job_by_key(work.connection, job_key)
        if found is not None:
            await _stop(work, found, clock)
    await work.connection.execute(
        delete(classroom_job).where(classroom_job.c.classroom_key.in_(keys))
    )
    nobody = {"owner_kind": "host", "owner_key": 0, "learner_key": None, "title": ""}
    gone = update(classroom_record).where(mine)
    await work.connection.execute(gone.values(**nobody, removed_us=to_us(now)))
    asked = {str(key): {"classroom_key": key} for key in wanted}
    await ask_again(work, REMOVE, asked, run_after=now + _UNTIL_NOTICED, now=now)


async def _stop(work: UnitOfWork, job: ClassroomJob, clock: Clock) -> None:
    try:
        await cancel(work, MAKE, repository.worker_key(job), now=clock.now())
    except JobMissing:
        return


def _shown(one: ClassroomRecord, job: ClassroomJob | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "classroom_id": one.classroom_id,
        "title": one.title,
        "origin": one.origin,
        "created_at": one.created_at,
    }
    if job is not None:
        told["job"] = {"job_id": job.job_id, "status": job.status, "request": job.request}
    return told


def _files(library: ClassroomLibrary, one: ClassroomRecord) -> list[ExportFile]:
    """Return a classroom's document and files; nothing of one that is not there."""
    try:
        document = write_classroom(library.read(one.classroom_id))
    except EtudeError:
        return []
    folder = f"classrooms/{one.classroom_id}"
    found = [ExportFile(path=f"{folder}.json", chunks=_once(document))]
    for reference in library.media_hashes(one.classroom_id):
        path = library.file(one.classroom_id, reference)
        found.append(ExportFile(path=f"{folder}/{reference}", chunks=_read(path), compressed=True))
    return found


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _read(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
