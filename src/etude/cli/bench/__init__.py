"""`etude bench`: figures, each with a baseline measured in the same run.

A bench is a function that takes keyword options with defaults and returns its figures; `BENCHES`
names it. It is imported only when it runs, so that a bench of the edge library needs no server.
Every option of the function is an option of the command (`etude bench ingest --events 1000`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from etude.cli import terminal
from etude.cli.bench.frame import Bench, prepare_report, run_all, run_bench, write_report

BENCHES: Final = {
    "ingest": Bench(
        "etude.cli.bench.ingest:ingest",
        "Uploads of 100 events over HTTP, against raw inserts of the same rows.",
        ({}, {"database": "postgresql"}),
    ),
    "journal": Bench(
        "etude.cli.bench.journal:journal", "Append to a journal; read one of 1 GB in little memory."
    ),
    "bundle": Bench(
        "etude.cli.bench.bundle:bundle",
        "Publish a course of 15 modules, against sha256sum and zip -0 of the same files.",
    ),
    "clock": Bench(
        "etude.cli.bench.clock:clock",
        "Steps of practising devices: send minus due, against a bare timer beside the load.",
    ),
    "gateway": Bench(
        "etude.cli.bench.gateway:gateway",
        "Memory and descriptors of connected devices, and what is left of them.",
        ({}, {"devices": "500", "practising": "1"}),
    ),
    "examine": Bench(
        "etude.cli.bench.examine:examine", "Report of 200 events, from lines to bytes: p95."
    ),
    "report": Bench(
        "etude.cli.bench.report:report",
        "From an upload's answer to its report, 100 sessions a minute arriving: p95.",
        ({}, {"database": "postgresql"}),
    ),
    "agreement": Bench(
        "etude.cli.bench.agreement:agreement",
        "Agreement of pronunciation_v2 with raters, from the table that ships.",
    ),
    "assess": Bench(
        "etude.cli.bench.assess:assess", "Turns that one core recognises, aligns and measures."
    ),
    "speaking": Bench(
        "etude.cli.bench.speaking:speaking",
        "50 devices that are spoken to: turns assessed a second and core, and the step clock.",
    ),
    "outline": Bench(
        "etude.cli.bench.outline:outline",
        "A course of four modules without audio, from material to stored classrooms.",
    ),
    "recap": Bench("etude.cli.bench.recap:recap", "Recap of 200 events: p50 and p99."),
}

ALL: Final = "all"

app = typer.Typer()

JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the report to this file, not to stdout.")
]


def _command(name: str) -> Callable[[typer.Context, Path | None], None]:
    def run(context: typer.Context, json_file: JsonFile = None) -> None:
        prepare_report(json_file)
        if name == ALL:
            report = run_all(BENCHES, terminal.print_note)
        else:
            report = run_bench(name, BENCHES[name], context.args)
        write_report(report, json_file)

    return run


for _name, _help in {**{name: one.summary for name, one in BENCHES.items()}, ALL: "Each."}.items():
    app.command(
        _name,
        help=_help,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(_command(_name))
