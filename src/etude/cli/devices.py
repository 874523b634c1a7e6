"""`etude device …` on this machine's database."""

from pathlib import Path
from typing import Annotated, Any

import typer

from etude.cli import terminal
from etude.cli.installation import keys_folder, require_folder, settings_for
from etude.cli.local import DataOption, Local, TimeOption, every_page, show, shown, with_database
from etude.cli.simulate import simulate
from etude.clock import RandomIds
from etude.files import Files
from etude.people import audit
from etude.people.bind_codes import shown_codes
from etude.people.bindings import (
    BindRequest,
    bind_device,
    bound_among,
    mark_device,
    revoke_credential,
    revoke_credentials,
    unbind_device,
)
from etude.people.devices import add_device, get_device, list_devices
from etude.people.errors import SerialFileUnreadableError
from etude.people.holders import hold_device, list_holdings, release_device
from etude.people.presence import presence_of
from etude.people.records import HOST, Device, Holding
from etude.people.serial_keys import import_keys, parse_keys
from etude.store import UnitOfWork

device = typer.Typer(no_args_is_help=True)
device.command()(simulate)
DeviceArgument = Annotated[str, typer.Argument(metavar="DEVICE", help="The device's id.")]


@device.command()
def create(
    device_id: Annotated[
        str | None,
        typer.Argument(metavar="[DEVICE]", help="Serial number or such; one is made without."),
    ] = None,
    *,
    name: Annotated[str | None, typer.Option(help="Which one it is, not whose.")] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Register a device; prints its id."""
    wanted = device_id or RandomIds().new()

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            made = await add_device(
                work.connection, device_id=wanted, name=name or wanted, now=here.now()
            )
            await audit.record(
                work, HOST, "device.added", subject=("device", made.device_key), now=here.now()
            )
        return shown(made)

    show(with_database("device create", data, act), as_json=as_json)


@device.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the devices: who has each now, whether it may connect, whether it is connected."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            devices = await every_page(
                lambda cursor, limit: list_devices(connection, cursor=cursor, limit=limit)
            )
            bound = await bound_among(connection, [each.device_key for each in devices])
            return [
                shown(
                    each,
                    holder=_holder(await list_holdings(connection, each.device_key), here),
                    bound=each.device_key in bound,
                    online=await presence_of(connection, each.device_key, here.now()) is not None,
                )
                for each in devices
            ]

    show(with_database("device list", data, act), as_json=as_json)


@device.command()
def hold(
    device_id: DeviceArgument,
    learner_id: Annotated[str, typer.Argument(metavar="LEARNER", help="The learner's id.")],
    *,
    since: TimeOption = None,
    until: TimeOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Give a device to a learner, from now or `--since`, further on or `--until`.

    Whoever has it until now has it until then. A session is whose device it was at its time.
    """

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            held = await hold_device(
                work.connection,
                device_id=device_id,
                learner_id=learner_id,
                starts_at=since or here.now(),
                ends_at=until,
            )
            await _enter(work, here, "device.held", held)
        return shown(held)

    show(with_database("device hold", data, act), as_json=as_json)


@device.command()
def release(
    device_id: DeviceArgument,
    *,
    at: TimeOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Take a device back, now or at `--at`: nobody has it from then on."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            ended = await release_device(work.connection, device_id, at or here.now())
            await _enter(work, here, "device.released", ended)
        return shown(ended)

    show(with_database("device release", data, act), as_json=as_json)


@device.command()
def codes(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the codes that unbound devices show now: which one says what it is."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            return [shown(each) for each in await shown_codes(connection, here.now())]

    show(with_database("device codes", data, act), as_json=as_json)


@device.command()
def bind(
    code: Annotated[str, typer.Argument(metavar="CODE", help="The six digits that it shows.")],
    *,
    name: Annotated[str | None, typer.Option(help="Which one it is, not whose.")] = None,
    learner: Annotated[
        str | None, typer.Option(metavar="LEARNER", help="Who has it from now on.")
    ] = None,
    rebind: Annotated[
        bool, typer.Option("--rebind", help="It was reset: its id is bound with another client.")
    ] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Let the device that shows a code connect; it is registered if it is new."""
    wanted = BindRequest(code=code, name=name, learner_id=learner, rebind=rebind)

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            bound = await bind_device(work, wanted, actor=HOST, now=here.now())
        return shown(bound.device, rebound=bound.rebound, learner_id=bound.learner_id)

    show(with_database("device bind", data, act), as_json=as_json)


@device.command()
def unbind(
    device_id: DeviceArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Let a device connect no more; it is disconnected and shows a code again."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            return shown(await unbind_device(work, device_id, actor=HOST, now=here.now()))

    show(with_database("device unbind", data, act), as_json=as_json)


@device.command()
def revoke(
    device_id: DeviceArgument,
    *,
    credential: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this one, by its id in the log.")
    ] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Refuse the credentials that a bound device has; it gets another at its next start."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            return shown(await _revoke(work, device_id, credential, here))

    show(with_database("device revoke", data, act), as_json=as_json)


@device.command()
def keys(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV: serial,key a line.")],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Import serial numbers and their keys: such a device must prove its serial to be bound."""
    settings = settings_for("device keys", data)
    require_folder(settings)
    try:
        rows = parse_keys(file.read_text("utf-8").splitlines(keepends=True))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SerialFileUnreadableError(file=str(file), reason=reason) from error
    kept = import_keys(Files(), keys_folder(settings.data), rows)
    show({"imported": len(rows), "kept": kept}, as_json=as_json)


async def _revoke(work: UnitOfWork, device_id: str, credential: str | None, here: Local) -> Device:
    if credential is None:
        return await revoke_credentials(work, device_id, actor=HOST, now=here.now())
    return await revoke_credential(work, device_id, credential, actor=HOST, now=here.now())


def _holder(holdings: tuple[Holding, ...], here: Local) -> str | None:
    now = here.now()
    current = (
        each
        for each in holdings
        if each.starts_at <= now and (each.ends_at is None or now < each.ends_at)
    )
    return next((each.learner_id for each in current), None)


async def _enter(work: UnitOfWork, here: Local, action: str, holding: Holding) -> None:
    found = await get_device(work.connection, holding.device_id)
    await audit.record_all(
        work,
        HOST,
        action,
        subjects=[("device", found.device_key), ("learner", holding.learner_key)],
        now=here.now(),
        detail={"device": found.device_key, "learner": holding.learner_key},
    )
    await mark_device(work, found.device_key, here.now())
