"""What can be wrong with what says how a session is read."""

from etude.errors import InvalidError, NotFoundError


class PolarityTableInvalidError(InvalidError):
    """A polarity table breaks its form. Parameter `reason` names the place."""

    code = "POLARITY_TABLE_INVALID"


class RubricFileUnreadableError(InvalidError):
    """A rubric's file cannot be read. Parameters `file` and `reason`."""

    code = "RUBRIC_FILE_UNREADABLE"


class RubricFileUnknownError(NotFoundError):
    """There is no such file. Parameter `file`."""

    code = "RUBRIC_FILE_UNKNOWN"


class RubricUnknownError(NotFoundError):
    """No rubric of this name is at hand, or a session names none (`docs/rules.md 3`)."""

    code = "RUBRIC_UNKNOWN"
