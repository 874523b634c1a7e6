"""What can go wrong between who publishes and the server that is published to."""

from etude.courseware.errors import GateError
from etude.errors import (
    ConflictError,
    EtudeError,
    InvalidError,
    UnavailableError,
)


class PublicUrlMissingError(UnavailableError):
    """The server does not know under which address people reach it. Parameter `variable`."""

    code = "PUBLIC_URL_MISSING"


class SubmissionInvalidError(InvalidError):
    """What came is no publication. Parameter `reason`."""

    code = "SUBMISSION_INVALID"


class CoursewareForeignError(GateError):
    """A courseware of this id belongs to another course. Parameter `courseware`."""

    code = "COURSEWARE_FOREIGN"


class PublishCancelledError(ConflictError):
    """The publication was cancelled before its end; nothing was published."""

    code = "PUBLISH_CANCELLED"


class PublishServerError(EtudeError):
    """A course could not be published at its server. Parameter `server`."""

    code = "PUBLISH_SERVER"
    status = 502


class PublishServerUnreachableError(PublishServerError):
    """The server is away, or the connection broke: publish again. Parameter `reason`."""

    code = "PUBLISH_SERVER_UNREACHABLE"


class PublishServerTokenError(PublishServerError):
    """The server has other publish tokens."""

    code = "PUBLISH_SERVER_TOKEN"


class PublishServerStrangeError(PublishServerError):
    """Who answers takes no publications. Parameters `httpStatus`, `reason`."""

    code = "PUBLISH_SERVER_STRANGE"


class PublishServerFailedError(PublishServerError):
    """The server could not do it. Parameters `httpStatus`, `remoteCode`, `reason`."""

    code = "PUBLISH_SERVER_FAILED"


class PublishServerReasonError(PublishServerError):
    """A reason of a newer server. Parameters `remoteCode`, `reason`."""

    code = "PUBLISH_SERVER_REASON"


class PublishReceiptMismatchError(PublishServerError):
    """What the server says it published is not what was sent. Parameters `part`, `found`."""

    code = "PUBLISH_RECEIPT_MISMATCH"
