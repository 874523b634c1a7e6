"""What can go wrong with apps and tasks. Messages: `i18n/*/practice.toml`."""

from etude.errors import ConflictError, InvalidError, NotFoundError


class AppFileError(InvalidError):
    """An app file cannot be used; `file` and `line` say where."""

    code = "APP_FILE_INVALID"


class AppFileUnreadableError(AppFileError):
    """The file cannot be read, or is no text in UTF-8."""

    code = "APP_FILE_UNREADABLE"


class AppFileMalformedError(AppFileError):
    """The file is not YAML, or not JSON."""

    code = "APP_FILE_MALFORMED"


class AppKeyUnknownError(AppFileError):
    """A key that no app, task or assessment has."""

    code = "APP_KEY_UNKNOWN"


class AppKeyMissingError(AppFileError):
    """A key without which the app means nothing."""

    code = "APP_KEY_MISSING"


class AppKeyTwiceError(AppFileError):
    """The same key, app or task is declared twice."""

    code = "APP_KEY_TWICE"


class AppValueError(AppFileError):
    """A value that its key cannot have."""

    code = "APP_VALUE_INVALID"


class AppVerdictError(AppFileError):
    """The app asks for a verdict, which this runtime does not give (`rulings.md` 19)."""

    code = "APP_VERDICT_REFUSED"


class AppTimingError(AppFileError):
    """A follow-read that judges in the stream (`rulings.md` 19)."""

    code = "APP_TIMING_REFUSED"


class TaskUnknownError(NotFoundError):
    """No app declares the task."""

    code = "TASK_UNKNOWN"


class FollowReadMoveError(ConflictError):
    """The follow-read cannot do that where it stands."""

    code = "FOLLOW_READ_MOVE_ILLEGAL"
