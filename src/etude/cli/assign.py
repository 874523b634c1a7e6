"""`etude assign lesson|course|list|withdraw` on this machine's database."""

from datetime import datetime
from typing import Annotated, Any

import typer

from etude.cli import terminal
from etude.cli.installation import settings_for
from etude.cli.local import (
    DataOption,
    Local,
    TimeOption,
    every_page,
    parse_time,
    show,
    shown,
    with_database,
)
from etude.clock import RandomIds
from etude.examiner.repository import keep_rubric
from etude.people import audit
from etude.people.records import HOST
from etude.practice.apps import installed_apps
from etude.practice.assignments.assigning import assign, subject_of, withdraw
from etude.practice.assignments.lesson_addresses import parse_address, require_lesson
from etude.practice.assignments.published_scenes import (
    CourseWish,
    find_in_course,
    require_standing,
)
from etude.practice.assignments.records import Assignment, NewAssignment
from etude.practice.assignments.repository import list_assignments
from etude.practice.tasks import IDENTIFIER
from etude.rubric.library import rubric_json

app = typer.Typer(no_args_is_help=True)

LearnerOption = Annotated[
    str | None,
    typer.Option("--learner", metavar="ID", help="For this learner, on whichever device."),
]
ClassOption = Annotated[
    str | None,
    typer.Option("--class", metavar="ID", help="For whoever is in this class then."),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="ID", help="For this device, whoever has it.")
]
SinceOption = Annotated[
    datetime | None,
    typer.Option("--from", parser=parse_time, metavar="TIME", help="Else now."),
]
RatioOption = Annotated[
    float | None,
    typer.Option("--ratio", help="Window to clip, 1.2 to 1.5; else as lesson or task say."),
]


@app.command()
def lesson(  # noqa: PLR0913 - options of a command
    path: Annotated[
        str,
        typer.Argument(metavar="APP/TASK/LESSON", help="english_learning/shadowing/greetings"),
    ],
    *,
    learner: LearnerOption = None,
    class_id: ClassOption = None,
    device: DeviceOption = None,
    since: SinceOption = None,
    until: TimeOption = None,
    ratio: RatioOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Assign a lesson to a learner, a class or a device; prints the assignment's id.

    The toy plays it when its task, or "start practice", is asked for next. What was assigned
    before stays and counts no more, while this one does. A lesson that runs goes on.
    """
    wanted = NewAssignment(
        lesson=parse_address(path),
        learner_id=learner,
        class_id=class_id,
        device_id=device,
        starts_at=since,
        ends_at=until,
        listen_ratio=ratio,
    )
    settings = settings_for("assign lesson", data)

    async def act(here: Local) -> dict[str, Any]:
        require_lesson(installed_apps(settings.apps), settings.lessons, wanted.lesson)
        async with here.database.transaction() as work:
            made = await assign(
                work, wanted, assignment_id=RandomIds().new(), actor=HOST, now=here.now()
            )
        return _shown(made, as_json=as_json)

    show(with_database("assign lesson", data, act), as_json=as_json)


@app.command()
def course(  # noqa: PLR0913 - options of a command
    course_id: Annotated[str, typer.Argument(metavar="COURSE", help="A published course's id.")],
    *,
    module: Annotated[int, typer.Option(help="Which module, from 0.", min=0)],
    scene: Annotated[
        str | None, typer.Option(metavar="ID", help="Which practice scene; else the only one.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(help="Of the course; else the newest.", min=1)
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="APP/TASK", help="In which; else the first of its language."),
    ] = None,
    learner: LearnerOption = None,
    class_id: ClassOption = None,
    device: DeviceOption = None,
    since: SinceOption = None,
    until: TimeOption = None,
    ratio: RatioOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Assign what a module of a published course practises; prints the assignment's id.

    It stays at the version that it has now, whatever is published later.
    """
    settings = settings_for("assign course", data)
    wish = CourseWish(course_id=course_id, module=module, version=version, scene_id=scene)
    named = _task(task)

    async def act(here: Local) -> dict[str, Any]:
        found = await find_in_course(here.database, here.blobs, wish, settings.course_manifests)
        wanted = NewAssignment(
            lesson=found.address(installed_apps(settings.apps), named),
            courseware=found.pin,
            learner_id=learner,
            class_id=class_id,
            device_id=device,
            starts_at=since,
            ends_at=until,
            listen_ratio=ratio,
        )
        async with here.database.transaction() as work:
            await require_standing(work, found.pin)
            await keep_rubric(work, rubric_json(found.scene.rubric), here.now())
            made = await assign(
                work, wanted, assignment_id=RandomIds().new(), actor=HOST, now=here.now()
            )
        return _shown(made, as_json=as_json)

    show(with_database("assign course", data, act), as_json=as_json)


@app.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the assignments, past and withdrawn ones too; each learner shown is audited."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.transaction() as work:
            found = await every_page(
                lambda cursor, limit: list_assignments(work.connection, cursor=cursor, limit=limit)
            )
            learners = {subject_of(each) for each in found if each.learner_key is not None}
            await audit.record_all(
                work, HOST, "assignment.listed", subjects=sorted(learners), now=here.now()
            )
        return [_shown(each, as_json=as_json) for each in found]

    show(with_database("assign list", data, act), as_json=as_json)


@app.command("withdraw")
def withdraw_one(
    assignment_id: Annotated[str, typer.Argument(metavar="ID", help="The assignment's id.")],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Let an assignment count no more; a lesson that runs goes on."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            found = await withdraw(work, assignment_id, actor=HOST, now=here.now())
            return _shown(found, as_json=as_json)

    show(with_database("assign withdraw", data, act), as_json=as_json)


def _shown(found: Assignment, *, as_json: bool) -> dict[str, Any]:
    """Return what a person sees: a line has the pin as `courseware@version/scene`."""
    fields, pin = shown(found), found.courseware
    if pin is not None and not as_json:
        fields["courseware"] = f"{pin.courseware_id}@{pin.version}/{pin.scene_id}"
    return fields


def _task(named: str | None) -> tuple[str, str] | None:
    if named is None:
        return None
    app_id, _, task_id = named.partition("/")
    if not (IDENTIFIER.fullmatch(app_id) and IDENTIFIER.fullmatch(task_id)):
        raise typer.BadParameter(named, param_hint="--task")
    return app_id, task_id
