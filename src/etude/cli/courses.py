"""`etude course …` on this machine's database: from material to a published course.

What takes long is a run. These commands carry it out themselves and wait for its end, whether or
not a worker runs; with `--no-wait` it is left to the worker.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer

from etude.authoring import publication
from etude.authoring.authors import Voice
from etude.authoring.classrooms.records import HOST as HOST_OWNER
from etude.authoring.courses import Courses
from etude.authoring.material import Language
from etude.authoring.records import (
    RUN,
    AuthorName,
    Course,
    CourseRequest,
    CourseStatus,
    SoundFile,
)
from etude.authoring.samples import SAMPLES, recordings, sample
from etude.cli import exits, terminal
from etude.cli.carrying_out import carrying_out, lost_job
from etude.cli.course_making import course_handlers, course_voice, courses_here
from etude.cli.course_showing import Shown, call_row, show_course, show_publication
from etude.cli.installation import settings_for
from etude.cli.local import DataOption, Local, show, with_database
from etude.cli.material_files import SOUNDS, TEXTS, files_of, text_of
from etude.courseware import catalogue
from etude.courseware.publishers import publisher_for, remote_publisher
from etude.people.records import HOST
from etude.practice.assignments.published_scenes import withdraw_unpinned
from etude.settings import Settings
from etude.store import Blobs

app = typer.Typer()

CourseArgument = Annotated[str, typer.Argument(metavar="COURSE")]
ModuleArgument = Annotated[int, typer.Argument(metavar="MODULE", help="From 0.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Work until it is done.")]
Act = Callable[[Courses, Local, Settings], Awaitable[Course]]


@app.command()
def create(  # noqa: PLR0913 - the command's options
    material: Annotated[
        list[Path] | None, typer.Argument(help="Files, or folders of NN.txt and NN.mp3.")
    ] = None,
    *,
    title: Annotated[
        str, typer.Option("--title", "--about", help="The title; for a model, what it is about.")
    ] = "",
    author: Annotated[str, typer.Option(help="outline, or llm: asks a model.")] = "outline",
    web_search: Annotated[bool, typer.Option("--web-search", help="Let llm search first.")] = False,
    pictures: Annotated[bool, typer.Option("--pictures", help="Let llm make pictures.")] = False,
    language: Annotated[str | None, typer.Option(help="en or zh-CN; else by its letters.")] = None,
    use_sample: Annotated[
        str | None, typer.Option("--sample", help="A sample that ships: " + ", ".join(SAMPLES))
    ] = None,
    narrated: Annotated[bool, typer.Option(help="Let the configured voice speak.")] = False,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Plan a course from material; its framework then waits for `etude course start`."""
    terminal.require_known(language or "en", get_args(Language), "--language")
    terminal.require_known(author, get_args(AuthorName), "--author")
    terminal.require_known(use_sample or SAMPLES[0], SAMPLES, "--sample")
    files = files_of(material or [])
    texts = [text_of(path) for path in files if path.suffix.lower() in TEXTS]
    texts += [sample(use_sample)] if use_sample else []
    recorded = {path.name: path.read_bytes() for path in files if path.suffix.lower() in SOUNDS} | (
        recordings(use_sample) if use_sample else {}
    )

    async def act(courses: Courses, here: Local, settings: Settings) -> Course:
        blobs = Blobs(settings.blobs, here.clock)
        sounds = [
            SoundFile(name=name, sha256=(await blobs.put_bytes(content)).sha256)
            for name, content in recorded.items()
        ]
        request = CourseRequest(
            requirement=title,
            materials=tuple(texts),
            sounds=tuple(sounds),
            language=language,  # type: ignore[arg-type]  # checked above
            narrated=narrated,
            web_search=web_search,
            image_generation=pictures,
        )
        return await courses.create(request, HOST_OWNER.name, author)  # type: ignore[arg-type]  # checked above

    _act(act, data, wait=wait, as_json=as_json)


