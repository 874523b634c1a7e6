"""What every bench has in common: its options, the facts about machine and version, the report."""

import errno
import importlib
import inspect
import math
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from etude.cli import terminal
from etude.files import Files, replace_file

Figures = dict[str, Any]


class Bench(msgspec.Struct, frozen=True):
    """A bench: where its function is, what it measures, with which options `all` runs it."""

    target: str
    summary: str
    variants: tuple[Mapping[str, str], ...] = ({},)

    def load(self) -> Callable[..., Figures]:
        """Import the module and return the function."""
        module, _, name = self.target.partition(":")
        function: Callable[..., Figures] = getattr(importlib.import_module(module), name)
        return function


def run_bench(name: str, bench: Bench, arguments: Sequence[str]) -> Figures:
    """Run one bench with options as on the command line (`--events 100`); return its report.

    `load` is the machine's load average (1, 5, 15 minutes) before and after; the bench itself
    returns `baseline` and `ratio` beside its figures.
    """
    function = bench.load()
    options = parse_options(function, arguments)
    before = os.getloadavg()
    figures = function(**options)
    return {
        "bench": name,
        "commit": commit(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "load": {"before": before, "after": os.getloadavg()},
        **figures,
    }


def run_all(benches: Mapping[str, Bench], say: Callable[[str], None]) -> Figures:
    """Run every bench in every variant; `say` is told the name of each before it starts."""
    reports = []
    for name, bench in benches.items():
        for variant in bench.variants:
            say(" ".join([name, *variant.values()]))
            arguments = [part for key, value in variant.items() for part in (f"--{key}", value)]
            reports.append(run_bench(name, bench, arguments))
    return {"benches": reports}


def parse_options(function: Callable[..., Figures], arguments: Sequence[str]) -> dict[str, Any]:
    """Read `--name value` pairs as keywords of `function`, typed like their defaults."""
    known = {
        name.replace("_", "-"): parameter
        for name, parameter in inspect.signature(function).parameters.items()
    }
    options: dict[str, Any] = {}
    given = list(arguments)
    while given:
        option, _, value = given.pop(0).partition("=")
        parameter = known.get(option.removeprefix("--"))
        if parameter is None or not option.startswith("--"):
            reason = f"{option} ({', '.join(f'--{name}' for name in known)})"
            raise typer.BadParameter(reason)
        if not value:
            value = given.pop(0) if given else ""
        options[parameter.name] = _typed(option, value, parameter.default)
    return options


def _typed(option: str, value: str, default: object) -> object:
    try:
        if isinstance(default, int):
            return int(value)
        return float(value) if isinstance(default, float) else value
    except ValueError as error:
        reason = f"{option} {value}"
        raise typer.BadParameter(reason) from error


def commit() -> str:
    """Return the commit that runs, `-dirty` if changed; outside a clone the package's version."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],  # noqa: S607 - the user's own git
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        )
        tracked = subprocess.run(  # noqa: S603 - no part of the command comes from outside
            ["git", "ls-files", "--error-unmatch", __file__],  # noqa: S607 - the user's own git
            cwd=here,
            capture_output=True,
            check=False,
        )
    except (OSError, subprocess.CalledProcessError):
        return version("etude")
    return version("etude") if tracked.returncode else described.stdout.strip()


def quantile(sorted_values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the sorted values lie, nearest rank."""
    rank = max(1, math.ceil(share * len(sorted_values)))
    return sorted_values[rank - 1]


def write_report(report: Figures, file: Path | None) -> None:
    """Write the report to `file`, or to stdout without one; raises `OutputUnwritableError`."""
    if file is None:
        terminal.print_json(report)
        return
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    with terminal.output(str(file)):
        replace_file(Files(), file.absolute(), text + b"\n", mode=0o644)


def prepare_report(file: Path | None) -> None:
    """Make the folder of `file` before a bench runs for minutes, or say that it cannot be."""
    if file is None:
        return
    with terminal.output(str(file)):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(file.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


_DIGITS: Final = 3


def milliseconds(seconds: float) -> float:
    """Return a duration in ms, rounded to a microsecond."""
    return round(seconds * 1000, _DIGITS)
