"""`etude doctor`: is this installation sound, and if not, what is there to do."""

from pathlib import Path
from typing import Annotated, Final

import typer

from etude.cli import exits, terminal
from etude.cli.checks import run_all
from etude.cli.installation import settings_for
from etude.clock import SystemClock
from etude.i18n import text

_MARKS: Final = {"ok": "✓", "warning": "!", "failed": "✗"}


def doctor(
    *,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check this installation: exit code 1 if something has to be mended. Changes nothing."""
    checks = run_all(settings_for("doctor", data), SystemClock().now())
    locale = terminal.locale()
    failed = [check.name for check in checks if check.state == "failed"]
    if as_json:
        found = [
            {"name": one.name, "state": one.state, "message": one.message(locale)} for one in checks
        ]
        terminal.print_json({"ok": not failed, "checks": found})
    else:
        for one in checks:
            terminal.print_text(f"{_MARKS[one.state]} {one.message(locale)}")
        verdict = "cli.doctor.failed" if failed else "cli.doctor.sound"
        terminal.print_text(text(verdict, locale, count=len(failed)))
    if failed:
        raise typer.Exit(exits.REFUSED)
