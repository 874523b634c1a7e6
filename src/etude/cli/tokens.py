"""`etude token create|list|revoke` on this machine's database."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import typer

from etude.cli import terminal
from etude.cli.local import DataOption, Local, every_page, show, shown, with_database
from etude.people import audit
from etude.people.records import HOST, PrincipalKind
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token, list_tokens, revoke_token

token = typer.Typer(no_args_is_help=True)
_KINDS: Final[Mapping[str, PrincipalKind]] = {
    "device": "device",
    "learner": "learner",
    "user": "staff",
    "service": "service",
}
_OWN: Final = {
    "device": (Scope.SESSIONS_WRITE, Scope.SESSIONS_READ),
    "learner": (Scope.SESSIONS_WRITE, Scope.SESSIONS_READ, Scope.CLASSROOMS_WRITE),
}


@token.command()
def create(
    kind: Annotated[Literal["device", "learner", "user", "service"], typer.Argument()],
    principal_id: Annotated[
        str, typer.Argument(metavar="ID", help="Its id, sign-in name, or a name for the service.")
    ],
    *,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="May be repeated. Devices and learners need none named: their own."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36500, help="Expires after so many days.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="What you call it.")] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Make a token for a device, learner, user or service; prints it, this once."""
    scopes = tuple(scope or _OWN.get(kind, ()))
    if not scopes:
        raise typer.BadParameter(", ".join(Scope), param_hint="--scope")

    async def act(here: Local) -> dict[str, Any]:
        now = here.now()
        wanted = TokenRequest(
            kind=_KINDS[kind],
            principal_id=principal_id,
            scopes=scopes,
            expires_at=None if days is None else now + timedelta(days=days),
            label=label,
        )
        async with here.database.transaction() as work:
            made = await create_token(work.connection, wanted, now)
            await audit.record(
                work, HOST, "token.made", subject=("token", made.token.token_key), now=now
            )
        return {"token": made.text} | shown(made.token)

    made = with_database("token create", data, act)
    if as_json:
        terminal.print_json(made)
        return
    terminal.print_text(made["token"])
    terminal.say("cli.people.token_once", token_id=made["public_id"])


@token.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the tokens, revoked and expired ones too; never the tokens themselves."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            tokens = await every_page(
                lambda cursor, limit: list_tokens(connection, cursor=cursor, limit=limit)
            )
        return [shown(each) for each in tokens]

    show(with_database("token list", data, act), as_json=as_json)


@token.command()
def revoke(
    token_id: Annotated[
        str,
        typer.Argument(metavar="TOKEN-ID", help="The 16 digits behind etd_, or the whole token."),
    ],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Refuse a token from now on."""
    # Whoever holds the whole token may paste it: its secret is dropped before anything quotes it.
    public_id = token_id.removeprefix("etd_").partition("_")[0]

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            revoked = await revoke_token(work.connection, public_id, here.now())
            await audit.record(
                work, HOST, "token.revoked", subject=("token", revoked.token_key), now=here.now()
            )
        return shown(revoked)

    show(with_database("token revoke", data, act), as_json=as_json)
