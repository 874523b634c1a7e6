"""`etude device simulate`: a device without hardware, for a running gateway or a scenario.

Real time against a gateway (`--ota` or `--socket`); with `--scenario` the gateway runs inside, in
a time that jumps, and the answer is whether the scenario holds (exit code 1 if not).
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from etude.cli import exits, terminal
from etude.cli.errors import ScenarioUnknownError, SimulationFailedError

if TYPE_CHECKING:
    from etude.testing.scenarios import Scenario
    from etude.testing.visit import Visit

ALL: Final = "all"
DEVICE_ID: Final = "02:00:00:00:00:01"

ScenarioOption = Annotated[
    list[str] | None,
    typer.Option("--scenario", help="A YAML file, the name of a shipped one, or all; repeatable."),
]


def simulate(  # noqa: PLR0913 -- one option each
    *,
    ota: Annotated[
        str | None, typer.Option(help="Where a device asks first: http://host:8003/xiaozhi/ota/")
    ] = None,
    socket: Annotated[
        str | None, typer.Option(help="Connect here at once: ws://host:8000/xiaozhi/v1/")
    ] = None,
    device_id: Annotated[
        str, typer.Option("--id", help="The device's hardware address.")
    ] = DEVICE_ID,
    token: Annotated[str, typer.Option(help="With --socket.", envvar="ETUDE_DEVICE_TOKEN")] = "",
    protocol: Annotated[int, typer.Option(min=1, max=3, help="Of binary frames.")] = 1,
    listen: Annotated[str, typer.Option(help="auto, manual or realtime.")] = "auto",
    card: Annotated[
        Path | None, typer.Option(help="Play from a card that holds this folder (SD firmware).")
    ] = None,
    lesson: Annotated[
        Path | None, typer.Option(help="The lesson's folder, NN.mp3 and NN.txt, for the learner.")
    ] = None,
    learner: Annotated[str, typer.Option(help="perfect, wrong, silent, late, …")] = "perfect",
    start: Annotated[str, typer.Option(help="What is detected at the start.")] = "",
    seconds: Annotated[float, typer.Option(min=1, help="How long it stays.")] = 60.0,
    scenario: ScenarioOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Play a device and its learner, or run scenarios with a gateway of their own."""
    if scenario:
        _run_scenarios(scenario, as_json=as_json)
        return
    if (ota is None) == (socket is None):
        raise typer.BadParameter("--ota | --socket | --scenario")  # noqa: EM101, TRY003 - names of options
    from etude.testing.visit import Visit  # noqa: PLC0415 - other commands need no test kit

    visit = Visit(
        device_id=device_id,
        ota=ota,
        socket=socket,
        token=token,
        protocol=protocol,
        listen=listen,
        card=card,
        lesson=lesson,
        learner=learner,
        start=start,
        seconds=seconds,
    )
    _pay(visit, as_json=as_json)


def _pay(visit: "Visit", *, as_json: bool) -> None:
    from etude.testing.visit import VisitError, pay  # noqa: PLC0415 - see above

    def tell(line: str) -> None:
        if as_json:
            terminal.print_note(line)
        else:
            terminal.print_text(line)
            terminal.flush()

    try:
        seen = asyncio.run(pay(visit, tell))
    except VisitError as error:
        raise SimulationFailedError(reason=str(error)) from error
    if as_json:
        terminal.print_json(seen)


def _run_scenarios(names: list[str], *, as_json: bool) -> None:
    import tempfile  # noqa: PLC0415 - only here

    from etude.cli import logs  # noqa: PLC0415 - only here
    from etude.testing.scenarios import shipped  # noqa: PLC0415 - see above
    from etude.testing.simulation import run_scenario  # noqa: PLC0415 - see above

    logs.configure("error", process="simulate")
    wanted = [name for name, _ in shipped()] if names == [ALL] else names
    results: list[dict[str, Any]] = []
    for name in wanted:
        found = _load(name)
        with tempfile.TemporaryDirectory(prefix="etude-scenario-") as folder:
            outcome = run_scenario(found, Path(folder))
        results.append(
            {
                "scenario": name,
                "claim": found.claim,
                "holds": not outcome.problems,
                "problems": outcome.problems,
                "timeline": outcome.timeline,
            }
        )
        if not as_json:
            _print_result(results[-1])
    if as_json:
        terminal.print_json(results)
    if not all(result["holds"] for result in results):
        raise typer.Exit(exits.REFUSED)


def _load(name: str) -> "Scenario":
    from etude.testing.scenarios import load_scenario  # noqa: PLC0415 - see above

    try:
        return load_scenario(name)
    except FileNotFoundError as error:
        raise ScenarioUnknownError(name=name) from error


def _print_result(result: dict[str, Any]) -> None:
    mark = "ok" if result["holds"] else "FAILED"
    terminal.print_text(f"{mark}\t{result['scenario']}\t{result['claim']}")
    for problem in result["problems"]:
        terminal.print_text(f"\t{problem}")
    terminal.flush()
