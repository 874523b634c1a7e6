"""`etude init`: everything that an installation needs before it can serve.

Each step is skipped where its work is done already, so that a second run changes nothing and a run
after a crash finishes the first. Password and token are shown once, just before the transaction
that makes them valid is committed: a kill in between leaves neither, and the next run makes and
shows others. The other way round, a kill would leave an operator nobody can sign in as.
"""

import asyncio
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from etude.cli import terminal
from etude.cli.asking import ask_unseen
from etude.cli.gateway_token import ensure_gateway_token
from etude.cli.installation import make_folder, make_keys, settings_for
from etude.clock import Clock, SystemClock
from etude.files import Files, crash_point
from etude.i18n import text
from etude.people import audit, gateway_token
from etude.people.devices import add_device
from etude.people.names import MAX_DEVICE_ID, check_id
from etude.people.passwords import hash_password
from etude.people.records import HOST, Subject
from etude.people.scopes import Scope
from etude.people.staff import add_staff, count_operators
from etude.people.tokens import TokenRequest, create_token
from etude.settings import Settings
from etude.store import Database, UnitOfWork, current_revision, newest_revision, upgrade

FIRST_DEVICE: Final = "first-device"
PASSWORD_BYTES: Final = 15  # 20 characters of base64


class Operator(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first operator. `password` only if it was generated here."""

    staff_id: str
    password: str | None = None


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """What a maker needs to upload right away: a device and a token of it."""

    device_id: str
    token: str


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of `init` changed; null and empty where nothing was missing."""

    data: str
    changed: bool
    folder_made: bool
    keys_made: list[str]
    upgraded_to: str | None
    operator: Operator | None
    upload: Upload | None


Show = Callable[[Made], None]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller chose for the first operator and device."""

    operator: str
    password: str | None
    device: str


def init(
    *,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    operator: Annotated[str, typer.Option(help="Sign-in name of the first operator.")] = "operator",
    password: Annotated[
        str | None,
        typer.Option(
            envvar="ETUDE_OPERATOR_PASSWORD",
            help="The operator's password; without it one is generated and shown once.",
        ),
    ] = None,
    ask_password: Annotated[
        bool, typer.Option("--ask-password", help="Ask for the operator's password.")
    ] = False,
    device: Annotated[
        str, typer.Option(help="Id of the first device, which gets the upload token.")
    ] = FIRST_DEVICE,
    as_json: terminal.JsonOption = False,
) -> None:
    """Make the data folder, keys, database, first operator and an upload token.

    What is there already is left as it is: a second run changes nothing.
    """
    if ask_password:
        password = ask_unseen("cli.init.password")
    settings = settings_for("init", data)
    wish = Wish(operator=operator, password=password, device=device)

    def show(made: Made) -> None:
        if as_json:
            terminal.print_json(made)
        else:
            _tell(made)
        terminal.flush()

    asyncio.run(set_up(settings, wish, show, Files(), SystemClock()))


async def set_up(settings: Settings, wish: Wish, show: Show, files: Files, clock: Clock) -> None:
    """Do every step that is not done; call `show` once with what was made.

    Raises:
        IdInvalidError, PasswordLengthError, FolderUnusableError: nothing was made.
    """
    check_id(wish.operator)
    check_id(wish.device, MAX_DEVICE_ID)
    password_hash, generated = await _hashed(wish.password)
    folder_made = make_folder(files, settings.data)
    crash_point("cli.init.folder_made")
    keys_made = make_keys(files, settings.data)
    before = await current_revision(settings.database_url)
    await upgrade(settings.database_url)
    crash_point("cli.init.upgraded")
    upgraded_to = newest_revision() if before != newest_revision() else None
    async with (
        await Database.open(settings.database_url, connections=1) as database,
        database.transaction() as work,
    ):
        people = None
        if await count_operators(work.connection) == 0:
            people = await _first_people(work, wish, password_hash, clock.now())
        if await ensure_gateway_token(work, files, settings.data, clock.now()):
            keys_made.append(gateway_token.FILE)
        made = Made(
            data=str(settings.data),
            changed=bool(folder_made or keys_made or upgraded_to or people),
            folder_made=folder_made,
            keys_made=keys_made,
            upgraded_to=upgraded_to,
            operator=Operator(staff_id=wish.operator, password=generated) if people else None,
            upload=people,
        )
        show(made)
        crash_point("cli.init.shown")


async def _hashed(password: str | None) -> tuple[str, str | None]:
    """Return the hash of `password`, or of a generated one and that one."""
    generated = None if password else secrets.token_urlsafe(PASSWORD_BYTES)
    return await asyncio.to_thread(hash_password, password or generated or ""), generated


async def _first_people(work: UnitOfWork, wish: Wish, password_hash: str, now: datetime) -> Upload:
    name, device_id = wish.operator, wish.device
    member = await add_staff(
        work.connection,
        staff_id=name,
        name=name,
        role="operator",
        password_hash=password_hash,
        now=now,
    )
    device = await add_device(work.connection, device_id=device_id, name=device_id, now=now)
    asked = TokenRequest(
        kind="device",
        principal_id=device_id,
        scopes=(Scope.SESSIONS_WRITE, Scope.SESSIONS_READ),
        label="init",
    )
    made = await create_token(work.connection, asked, now)
    entries: tuple[tuple[str, Subject], ...] = (
        ("staff.added", ("staff", member.staff_key)),
        ("device.added", ("device", device.device_key)),
        ("token.made", ("token", made.token.token_key)),
    )
    for action, subject in entries:
        await audit.record(work, HOST, action, subject=subject, now=now)
    return Upload(device_id=device_id, token=made.text)


def _tell(made: Made) -> None:
    locale = terminal.locale()
    if not made.changed:
        terminal.print_text(text("cli.init.unchanged", locale, data=made.data))
        return
    terminal.print_text(text("cli.init.made", locale, data=made.data))
    if made.operator is None or made.upload is None:
        return
    terminal.print_text(text("cli.init.operator", locale, staff_id=made.operator.staff_id))
    if made.operator.password is not None:
        terminal.print_text(text("cli.init.generated", locale, password=made.operator.password))
    device, token = made.upload.device_id, made.upload.token
    terminal.print_text(text("cli.init.upload", locale, device_id=device, token=token))
    terminal.print_text(text("cli.init.next", locale))
