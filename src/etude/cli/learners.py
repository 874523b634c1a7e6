"""`etude learner create|list|export|erase` on this machine's database."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from etude.cli import terminal
from etude.cli.asking import require_yes
from etude.cli.local import DataOption, Local, every_page, show, shown, with_database
from etude.clock import RandomIds
from etude.files import Files
from etude.people import audit
from etude.people.archive import save_archive
from etude.people.erasure import erase_learner, scrub_files
from etude.people.export import export_archive
from etude.people.learners import DEFAULT_LOCALE, add_learner, get_learner, list_learners
from etude.people.records import HOST
from etude.store.errors import StoreUnavailable

learner = typer.Typer(no_args_is_help=True)
LearnerArgument = Annotated[str, typer.Argument(metavar="ID", help="The learner's id.")]


@learner.command()
def create(
    name: Annotated[str, typer.Argument(help="What the learner is called.")],
    *,
    locale: Annotated[Literal["en", "zh-CN"], typer.Option()] = DEFAULT_LOCALE,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Add a learner; prints the id that was made."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            made = await add_learner(
                work.connection,
                learner_id=RandomIds().new(),
                display_name=name,
                locale=locale,
                now=here.now(),
            )
            await audit.record(
                work, HOST, "learner.added", subject=("learner", made.learner_key), now=here.now()
            )
        return shown(made)

    show(with_database("learner create", data, act), as_json=as_json)


@learner.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the learners; each one shown is an entry in the audit log."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.transaction() as work:
            everybody = await every_page(
                lambda cursor, limit: list_learners(work.connection, cursor=cursor, limit=limit)
            )
            await audit.record_all(
                work,
                HOST,
                "learner.listed",
                subjects=[("learner", each.learner_key) for each in everybody],
                now=here.now(),
            )
        return [shown(each) for each in everybody]

    show(with_database("learner list", data, act), as_json=as_json)


@learner.command()
def export(
    learner_id: LearnerArgument,
    *,
    out: Annotated[
        Path | None, typer.Option(help="A file that does not exist; else learner-ID.zip here.")
    ] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Write everything that is kept of a learner into one ZIP archive."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            found = await get_learner(work.connection, learner_id)
            await audit.record(
                work,
                HOST,
                "learner.exported",
                subject=("learner", found.learner_key),
                now=here.now(),
            )
        target = out or Path(f"learner-{found.learner_id}.zip")
        chunks = export_archive(here.database, here.learner_data, found.learner_key, here.now())
        size = await save_archive(Files(), target, chunks)
        return {"file": str(target), "bytes": size}

    show(with_database("learner export", data, act), as_json=as_json)


@learner.command()
def erase(
    learner_id: LearnerArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Erase a learner with everything that is kept of them. There is no way back.

    Clears the database's files at once; if somebody reads them just then, the worker does it soon
    (`files: queued`).
    """
    if not yes:
        require_yes("cli.people.erase_confirm", learner_id=learner_id)

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            await erase_learner(work, here.learner_data, learner_id, actor=HOST, now=here.now())
        try:
            await scrub_files(here.database, here.blobs, here.learner_data)
        except StoreUnavailable as error:  # the job of the erasure does it
            terminal.print_note(terminal.explain(error))
            return {"status": "erased", "files": "queued"}
        return {"status": "erased", "files": "cleared"}

    show(with_database("learner erase", data, act), as_json=as_json)
