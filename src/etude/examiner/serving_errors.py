"""What can go wrong where reports, reviews and cards are served."""

from etude.errors import ConflictError, GoneError, NotFoundError


class RevisionUnknownError(NotFoundError):
    """The session's report has no such revision. Parameters `session_id`, `revision`."""

    code = "REVISION_UNKNOWN"


class ReportFailedError(ConflictError):
    """Making the report failed again and again. Parameters `session_id`, `reason` (a code)."""

    code = "REPORT_FAILED"


class ReviewSubjectUnknownError(NotFoundError):
    """The session has no event of this id that could be reviewed. Parameter `event_id`."""

    code = "REVIEW_SUBJECT_UNKNOWN"


class CardUnknownError(NotFoundError):
    """There is no such card."""

    code = "CARD_UNKNOWN"


class CardExpiredError(GoneError):
    """The card's time is over."""

    code = "CARD_EXPIRED"


class CardRevokedError(GoneError):
    """The card was taken back."""

    code = "CARD_REVOKED"


class CardLimitError(ConflictError):
    """The session has as many cards as it may. Parameter `limit`."""

    code = "CARD_LIMIT"
