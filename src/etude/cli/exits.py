"""Exit codes, the same for every command; `docs/cli.md` lists them.

Derived from `EtudeError.status`, so a new error has its exit code without being listed anywhere.
"""

from typing import Final

from etude.errors import EtudeError

OK: Final = 0
REFUSED: Final = 1  # also: a check or a lint found something
USAGE: Final = 2  # wrong arguments or settings
NOT_FOUND: Final = 3
UNAVAILABLE: Final = 4  # a part that is needed is away, full, too busy or not installed
INTERNAL: Final = 70  # a defect of Etude (sysexits' EX_SOFTWARE)
INTERRUPTED: Final = 130  # Ctrl-C

_OF_STATUS: Final = {400: USAGE, 404: NOT_FOUND, 410: NOT_FOUND, 429: UNAVAILABLE}


def exit_code(error: EtudeError) -> int:
    """Return the process's exit code for an error that ended a command."""
    listed = _OF_STATUS.get(error.status)
    if listed is not None:
        return listed
    if error.status in {502, 503, 504}:
        return UNAVAILABLE
    return INTERNAL if error.status >= 500 else REFUSED  # noqa: PLR2004 - RFC 9110 §15.6
