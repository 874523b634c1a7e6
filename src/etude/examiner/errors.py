"""What can go wrong with a report."""

from etude.errors import ConflictError, InvalidError


class NoEventsError(ConflictError):
    """There are no events, so there is nothing to report."""

    code = "REPORT_WITHOUT_EVENTS"


class SessionsMixedError(InvalidError):
    """The events are of several sessions; a report is about one. Parameter `sessions`."""

    code = "SESSIONS_MIXED"


class ReportUnreadableError(InvalidError):
    """What should be a report is none. Parameters `file`, `reason`."""

    code = "REPORT_UNREADABLE"


__all__ = [
    "NoEventsError",
    "ReportUnreadableError",
    "SessionsMixedError",
]
