"""`etude assess again`: stored sessions assessed with the engines and methods that are there now.

The command asks; the worker carries out. Whoever interrupts `--wait` interrupts nothing else.
"""

import asyncio
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from etude.assess.again import ASSESS_AGAIN, Asked, ask_for, ask_of
from etude.cli import terminal
from etude.cli.installation import settings_for
from etude.cli.local import DataOption, Local, TimeOption, with_database
from etude.i18n import text
from etude.jobs import JobState, counted
from etude.people.devices import get_device
from etude.sessions import reading, repository
from etude.sessions.errors import SessionErasedError, SessionUnknownError
from etude.speech.libraries import engines_installed

LOOK_EVERY_S: Final = 1.0

SessionOption = Annotated[str | None, typer.Option(help="Only this session.")]
DeviceOption = Annotated[str | None, typer.Option(help="Only sessions of this device.")]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait, with progress, until the worker has done them all.")
]


def again(
    *,
    since: TimeOption = None,
    session: SessionOption = None,
    device: DeviceOption = None,
    wait: WaitOption = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Assess stored sessions again: recorded without engines, or with older ones.

    What was found before stays; what is found now is added beside it, and reports get a revision.
    Sessions in which something had no engine come first. Run twice, nothing is done twice.
    """
    if session is not None and (since is not None or device is not None):
        raise typer.BadParameter("--session | --since, --device")  # noqa: EM101, TRY003 - names what was given
    settings = settings_for("assess", data)
    if not (settings.speech_recogniser_url or engines_installed()):
        terminal.say("cli.assess_again.no_engine")

    async def act(here: Local) -> tuple[Asked, Mapping[JobState, int]]:
        if session is not None:
            asked = await _one(here, session)
        else:
            wanted = await _filter(here, since, device)
            asked = await ask_for(here.database, here.clock, wanted)
        terminal.say(
            "cli.assess_again.asked", count=asked.sessions, without_engine=asked.without_engine
        )
        return asked, await (_waited(here, asked) if wait else _states(here))

    asked, states = with_database("assess", data, act)
    left = _left(states)
    dead = states.get(JobState.DEAD, 0)
    if left:
        terminal.say("cli.assess_again.left", count=left)
    if dead:
        terminal.say("cli.assess_again.dead", count=dead)
    if as_json:
        terminal.print_json(
            {
                "asked": asked.sessions,
                "without_engine": asked.without_engine,
                "left": left,
                "given_up": dead,
            }
        )


async def _one(here: Local, session_id: str) -> Asked:
    reading.check_session_id(session_id)
    async with here.database.read() as connection:
        record = await repository.find(connection, session_id)
        if record is None and await repository.tombstones(connection, [session_id]):
            raise SessionErasedError
    if record is None:
        raise SessionUnknownError(session_id=session_id)
    return await ask_of(here.database, here.clock, [record])


async def _filter(here: Local, since: datetime | None, device_id: str | None) -> reading.Filter:
    if device_id is None:
        return reading.Filter(since=since)
    async with here.database.read() as connection:
        device = await get_device(connection, device_id)
    return reading.Filter(since=since, device_key=device.device_key)


async def _waited(here: Local, asked: Asked) -> Mapping[JobState, int]:
    """Wait until no job is left; what others asked for meanwhile is waited for, too."""
    with Progress(
        TextColumn(text("cli.assess_again.assessing", terminal.locale())),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    ) as progress:
        task = progress.add_task("", total=asked.sessions)
        while left := _left(states := await _states(here)):
            progress.update(task, completed=max(0, asked.sessions - left))
            await asyncio.sleep(LOOK_EVERY_S)
    return states


async def _states(here: Local) -> Mapping[JobState, int]:
    async with here.database.read() as connection:
        return await counted(connection, ASSESS_AGAIN)


def _left(states: Mapping[JobState, int]) -> int:
    return states.get(JobState.QUEUED, 0) + states.get(JobState.RUNNING, 0)
