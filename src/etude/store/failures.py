"""Say in a log where something failed, without the words that came with it."""

import traceback

from etude.errors import EtudeError


def error_code(error: BaseException) -> str:
    """Return the stable code of an error of Etude, else the name of its class."""
    return error.code if isinstance(error, EtudeError) else type(error).__name__


def where(error: BaseException) -> str:
    """Return the frames of a traceback, innermost first: `file:line function`.

    A driver's message repeats the values of the row it failed on, and those may be a child's
    (`docs/rules.md 50`): a log keeps the class and the place.
    """
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(
        f"{frame.filename.rpartition('/etude/')[2]}:{frame.lineno} {frame.name}"
        for frame in reversed(frames)
    )