@app.command("list")
def list_courses(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the newest courses."""
    settings = settings_for("course", data)

    async def act(here: Local) -> list[dict[str, Any]]:
        courses = courses_here(settings, here.database, here.clock, None)
        return [
            {"course_id": one.course_id, "status": one.status, "title": one.title}
            for one in await courses.listed()
        ]

    show(with_database("course", data, act), as_json=as_json)


@app.command()
def status(
    course: CourseArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Show where a course stands: modules, sentences without sound, what is published."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        return await courses.get(course)

    _act(act, data, wait=False, as_json=as_json)


@app.command()
def calls(
    course: CourseArgument,
    *,
    answers: Annotated[bool, typer.Option("--answers", help="With what was answered.")] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """List what models were asked for a course, with tokens and cost."""
    settings = settings_for("course", data)

    async def act(here: Local) -> list[dict[str, Any]]:
        courses = courses_here(settings, here.database, here.clock, None)
        found = await courses.calls(course, answers=answers)
        return [call_row(one, answers=answers) for one in found]

    show(with_database("course", data, act), as_json=as_json)


@app.command()
def framework(
    course: CourseArgument,
    *,
    edited: Annotated[
        Path | None, typer.Option("--put", help="Replace it by this file (JSON).")
    ] = None,
    revision: Annotated[int | None, typer.Option(help="Which one the file was made of.")] = None,
    data: DataOption = None,
) -> None:
    """Print the framework as JSON, or replace it while it waits for confirmation."""
    settings = settings_for("course", data)

    async def act(here: Local) -> Course:
        courses = courses_here(settings, here.database, here.clock, None)
        found = await courses.get(course)
        if edited is None:
            return found
        value = msgspec.json.decode(text_of(edited).text)
        known = found.framework_revision if revision is None else revision
        return await courses.edit(course, known, value)

    found = with_database("course", data, act)
    terminal.print_json(
        {"revision": found.framework_revision, "framework": msgspec.to_builtins(found.framework)}
    )


@app.command()
def start(
    course: CourseArgument,
    *,
    without_audio: Annotated[
        bool, typer.Option("--without-audio", help="Leave out sentences that have no sound.")
    ] = False,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Confirm the framework and make the modules, one after the other."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        return await courses.start(course, without_audio=without_audio)

    _act(act, data, wait=wait, as_json=as_json)


@app.command()
def resume(
    course: CourseArgument,
    *,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Go on where a failure or cancellation stopped; what succeeded stays."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        return await courses.resume(course)

    _act(act, data, wait=wait, as_json=as_json)


@app.command()
def cancel(
    course: CourseArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Stop what is being done; modules that succeeded stay."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        return await courses.cancel(course)

    _act(act, data, wait=False, as_json=as_json)


@app.command()
def regenerate(
    course: CourseArgument,
    module: Annotated[int | None, typer.Argument(metavar="[MODULE]", help="From 0.")] = None,
    *,
    following: Annotated[
        bool, typer.Option("--following", help="And every module after it.")
    ] = False,
    wait: WaitOption = True,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Make the framework anew; with MODULE: that module, then those that have not succeeded."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        if module is None:
            return await courses.regenerate_framework(course)
        again = courses.regenerate_from if following else courses.retry
        return await again(course, module)

    _act(act, data, wait=wait, as_json=as_json)


@app.command("accept-source")
def accept_source(
    course: CourseArgument,
    module: ModuleArgument,
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Take the classroom of a module as it is now, although it was edited."""

    async def act(courses: Courses, _here: Local, _settings: Settings) -> Course:
        return await courses.accept_source(course, module)

    _act(act, data, wait=False, as_json=as_json)


@app.command()
def publish(
    course: CourseArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Publish a course: every module frozen and pinned; exit code 1 names what keeps it."""
    settings = settings_for("course", data)

    async def act(here: Local) -> dict[str, Any]:
        courses = courses_here(settings, here.database, here.clock, None)
        publisher = publisher_for(settings, here.database, here.clock)
        made = await publication.publish(courses, publisher, course, HOST)
        pins = [msgspec.to_builtins(one) for one in made.manifest.modules]
        version = made.manifest.version
        return {"course_id": course, "version": version, "new": made.new, "modules": pins}

    told = with_database("course", data, act)
    if as_json:
        terminal.print_json(told)
    else:
        show_publication(told["course_id"], told["version"], new=told["new"])


@app.command()
def withdraw(
    course: CourseArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1)],
    *,
    reason: Annotated[str, typer.Option(help="Why; learners are told.")],
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Take a published version of a course away from everybody; it cannot be undone."""
    settings = settings_for("course", data)

    async def act(here: Local) -> dict[str, Any]:
        remote = remote_publisher(settings, here.database, here.clock)
        now = here.clock.now()
        if remote is not None:
            await remote.withdraw(course, version, reason, actor=HOST)
        else:
            async with here.database.transaction() as work:
                await catalogue.withdraw(work, course, version, reason, actor=HOST, now=now)
                await withdraw_unpinned(work, course, version, actor=HOST, now=now)
        return {"course_id": course, "version": version, "withdrawn": True}

    show(with_database("course", data, act), as_json=as_json)


def _act(act: Act, data: Path | None, *, wait: bool, as_json: bool) -> None:
    """Do something to a course, carry out its run if asked to, and show where it stands."""
    settings = settings_for("course", data)
    with course_voice(settings) as voice:

        async def whole(here: Local) -> Shown:
            courses = courses_here(settings, here.database, here.clock, voice)
            course = await act(courses, here, settings)
            if wait:
                course = await _finished(courses, course, here, settings, voice)
            target = publisher_for(settings, here.database, here.clock).target
            standing = await publication.standing(courses, course, target)
            silent, account = await courses.silent(course), await courses.account(course)
            return Shown(course, silent, standing, account)

        shown = with_database("course", data, whole)
    show_course(shown, as_json=as_json)
    if shown.course.status is CourseStatus.FAILED:
        raise typer.Exit(exits.REFUSED)


async def _finished(
    courses: Courses, course: Course, here: Local, settings: Settings, voice: Voice | None
) -> Course:
    """Carry out what there is to do until the course's run is over.

    Raises:
        GiveUp: it never will be; why is in the log, and the next command ends it.
    """
    handlers = course_handlers(settings, here.database, here.clock, voice)
    async with carrying_out(here.database, handlers) as moment:
        while (run := course.active) is not None:
            await moment()
            lost = await lost_job(here.database, RUN, run.run_id)
            course = await courses.get(course.course_id)  # behind that look: it may have ended
            if lost is not None and course.active == run:
                raise lost
    return course
