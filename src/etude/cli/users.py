"""`etude user create|list|password` on this machine's database: staff."""

import sys
from typing import Annotated, Any, Literal

import typer

from etude.cli import terminal
from etude.cli.asking import ask_unseen
from etude.cli.local import DataOption, Local, every_page, show, shown, with_database
from etude.people import audit
from etude.people.passwords import hash_password
from etude.people.records import HOST
from etude.people.staff import add_staff, list_staff, set_password

user = typer.Typer(no_args_is_help=True)
UserArgument = Annotated[str, typer.Argument(metavar="SIGN-IN-NAME")]


@user.command()
def create(
    staff_id: UserArgument,
    *,
    role: Annotated[Literal["operator", "teacher"], typer.Option()],
    name: Annotated[str | None, typer.Option(help="What the person is called.")] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Add an operator or teacher. The password is asked for, or read from a pipe: one line."""
    password_hash = hash_password(_read_password())

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            made = await add_staff(
                work.connection,
                staff_id=staff_id,
                name=name or staff_id,
                role=role,
                password_hash=password_hash,
                now=here.now(),
            )
            await audit.record(
                work,
                HOST,
                "staff.added",
                subject=("staff", made.staff_key),
                now=here.now(),
                detail={"role": role},
            )
        return shown(made)

    show(with_database("user create", data, act), as_json=as_json)


@user.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the operators and teachers."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            everybody = await every_page(
                lambda cursor, limit: list_staff(connection, cursor=cursor, limit=limit)
            )
        return [shown(each) for each in everybody]

    show(with_database("user list", data, act), as_json=as_json)


@user.command()
def password(
    staff_id: UserArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Set a new password. It is asked for, or read from a pipe: one line."""
    password_hash = hash_password(_read_password())

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            changed = await set_password(work.connection, staff_id, password_hash)
            await audit.record(
                work, HOST, "staff.password", subject=("staff", changed.staff_key), now=here.now()
            )
        return shown(changed)

    show(with_database("user password", data, act), as_json=as_json)


def _read_password() -> str:
    """Ask at a terminal, twice and unseen; else take the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return ask_unseen("cli.people.password")
