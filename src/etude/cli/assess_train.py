"""`etude assess train`: a model of pronunciation from a scored corpus, split by speaker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from etude.cli import terminal
from etude.files import Files
from etude.i18n import text


def train(
    data: Annotated[
        list[Path], typer.Argument(help="Folders with scores.jsonl and recordings.", metavar="DATA")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the model, its card and its table.")],
    work: Annotated[
        Path | None, typer.Option(help="Folder in which the engines' answers are kept.")
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Train `pronunciation_v2` on recordings that people have rated, and say how well it agrees.

    No recording is kept: the three files hold weights and measured values only. The same data and
    the same engines give the same bytes.
    """
    from etude.assess import corpus, listening, training  # noqa: PLC0415 - `agreement` needs no numpy

    examples = corpus.read_corpus(data)
    files = Files()
    with terminal.output(str(out)):
        out.mkdir(parents=True, exist_ok=True)
        if work is not None:
            work.mkdir(parents=True, exist_ok=True)
    with _progress() as progress:
        task = progress.add_task(text("cli.assess_train.hearing", terminal.locale()), total=None)
        trained = training.train(
            examples,
            training.Answers(work, listening.OwnEngines(), files),
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    with terminal.output(str(out)):
        trained.write(out, files)
    if as_json:
        terminal.print_json(trained.card)
    else:
        _print(trained.card.figures)
    terminal.say("cli.assess_train.written", folder=str(out))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def _print(by_target: Mapping[str, Any]) -> None:
    locale = terminal.locale()
    for target, figures in by_target.items():
        for group in ("all", "children", "adults"):
            one = figures if group == "all" else figures[group]
            low, high = one["interval"] or (0.0, 0.0)
            label = text(f"cli.assess_train.{group}", locale)
            terminal.print_text(
                f"{target:<10}{label:<12}{one['pearson']:.3f} [{low:.3f}, {high:.3f}]"
            )
