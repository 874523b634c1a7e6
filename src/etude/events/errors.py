"""What can be wrong with a line of the event protocol, and with a value that should become one."""

from typing import ClassVar

from etude.errors import InvalidError, NotFoundError, UnavailableError


class LineError(InvalidError):
    """A line that is refused by itself; its neighbours are not touched.

    `code` is the protocol's own lower-case code (`docs/events.md §Lines that are refused`), `line`
    the line's number from 1.
    """

    code: ClassVar[str] = "invalid_json"

    def __init__(self, line: int, **params: str | float) -> None:
        """Say which line; `params` name the field and what was expected of it."""
        super().__init__(line=line, **params)
        self.line = line


class InvalidJsonError(LineError):
    """The line is not one JSON text in UTF-8 (two texts, NaN, a byte order mark, …)."""

    code = "invalid_json"


class MissingFieldError(LineError):
    """A required field is absent. Parameter `field`."""

    code = "missing_field"


class BadTypeError(LineError):
    """A value has the wrong type or range. Parameters `field` (`$`: the line), `expected`."""

    code = "bad_type"


class WrongSessionError(LineError):
    """The event belongs to another session than the one addressed."""

    code = "wrong_session"


class TooLongError(LineError):
    """The line is longer than the protocol allows. Parameter `limit_bytes`."""

    code = "too_long"


class NotEncodableError(InvalidError):
    """A value that JSON, or the protocol's subset of it, cannot say. Parameter `reason`."""

    code = "EVENT_NOT_ENCODABLE"


class EventFileUnknownError(NotFoundError):
    """There is no such file of events. Parameter `file`."""

    code = "EVENT_FILE_UNKNOWN"


class EventFileUnreadableError(UnavailableError):
    """A file of events cannot be read. Parameters `file`, `reason`."""

    code = "EVENT_FILE_UNREADABLE"


__all__ = [
    "BadTypeError",
    "EventFileUnknownError",
    "EventFileUnreadableError",
    "InvalidJsonError",
    "LineError",
    "MissingFieldError",
    "NotEncodableError",
    "TooLongError",
    "WrongSessionError",
]
