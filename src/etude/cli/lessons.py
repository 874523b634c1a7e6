"""`etude lesson`: check the folder of a lesson, and put it where the gateway looks for it.

Exit codes of both: 0 done (perhaps with warnings), 1 the lesson has errors, 3 no such folder,
4 the disk or a library does not work.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from etude.cli import exits, terminal
from etude.cli.installation import require_folder, settings_for
from etude.cli.speech_options import speech_options
from etude.files import Files
from etude.i18n import text
from etude.practice.lesson_build import CheckedLesson, check_lesson, write_manifest
from etude.practice.lesson_install import install_lesson
from etude.practice.lesson_speaking import Line, lines_to_speak, speak_lines
from etude.settings import Settings
from etude.speech.engines import Engines

app = typer.Typer()

Language = Literal["en", "zh"]

FolderArgument = Annotated[
    Path, typer.Argument(help="With 01.mp3 and 01.txt, 02.mp3 …", metavar="FOLDER")
]


@app.command()
def build(
    folder: FolderArgument,
    *,
    speak: Annotated[
        bool, typer.Option("--speak", help="Speak the clips that are missing, from their texts.")
    ] = False,
    language: Annotated[
        Language | None,
        typer.Option(help="Of all texts; else zh for Chinese characters, en for others."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check clips and texts of a lesson and write its lesson.json.

    All findings are named at once; audio that is there is not changed. With errors (exit code 1)
    nothing is written. With --speak the configured voice makes the clips that are missing, if
    nothing else is wrong; lesson.json then names the voice and its licence.
    """
    checked = check_lesson(folder)
    if speak and (lines := lines_to_speak(checked, language)):
        _speak(lines, settings_for("lesson", data))
        checked = check_lesson(folder)
    written = None if checked.errors else write_manifest(checked, Files())
    if as_json:
        terminal.print_json(
            _shown(checked) | {"written": None if written is None else str(written)}
        )
    else:
        _print_findings(checked)
        if written is not None:
            _print_total(checked, "lesson.built", str(written))
    if checked.errors:
        raise typer.Exit(exits.REFUSED)


@app.command()
def install(
    folder: FolderArgument,
    *,
    app_id: Annotated[str, typer.Option("--app", help="The app's id: english_learning.")],
    task_id: Annotated[str, typer.Option("--task", help="The task's id: shadowing.")],
    lesson_id: Annotated[
        str | None, typer.Option("--lesson", help="The lesson's id; else the folder's name.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another lesson of that name.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check a lesson and copy it into the data folder, whole or not at all.

    Devices that start the task from then on play it. A lesson with errors is not installed.
    """
    settings = settings_for("lesson", data)
    require_folder(settings)
    checked = check_lesson(folder, lesson_id)
    if not as_json or checked.errors:
        _print_findings(checked)
    installed = install_lesson(checked, settings.lessons, app_id, task_id, replace=replace)
    if as_json:
        shown = {"folder": str(installed.folder), "changed": installed.changed}
        terminal.print_json(_shown(checked) | shown)
    else:
        key = "lesson.installed" if installed.changed else "lesson.unchanged"
        _print_total(checked, key, str(installed.folder))


def _speak(lines: tuple[Line, ...], settings: Settings) -> None:
    """Speak with the configured voice, and say so, as the licence asks whoever ships it."""
    voice = Engines(speech_options(settings)).synthesiser()
    kept = settings.spoken if settings.data.is_dir() else None

    def told(line: Line, number: int) -> None:
        terminal.print_note(
            text(
                "lesson.speaking",
                terminal.locale(),
                file=line.clip.name,
                number=number,
                count=len(lines),
            )
        )

    spoken = speak_lines(lines, voice, kept, Files(), told)
    terminal.print_note(
        text(
            "lesson.spoken",
            terminal.locale(),
            count=len(lines),
            kept=len(lines) - spoken,
            engine=voice.card.engine,
            model=voice.card.model,
            licence=voice.card.licence or text("speech.check.licence_of_server", terminal.locale()),
        )
    )
    if voice.card.notice:
        terminal.print_note(voice.card.notice)


def _print_findings(checked: CheckedLesson) -> None:
    for one in checked.findings:
        severity = text(f"lesson.severity.{one.severity}", terminal.locale())
        terminal.print_note(f"{one.file}: {severity}: {one.message(terminal.locale())}")


def _print_total(checked: CheckedLesson, key: str, path: str) -> None:
    clips = checked.manifest.clips
    seconds = round(sum(clip.duration_ms for clip in clips) / 1000)
    line = text(key, terminal.locale(), path=path, count=len(clips), seconds=seconds)
    terminal.print_text(line)


def _shown(checked: CheckedLesson) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(checked.manifest)
    shown["errors"] = checked.errors
    shown["findings"] = [
        msgspec.to_builtins(one) | {"message": one.message(terminal.locale())}
        for one in checked.findings
    ]
    return shown
