"""Where the gateway's own token is: a file of the keys folder. Read without a database."""

from pathlib import Path
from typing import Final

from etude.people.errors import GatewayTokenMissingError

FILE: Final = "gateway.token"


def path_of(data: Path) -> Path:
    """Return the token's file in the data folder `data`."""
    return data / "keys" / FILE


def read_gateway_token(data: Path) -> str:
    """Return the token that the gateway shows to web, as the file has it now.

    Raises `GatewayTokenMissingError`: it is not there or cannot be read; `etude init` makes it.
    """
    path = path_of(data)
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GatewayTokenMissingError(file=str(path)) from error
    if not text:
        raise GatewayTokenMissingError(file=str(path))
    return text
