"""`etude classroom generate …`: one lesson of a text, outline first, on this machine's database.

What takes long is a job. `generate` and `confirm` carry it out themselves and wait for its end,
whether or not a worker runs; with `--no-wait` it is left to the worker.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_args

import msgspec
import typer

from etude.authoring.authors import LessonAuthor, Voice
from etude.authoring.classrooms.composition import (
    classroom_handlers,
    lesson_authors,
    open_classroom_jobs,
)
from etude.authoring.classrooms.jobs import ClassroomJobs
from etude.authoring.classrooms.records import (
    HOST,
    ClassroomJob,
    JobStatus,
    LessonOutline,
    LessonRequest,
)
from etude.authoring.errors import (
    LessonOutlineInvalidError,
    LessonOutlineMistakeError,
)
from etude.authoring.material import Language
from etude.authoring.model.configured import model_author
from etude.authoring.records import AuthorName, SoundFile
from etude.classroom.loading import read_object
from etude.cli import exits, terminal
from etude.cli.carrying_out import carrying_out
from etude.cli.classroom_group import app
from etude.cli.course_making import course_voice
from etude.cli.installation import settings_for
from etude.cli.local import DataOption, Local, every_page, show, with_database
from etude.cli.material_files import SOUNDS, TEXTS, bytes_of, files_of, naming, text_of
from etude.clock import RandomIds
from etude.settings import Settings
from etude.store import Blobs

_CHECKED: Final = "checked"
_ZIP: Final = ".zip"
Result = TypeVar("Result")
JobArgument = Annotated[str, typer.Argument(metavar="JOB")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Work until it is done.")]


@app.command()
def generate(  # noqa: PLR0913 - the command's options
    material: Annotated[
        list[Path] | None, typer.Argument(help="Files, or folders of NN.txt, NN.mp3.")
    ] = None,
    *,
    title: Annotated[
        str, typer.Option("--title", "--about", help="The title; for a model, what it is about.")
    ] = "",
    author: Annotated[str, typer.Option(help="outline, or llm: asks a model.")] = "outline",
    language: Annotated[str | None, typer.Option(help="en or zh-CN; else by its letters.")] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Several activities instead of one.")
    ] = False,
    task: Annotated[bool, typer.Option("--task", help="Built around steps in an order.")] = False,
    narrated: Annotated[bool, typer.Option(help="Let the configured voice speak.")] = False,
    confirm_at_once: Annotated[
        bool, typer.Option("--yes", help="Confirm the outline as it is.")
    ] = False,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Make one lesson; of material, its outline then waits for `etude classroom confirm`."""
    terminal.require_known(author, get_args(AuthorName), "--author")
    terminal.require_known(language or "en", get_args(Language), "--language")
    files = files_of(material or [])
    texts = tuple(text_of(path) for path in files if path.suffix.lower() in TEXTS)

    async def act(jobs: ClassroomJobs, here: Local, settings: Settings) -> ClassroomJob:
        blobs = Blobs(settings.blobs, here.clock)
        recordings = [path for path in files if path.suffix.lower() in SOUNDS]
        sounds = [
            SoundFile(name=path.name, sha256=(await blobs.put_bytes(path.read_bytes())).sha256)
            for path in recordings
        ]
        request = LessonRequest(
            requirement=title,
            materials=texts,
            sounds=tuple(sounds),
            language=language,  # type: ignore[arg-type]  # checked above
            narrated=narrated,
            interactive_mode=interactive,
            task_engine_mode=task,
        )
        return await jobs.create(request, HOST, author)  # type: ignore[arg-type]  # checked above

    _act(act, data, wait=wait, as_json=as_json, confirm_at_once=confirm_at_once)


