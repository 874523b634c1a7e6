"""`etude assign lesson|list|withdraw` on this machine's database."""

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
from etude.people import audit
from etude.people.records import HOST
from etude.practice.apps import installed_apps
from etude.practice.assignments.assigning import assign, subject_of, withdraw
from etude.practice.assignments.lesson_addresses import parse_address, require_lesson
from etude.practice.assignments.records import NewAssignment
from etude.practice.assignments.repository import list_assignments

app = typer.Typer(no_args_is_help=True)


@app.command()
def lesson(  # noqa: PLR0913 - options of a command
    path: Annotated[
        str,
        typer.Argument(metavar="APP/TASK/LESSON", help="english_learning/shadowing/greetings"),
    ],
    *,
    learner: Annotated[
        str | None, typer.Option(metavar="ID", help="For this learner, on whichever device.")
    ] = None,
    class_id: Annotated[
        str | None,
        typer.Option("--class", metavar="ID", help="For whoever is in this class then."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="For this device, whoever has it.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--from", parser=parse_time, metavar="TIME", help="Else now."),
    ] = None,
    until: TimeOption = None,
    ratio: Annotated[
        float | None, typer.Option(help="Window to clip, 1.2 to 1.5; else as the task says.")
    ] = None,
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
        return shown(made)

    show(with_database("assign lesson", data, act), as_json=as_json)


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
        return [shown(each) for each in found]

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
            return shown(await withdraw(work, assignment_id, actor=HOST, now=here.now()))

    show(with_database("assign withdraw", data, act), as_json=as_json)
