"""`etude device create|list|hold|release` on this machine's database."""

from typing import Annotated, Any

import typer

from etude.cli import terminal
from etude.cli.local import DataOption, Local, TimeOption, every_page, show, shown, with_database
from etude.clock import RandomIds
from etude.people import audit
from etude.people.devices import add_device, get_device, list_devices
from etude.people.holders import hold_device, list_holdings, release_device
from etude.people.records import HOST, Holding
from etude.store import UnitOfWork

device = typer.Typer(no_args_is_help=True)
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
    """List the devices and who has each of them now."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            devices = await every_page(
                lambda cursor, limit: list_devices(connection, cursor=cursor, limit=limit)
            )
            return [
                shown(each, holder=_holder(await list_holdings(connection, each.device_key), here))
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