@app.command("jobs")
def list_jobs(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the jobs that make classrooms, the oldest first."""

    async def act(jobs: ClassroomJobs, _here: Local, _settings: Settings) -> list[dict[str, Any]]:
        found = await every_page(lambda at, most: jobs.listed(HOST, cursor=at, limit=most))
        return [_told(one) for one in found]

    show(_with_jobs(act, data), as_json=as_json)


@app.command()
def outline(
    job: JobArgument,
    *,
    edited: Annotated[
        Path | None, typer.Option("--put", help="Replace it by this file (JSON).")
    ] = None,
    data: DataOption = None,
) -> None:
    """Print the outline of a job as JSON, or replace it while it waits for confirmation."""

    async def act(jobs: ClassroomJobs, _here: Local, _settings: Settings) -> ClassroomJob:
        found = await jobs.get(HOST, job)
        if edited is None:
            return found
        value, revision = _outline_of(edited, found.outline_revision)
        return await jobs.edit_outline(HOST, job, revision, value)

    found = _with_jobs(act, data)
    told = {"revision": found.outline_revision, "outline": msgspec.to_builtins(found.outline)}
    terminal.print_json(told)


@app.command()
def confirm(
    job: JobArgument,
    *,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Confirm the outline of a job and make the classroom."""

    async def act(jobs: ClassroomJobs, _here: Local, _settings: Settings) -> ClassroomJob:
        return await jobs.confirm(HOST, job)

    _act(act, data, wait=wait, as_json=as_json)


@app.command()
def cancel(
    job: JobArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Stop a job; nothing of its classroom stays."""

    async def act(jobs: ClassroomJobs, _here: Local, _settings: Settings) -> ClassroomJob:
        return await jobs.cancel(HOST, job)

    _act(act, data, wait=False, as_json=as_json)


def _act(
    act: Callable[[ClassroomJobs, Local, Settings], Awaitable[ClassroomJob]],
    data: Path | None,
    *,
    wait: bool,
    as_json: bool,
    confirm_at_once: bool = False,
) -> None:
    """Do something to a job, carry it out if asked to, and show where it stands."""
    settings = settings_for("classroom", data)
    with course_voice(settings) as voice:

        async def whole(here: Local) -> ClassroomJob:
            blobs = Blobs(settings.blobs, here.clock)
            authors = _authors(settings, here, blobs, voice)
            made_of = (here.database, blobs, here.clock, RandomIds(), settings, authors)
            jobs = open_classroom_jobs(*made_of)
            job = await act(jobs, here, settings)
            if not wait:
                return job
            handlers = classroom_handlers(*made_of)
            async with carrying_out(here.database, handlers) as moment:
                return await _finished(jobs, job, moment, confirm_at_once=confirm_at_once)

        job = with_database("classroom", data, whole)
    _show_job(job, as_json=as_json)
    if job.status is JobStatus.FAILED:
        raise typer.Exit(exits.REFUSED)


async def _finished(
    jobs: ClassroomJobs,
    job: ClassroomJob,
    moment: Callable[[], Awaitable[None]],
    *,
    confirm_at_once: bool,
) -> ClassroomJob:
    while not job.status.done:
        if job.status is JobStatus.WAITING:
            if not confirm_at_once:
                break
            job = await jobs.confirm(HOST, job.job_id, job.outline_revision)
        await moment()
        job = await jobs.get(HOST, job.job_id)
    return job


def _authors(
    settings: Settings, here: Local, blobs: Blobs, voice: Voice | None
) -> Mapping[str, LessonAuthor]:
    model = model_author(settings, here.database, blobs, here.clock, voice)
    return lesson_authors(blobs, voice, model)


def _with_jobs(
    act: Callable[[ClassroomJobs, Local, Settings], Awaitable[Result]], data: Path | None
) -> Result:
    settings = settings_for("classroom", data)

    async def whole(here: Local) -> Result:
        blobs = Blobs(settings.blobs, here.clock)
        authors = _authors(settings, here, blobs, None)
        jobs = open_classroom_jobs(here.database, blobs, here.clock, RandomIds(), settings, authors)
        return await act(jobs, here, settings)

    return with_database("classroom", data, whole)


def _told(job: ClassroomJob) -> dict[str, Any]:
    made = job.status is JobStatus.SUCCEEDED
    return {
        "job_id": job.job_id,
        "status": job.status,
        "step": job.step,
        "progress": job.progress,
        "classroom_id": job.classroom_id if made else None,
        "error_code": job.error_code,
    }


def _show_job(job: ClassroomJob, *, as_json: bool) -> None:
    if as_json:
        outline = None if job.outline is None else msgspec.to_builtins(job.outline)
        terminal.print_json(_told(job) | {"outline": outline})
        return
    show(_told(job), as_json=False)
    if job.status is JobStatus.WAITING and job.outline is not None:
        terminal.print_text(job.outline.title)
        for number, scene in enumerate(job.outline.scenes, 1):
            terminal.print_text(f"{number:>4}  {scene.type:<12} {scene.title}\t{scene.source}")
        terminal.say("cli.classroom.confirm", job=job.job_id)


def _outline_of(path: Path, known: int) -> tuple[LessonOutline, int]:
    """Return the outline of a file: as `outline` prints it, with its revision, or alone."""
    with naming(path):
        value = read_object(bytes_of(path))
    revision, inner = value.get("revision"), value.get("outline", value)
    try:
        outline = msgspec.convert(inner, LessonOutline)
    except msgspec.ValidationError as error:
        mistake = LessonOutlineMistakeError(path="/", rule="shape", detail=str(error)[:200])
        raise LessonOutlineInvalidError(mistake, mistakes=1) from error
    return outline, revision if isinstance(revision, int) else known
