"""`etude events upload`: a file of events, or the journals of a device, to a server.

Only the command's face: what does the work, and the HTTP client with it, is imported when it runs.
"""

from pathlib import Path
from typing import Annotated

import typer

from etude.cli import terminal


def upload(
    source: Annotated[
        Path,
        typer.Argument(
            help="events.jsonl (plain, .gz or -), a session's folder, or a folder of journals.",
            metavar="FILE|JOURNAL",
        ),
    ],
    *,
    server: Annotated[
        str, typer.Option(help="Address of the server.", envvar="ETUDE_SERVER", metavar="URL")
    ],
    token: Annotated[
        str | None, typer.Option(help="Access token.", envvar="ETUDE_TOKEN", show_envvar=True)
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File that holds the access token.", metavar="FILE")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Try once, without waiting and trying again.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Upload sessions; each event is stored once, however often this runs.

    Exit code 1 if the server refused a session or a line, 4 if something is not uploaded yet.
    """
    from etude.cli.uploading import run  # noqa: PLC0415 - the HTTP client takes 0.2 s to import

    code = run(
        source,
        server=server,
        token=read_token(token, token_file),
        once=once,
        as_json=as_json,
    )
    raise typer.Exit(code)


def read_token(token: str | None, token_file: Path | None) -> str:
    """Return the token of a file if one is named, else the one given."""
    from etude.edge.errors import (  # noqa: PLC0415 - see `upload`
        TokenFileUnreadableError,
        TokenUnusableError,
    )

    if token_file is not None:
        try:
            return token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise TokenFileUnreadableError(file=str(token_file), reason=reason) from error
    if not token:
        raise TokenUnusableError(reason="none given")
    return token.strip()
