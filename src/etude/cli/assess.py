"""`etude assess`: how far scores agree with people's, training what makes them, assessing again.

Exit codes: 0 done, 1 the file or its columns cannot be used, 3 no such file, 4 the run cannot be
stored.
"""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import track

from etude.cli import installation, terminal
from etude.cli.assess_again import again
from etude.cli.assess_train import train
from etude.cli.local import DataOption
from etude.examiner.agreement import (
    RESAMPLES,
    AgreementRun,
    Coefficient,
    Comparison,
    Inputs,
    Part,
    run_agreement,
    run_bytes,
)
from etude.examiner.ratings import Wanted, read_bytes, read_ratings
from etude.files import Files, replace_file
from etude.i18n import text

RUNS: Final = "agreement"
_NAME_LENGTH: Final = 16
_LARGEST_SEED: Final = 2**53 - 1

app = typer.Typer()
app.command()(train)
app.command()(again)


@app.command()
def agreement(  # noqa: PLR0913 - the command's options
    file: Annotated[Path, typer.Argument(help="Ratings, CSV with a header.", metavar="CSV")],
    *,
    human: Annotated[
        str | None,
        typer.Option(help="Human raters: a,b,c; else the columns human….", metavar="COLS"),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(help="Column compared with them; else `machine`.", metavar="COL"),
    ] = None,
    dimension: Annotated[
        str | None,
        typer.Option(help="Column of dimensions; else `dimension`.", metavar="COL"),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column of subgroups.", metavar="COL")] = None,
    subject: Annotated[
        str | None,
        typer.Option(help="Column of people, resampled whole; else `subject`.", metavar="COL"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.", min=0, max=_LARGEST_SEED)] = 1,
    resamples: Annotated[
        int, typer.Option(help="Of each interval.", min=100, max=100_000)
    ] = RESAMPLES,
    out: Annotated[
        Path | None, typer.Option(help="Where the run is stored; else in the data folder.")
    ] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Compare a column of scores with human ratings, and the raters with each other.

    Pearson, Spearman, quadratic weighted kappa and ICC(2,1), each with a 95 % bootstrap interval,
    per dimension and subgroup.
    """
    content = read_bytes(file)
    wanted = Wanted(
        humans=_names(human), machine=machine, dimension=dimension, by=by, subject=subject
    )
    columns, items = read_ratings(content, wanted, str(file))
    inputs = Inputs(
        file_sha256=hashlib.sha256(content).hexdigest(),
        columns=columns,
        seed=seed,
        resamples=resamples,
    )
    run = run_agreement(items, inputs, _track)
    stored = _store(run, out, data)
    if as_json:
        terminal.print_bytes(run_bytes(run))
    else:
        for comparison in run.comparisons:
            _print(comparison)
    terminal.say("cli.agreement.stored" if stored else "cli.agreement.not_stored", file=stored)


def _names(said: str | None) -> tuple[str, ...] | None:
    return None if said is None else tuple(name.strip() for name in said.split(","))


def _track(parts: Sequence[Part]) -> Iterable[Part]:
    if not sys.stderr.isatty():
        return parts
    label = text("cli.agreement.comparing", terminal.locale())
    return track(parts, description=label, console=Console(stderr=True), transient=True)


def _store(run: AgreementRun, out: Path | None, data: Path | None) -> Path | None:
    """Write the run; its name comes from its inputs, so that a repetition replaces itself.

    Returns:
        where it is; None without `--out` and without a data folder.
    """
    files = Files()
    target = out
    if target is None:
        folder = installation.settings_for("assess", data).data
        if not folder.is_dir():
            return None
        installation.make_folder(files, folder / RUNS)
        target = folder / RUNS / f"{run.inputs_digest[:_NAME_LENGTH]}.json"
    with terminal.output(str(target)):
        replace_file(files, target.absolute(), run_bytes(run))
    return target


def _print(one: Comparison) -> None:
    locale = terminal.locale()
    head = text(f"cli.agreement.{one.compared}", locale)
    about = " · ".join(name for name in (one.dimension, one.subgroup) if name is not None)
    counted = text("cli.agreement.counted", locale, n=one.n, missing=one.missing)
    if one.subjects is not None:
        counted += text("cli.agreement.subjects", locale, subjects=one.subjects)
    terminal.print_text(f"{about}: {head} ({counted})" if about else f"{head} ({counted})")
    for name in ("pearson", "spearman", "quadratic_weighted_kappa", "icc_2_1"):
        label = text(f"cli.agreement.{name}", locale)
        terminal.print_text(f"  {label:<28} {_shown(getattr(one, name))}")


def _shown(one: Coefficient) -> str:
    if one.value is None:
        return text(f"cli.agreement.{one.reason}", terminal.locale())
    if one.low is None or one.high is None:
        return f"{one.value:.3f} " + text("cli.agreement.no_interval", terminal.locale())
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
