"""`etude upgrade`: bring an installation to this version, forward only."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from etude.cli import terminal
from etude.cli.gateway_token import ensure_gateway_token
from etude.cli.installation import make_keys, require_folder, settings_for
from etude.clock import SystemClock
from etude.files import Files
from etude.i18n import text
from etude.settings import Settings
from etude.store import Database, current_revision, newest_revision
from etude.store import upgrade as upgrade_schema


def upgrade(
    *,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Bring the database to this version's schema.

    All pending steps are one transaction: killed at any instant, the old schema is whole. Make a
    backup first; there is no way back but a backup. Keys that this version needs are made.
    """
    settings = settings_for("upgrade", data)
    require_folder(settings)
    before = asyncio.run(_upgrade(settings))
    after = newest_revision()
    if as_json:
        terminal.print_json({"before": before, "after": after, "changed": before != after})
        return
    finding = "unchanged" if before == after else "done"
    line = text(f"cli.upgrade.{finding}", terminal.locale(), before=before or "-", after=after)
    terminal.print_text(line)


async def _upgrade(settings: Settings) -> str | None:
    before = await current_revision(settings.database_url)
    files = Files()
    make_keys(files, settings.data)
    await upgrade_schema(settings.database_url)
    async with (
        await Database.open(settings.database_url, connections=1) as database,
        database.transaction() as work,
    ):
        await ensure_gateway_token(work, files, settings.data, SystemClock().now())
    return before
