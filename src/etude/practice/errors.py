"""What can go wrong with apps and tasks. Messages: `i18n/*/practice.toml`.

Other mistakes in app files are those of `etude.documents`.
"""

from etude.errors import ConflictError, InvalidError, NotFoundError


class AppFileUnreadableError(InvalidError):
    """The file cannot be read, or is no text in UTF-8."""

    code = "APP_FILE_UNREADABLE"


class AppVerdictError(InvalidError):
    """The app asks for a verdict, which this runtime does not give (`docs/rules.md 19`)."""

    code = "APP_VERDICT_REFUSED"


class AppTimingError(InvalidError):
    """A follow-read that judges in the stream (`docs/rules.md 19`)."""

    code = "APP_TIMING_REFUSED"


class TaskUnknownError(NotFoundError):
    """No app declares the task."""

    code = "TASK_UNKNOWN"


class FollowReadMoveError(ConflictError):
    """The follow-read cannot do that where it stands."""

    code = "FOLLOW_READ_MOVE_ILLEGAL"
