"""`etude upgrade`: bring the database to the schema of this version, forward only."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from etude.cli import terminal
from etude.cli.installation import require_folder, settings_for
from etude.i18n import text
from etude.store import current_revision, newest_revision
from etude.store import upgrade as upgrade_schema


def upgrade(
    *,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Bring the database to this version's schema.

    All pending steps are one transaction: killed at any instant, the old schema is whole. Make a
    backup first; there is no way back but a backup.
    """
    settings = settings_for("upgrade", data)
    require_folder(settings)
    before = asyncio.run(_upgrade(settings.database_url))
    after = newest_revision()
    if as_json:
        terminal.print_json({"before": before, "after": after, "changed": before != after})
        return
    finding = "unchanged" if before == after else "done"
    line = text(f"cli.upgrade.{finding}", terminal.locale(), before=before or "-", after=after)
    terminal.print_text(line)


async def _upgrade(url: str) -> str | None:
    before = await current_revision(url)
    await upgrade_schema(url)
    return before
