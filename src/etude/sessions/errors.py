"""What can go wrong with a session on the server."""

from etude.errors import (
    ConflictError,
    EtudeError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MalformedError,
    NotFoundError,
    TooLargeError,
)


class SessionIdInvalidError(MalformedError):
    """The session id in the path breaks the rule for ids (`docs/events.md §Fields`)."""

    code = "SESSION_ID_INVALID"


class NoValidLineError(InvalidError):
    """Every line of the body was refused; `errors` of the problem document names the first 20."""

    code = "NO_VALID_LINE"


class TooManyLinesError(TooLargeError):
    """The body has more lines than one upload may carry."""

    code = "TOO_MANY_LINES"


class SessionUnknownError(NotFoundError):
    """No such session, or not one that the asker may know of."""

    code = "SESSION_UNKNOWN"


class SessionForeignError(ForbiddenError):
    """The session belongs to another device or learner (`docs/rules.md 4`)."""

    code = "SESSION_FOREIGN"


class SessionNotYetError(EtudeError):
    """A contest came before the session that it is about; send it again later (RFC 8470)."""

    code = "SESSION_NOT_YET"
    status = 425


class DeviceNotNamedError(ForbiddenError):
    """A service token began a session without naming the device it uploads for."""

    code = "DEVICE_NOT_NAMED"


class SessionErasedError(GoneError):
    """The session was erased with its learner and is refused for ever (`docs/rules.md 13, 49`)."""

    code = "SESSION_ERASED"


class SessionEmptyError(ConflictError):
    """The session has no events, so there is nothing to make a recap or report from."""

    code = "SESSION_EMPTY"


class SessionTooLongError(ConflictError):
    """The session's lines are too many to make a recap of while somebody waits."""

    code = "SESSION_TOO_LONG"


class MediaUnknownError(NotFoundError):
    """The session has no such recording."""

    code = "MEDIA_UNKNOWN"


class MediaDigestInvalidError(MalformedError):
    """The path does not end in a sha256 (64 lower-case hexadecimal digits)."""

    code = "MEDIA_DIGEST_INVALID"


class MediaTypeMissingError(MalformedError):
    """A recording came without a usable `Content-Type`."""

    code = "MEDIA_TYPE_MISSING"


class InstanceUnknownError(NotFoundError):
    """No such task instance, or not one that the asker may know of."""

    code = "INSTANCE_UNKNOWN"


class InstancePartUnusableError(InvalidError):
    """A part of a task instance (`place`) cannot be an event: too long, or no usable values."""

    code = "INSTANCE_PART_UNUSABLE"


class RecordingUnusableError(InvalidError):
    """The recording of a chat report is not what it must be (`reason`: base64, WAV)."""

    code = "RECORDING_UNUSABLE"
