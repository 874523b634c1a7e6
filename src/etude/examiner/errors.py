"""What can go wrong with a report."""

from etude.errors import ConflictError, InvalidError, NotFoundError


class SessionEmptyError(ConflictError):
    """The session has no events, so there is nothing to report."""

    code = "SESSION_EMPTY"


class SessionsMixedError(InvalidError):
    """The events are of several sessions; a report is about one. Parameter `sessions`."""

    code = "SESSIONS_MIXED"


class ReportUnreadableError(InvalidError):
    """What should be a report is none. Parameters `file`, `reason`."""

    code = "REPORT_UNREADABLE"


class ReportUnknownError(NotFoundError):
    """There is no report of this name. Parameter `report`."""

    code = "REPORT_UNKNOWN"


__all__ = [
    "ReportUnknownError",
    "ReportUnreadableError",
    "SessionEmptyError",
    "SessionsMixedError",
]
