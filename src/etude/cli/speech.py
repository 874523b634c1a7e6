"""`etude speech`: what this installation can hear and say, and the models that it needs for that.

Exit codes of `check`: 0 all that is configured works, 1 something does not. Of `fetch`: 0 complete,
1 the model has no address or what came is another file, 3 no such model, 4 no network or no disk.
Of `add`: 0 it is in the list, 1 folder or description is wrong, 4 the engine is not installed.
"""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from etude.cli import exits, terminal
from etude.cli.installation import settings_for, unusable
from etude.cli.speech_options import speech_options
from etude.files import Files
from etude.i18n import text
from etude.speech.adding import ADDABLE, NewModel, add_model
from etude.speech.check import EngineFinding, ModelFinding, SpeechReport, run_check
from etude.speech.engines import Engines
from etude.speech.errors import ModelMissingError
from etude.speech.fetch import fetch_model
from etude.speech.models import LIST_NAME, Models

app = typer.Typer()

DataOption = Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")]
_MARKS: Final = {True: "✓", False: "✗"}


@app.command()
def check(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """Load each engine, verify the models, say a sentence and hear it. Needs no data folder.

    Names engines, versions, languages and licences. No network is used, except of servers that the
    settings name.
    """
    report = run_check(Engines(speech_options(settings_for("speech", data))))
    if as_json:
        terminal.print_json(_shown(report))
    else:
        _print(report)
    if not report.is_sound:
        raise typer.Exit(exits.REFUSED)


@app.command()
def fetch(
    model: Annotated[str, typer.Argument(help="The model's id in models.toml.")],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Fetch a model from the address that its list names, and verify it. Nothing else fetches."""
    settings = settings_for("speech", data)
    models = Models(settings.models)
    try:
        fetched = fetch_model(models, model, Files())
    except OSError as error:
        raise unusable(settings.models, error) from error
    folder = models.require(model)
    if as_json:
        terminal.print_json({"model": model, "folder": str(folder), "fetched": fetched})
        return
    for file in fetched:
        terminal.say("speech.fetch.fetched", file=file)
    terminal.print_text(
        text("speech.fetch.complete", terminal.locale(), model=model, folder=str(folder))
    )


@app.command()
def add(  # noqa: PLR0913 - each is an option of the command
    folder: Annotated[Path, typer.Argument(help="Where the model's files are; they stay there.")],
    *,
    model: Annotated[str, typer.Option("--id", help="How settings will name it.")],
    format_: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(ADDABLE)}.")],
    language: Annotated[list[str], typer.Option(help="A language it knows, as zh; repeat it.")],
    licence: Annotated[str, typer.Option(help="Of the weights.")],
    origin: Annotated[str, typer.Option(help="Where they were published.")],
    title: Annotated[str, typer.Option(help="For people; else the id.")] = "",
    weights: Annotated[str, typer.Option(help="Which of several .onnx files.")] = "",
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Add a model on disk to the installation's list, once its engine has loaded it."""
    settings = settings_for("speech", data)
    new = NewModel(
        folder=folder,
        model_id=model,
        format=format_,
        languages=tuple(language),
        licence=licence,
        origin=origin,
        title=title,
        weights=weights,
    )
    try:
        card = add_model(new, settings.models, Files())
    except OSError as error:
        raise unusable(settings.models, error) from error
    if as_json:
        terminal.print_json(card)
        return
    speaks = card.purpose == "synthesise"
    said = text(
        "speech.add.added",
        terminal.locale(),
        model=card.id,
        file=str(settings.models / LIST_NAME),
        count=len(card.files),
        variable="ETUDE_SPEECH_VOICE" if speaks else "ETUDE_SPEECH_RECOGNISER",
    )
    terminal.print_text(said)


def _print(report: SpeechReport) -> None:
    for engine in report.engines:
        _print_engine(engine)
    for model in report.models:
        terminal.print_text(_model_line(model))
    for found in report.languages:
        can = {
            kind: _said("yes" if getattr(found, kind) else "no")
            for kind in ("recognise", "align", "synthesise")
        }
        terminal.print_text(f"  {_said('language', language=found.language, **can)}")
    chinese = next(one for one in report.languages if one.language == "zh")
    if not (chinese.recognise and chinese.synthesise):
        terminal.print_text(f"! {_said('chinese')}")
    _print_round_trip(report)
    terminal.print_text(_said("sound" if report.is_sound else "failed"))


def _print_engine(found: EngineFinding) -> None:
    kind = text(f"speech.kind.{found.kind}", terminal.locale())
    if found.card is None:
        problem = "" if found.problem is None else terminal.explain(found.problem)
        terminal.print_text(f"✗ {_said('engine_failed', kind=kind, message=problem)}")
        return
    card = found.card
    line = _said(
        "engine",
        kind=kind,
        engine=card.engine,
        model=card.model,
        languages=", ".join(card.languages),
        licence=card.licence or _said("licence_of_server"),
        load_ms=found.load_ms,
    )
    terminal.print_text(f"✓ {line}")
    if card.notice:
        terminal.print_text(_said("notice", notice=card.notice))


def _model_line(found: ModelFinding) -> str:
    card = found.card
    how = {
        "model": card.id,
        "title": card.title,
        "licence": card.licence,
        "source": card.source,
    }
    if found.error is None:
        return f"{_MARKS[True]} {_said('model', **how)}"
    if found.error == ModelMissingError.code:  # no fault: a list names more than anybody needs
        return f"- {_said('model_failed', problem=_said('model_missing'), **how)}"
    return f"{_MARKS[False]} {_said('model_failed', problem=_said('model_changed'), **how)}"


def _print_round_trip(report: SpeechReport) -> None:
    trip = report.round_trip
    if trip is None:
        terminal.print_text(f"✗ {_said('no_round_trip')}")
        return
    line = _said(
        "round_trip",
        said=trip.said,
        heard=trip.heard,
        percent=round(trip.words_kept * 100),
        took_ms=trip.took_ms,
    )
    terminal.print_text(f"{_MARKS[trip.understood]} {line}")


def _said(name: str, /, **params: str | int) -> str:
    return text(f"speech.check.{name}", terminal.locale(), **params)


def _shown(report: SpeechReport) -> dict[str, Any]:
    engines = [
        {
            "kind": one.kind,
            "card": one.card,
            "error": one.error,
            "message": None if one.problem is None else terminal.explain(one.problem),
            "load_ms": one.load_ms,
        }
        for one in report.engines
    ]
    shown: dict[str, Any] = msgspec.to_builtins(
        {
            "ok": report.is_sound,
            "engines": engines,
            "models": report.models,
            "languages": report.languages,
            "round_trip": report.round_trip,
        }
    )
    return shown
