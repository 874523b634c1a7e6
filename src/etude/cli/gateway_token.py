"""Making the token that the gateway shows to web, for `init` and `upgrade`.

Its file is written before the transaction that makes it valid: a kill in between leaves a text that
nobody knows, which the next run sees and replaces. It is made anew whenever it does not work, so
removing the file, or revoking the token, and running `etude init` is how it is changed.
"""

from datetime import datetime
from pathlib import Path
from typing import Final

from etude.cli.installation import make_folder, unusable
from etude.errors import UnauthenticatedError
from etude.files import Files, crash_point, replace_file
from etude.people import audit
from etude.people.errors import GatewayTokenMissingError
from etude.people.gateway_token import FILE, path_of, read_gateway_token
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, authenticate, create_token
from etude.store import UnitOfWork

SERVICE: Final = "gateway"
SCOPES: Final = (Scope.SESSIONS_WRITE, Scope.UPLOAD_ON_BEHALF, Scope.GATEWAY_LINK)


async def ensure_gateway_token(work: UnitOfWork, files: Files, data: Path, now: datetime) -> bool:
    """Make the gateway's token unless the one in its file does all it has to; return whether.

    Raises:
        FolderUnusableError: the file cannot be written; nothing was made.
    """
    if await _works(work, data, now):
        return False
    wanted = TokenRequest(kind="service", principal_id=SERVICE, scopes=SCOPES, label=FILE)
    made = await create_token(work.connection, wanted, now)
    await audit.record(work, HOST, "token.made", subject=("token", made.token.token_key), now=now)
    _write(files, path_of(data), made.text)
    crash_point("cli.gateway_token.written")
    return True


def _write(files: Files, path: Path, text: str) -> None:
    make_folder(files, path.parent)
    try:
        replace_file(files, path, text.encode() + b"\n")
    except OSError as error:
        raise unusable(path, error) from error


async def _works(work: UnitOfWork, data: Path, now: datetime) -> bool:
    try:
        principal = await authenticate(work.connection, read_gateway_token(data), now)
    except (GatewayTokenMissingError, UnauthenticatedError):
        return False
    return principal.scopes.issuperset(SCOPES)
