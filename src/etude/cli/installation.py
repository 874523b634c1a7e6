"""The data folder and its keys: made by `init`, checked by `doctor`, copied by `backup`."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from etude.cli import logs
from etude.cli.errors import FolderUnusableError, NotInitialisedError
from etude.files import Files, crash_point
from etude.settings import Settings, load

FOLDER_MODE: Final = 0o700
KEY_MODE: Final = 0o600
KEY_BYTES: Final = 32
# What each key signs. Nobody but the server reads them; losing one makes what it signed worthless.
KEYS: Final = (
    "device-token.key",  # credentials of devices (HMAC, `docs/rules.md 43`)
    "server-secret.key",  # sign-ins and links
)


def settings_for(command: str, data: Path | None = None) -> Settings:
    """Read the settings for a short command; its log lines go to stderr.

    Args:
        command: the command's name, a member of each log line.
        data: the folder given on the command line, if any.
    """
    logs.configure("warning", process=command)
    return load(data=data)


def require_folder(settings: Settings) -> None:
    """Raise `NotInitialisedError` if the data folder is not there: what needs it stops here."""
    if not settings.data.is_dir():
        raise NotInitialisedError(folder=str(settings.data))


def keys_folder(data: Path) -> Path:
    """Return the folder of the keys in the data folder."""
    return data / "keys"


def make_folder(files: Files, folder: Path) -> bool:
    """Make a folder that only its owner may enter; return whether it was not there.

    Raises:
        FolderUnusableError: it cannot be made, or is no folder.
    """
    if folder.is_dir():
        return False
    try:
        files.make_folder(folder, FOLDER_MODE)
    except OSError as error:
        raise unusable(folder, error) from error
    return True


def make_keys(files: Files, data: Path) -> list[str]:
    """Make the keys that are missing; return their names.

    A key appears whole or not at all, and is never replaced: of two processes that make it at the
    same time, the one that comes second keeps the first one's.

    Raises:
        FolderUnusableError: they cannot be written.
    """
    folder = keys_folder(data)
    make_folder(files, folder)
    try:
        return [name for name in KEYS if _make_key(files, folder / name)]
    except OSError as error:
        raise unusable(folder, error) from error


def _make_key(files: Files, path: Path) -> bool:
    if path.exists():
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    files.remove(temporary)
    files.write_new(temporary, secrets.token_bytes(KEY_BYTES), KEY_MODE)
    crash_point("cli.key.written")
    made = False
    with contextlib.suppress(FileExistsError):
        files.link(temporary, path)
        made = True
    files.remove(temporary)
    files.sync_folder(path.parent)
    crash_point("cli.key.durable")
    return made


def unusable(folder: Path, error: OSError) -> FolderUnusableError:
    """Return the error that says what the operating system said of a folder."""
    return FolderUnusableError(folder=str(folder), reason=error.strerror or type(error).__name__)
