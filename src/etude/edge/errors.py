"""What can go wrong on the edge. Messages: `i18n/*/edge.toml`."""

import errno
from pathlib import Path
from typing import Final

from etude.errors import (
    ConflictError,
    InvalidError,
    MalformedError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
    UnsupportedError,
)

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class SessionIdUnusableError(InvalidError):
    """The session id cannot name a folder or an address."""

    code = "SESSION_ID_UNUSABLE"


class JournalLockedError(ConflictError):
    """Another writer has the session's journal open."""

    code = "JOURNAL_LOCKED"


class JournalSealedError(ConflictError):
    """The session is over and its journal sealed; only contests may follow."""

    code = "JOURNAL_SEALED"


class JournalNotSealedError(ConflictError):
    """The session is not over: contests go into its journal itself."""

    code = "JOURNAL_NOT_SEALED"


class JournalClosedError(ConflictError):
    """The journal was closed or sealed by this writer."""

    code = "JOURNAL_CLOSED"


class JournalForeignEventError(InvalidError):
    """The event belongs to another session than the journal."""

    code = "JOURNAL_FOREIGN_EVENT"


class EventTooLongError(TooLargeError):
    """The event's line is longer than the protocol allows."""

    code = "EVENT_TOO_LONG"


class JournalWaitingError(UnavailableError):
    """The disk would not take the event: it waits in memory and keeps its place."""

    code = "JOURNAL_WAITING"


class JournalDiskFullError(JournalWaitingError):
    """No space left on the device, in the quota, or under the file size limit."""

    code = "JOURNAL_DISK_FULL"


class JournalWriteError(JournalWaitingError):
    """The disk failed in another way than by being full."""

    code = "JOURNAL_WRITE_FAILED"


class JournalUnreadableError(UnavailableError):
    """A file of the journal cannot be read."""

    code = "JOURNAL_UNREADABLE"


class SealBrokenError(ConflictError):
    """A sealed journal is not what its seal says."""

    code = "SEAL_BROKEN"


class MediaTypeUnknownError(UnsupportedError):
    """A recording in a form that no upload accepts."""

    code = "MEDIA_TYPE_UNKNOWN"


class MediaTooLargeError(TooLargeError):
    """A recording over the limit of an upload."""

    code = "MEDIA_TOO_LARGE"


class IllegalMoveError(ConflictError):
    """The session is not at a point where this may happen."""

    code = "ILLEGAL_MOVE"


class PhaseUnknownError(InvalidError):
    """The session has no such phase, or the phase cannot be reached from here."""

    code = "PHASE_UNKNOWN"


class PhasePlanError(InvalidError):
    """The phases given for a session make no sense."""

    code = "PHASE_PLAN_INVALID"


class EventUnknownError(NotFoundError):
    """The session has no such event."""

    code = "EVENT_UNKNOWN"


class ObservationMissingError(ConflictError):
    """A judgement below 0.8 without what was seen."""

    code = "OBSERVATION_MISSING"


class ConfidenceError(InvalidError):
    """A confidence outside 0 to 1."""

    code = "CONFIDENCE_OUT_OF_RANGE"


class RatingError(InvalidError):
    """A self-assessment outside 1 to 5."""

    code = "RATING_OUT_OF_RANGE"


class OutboxLockedError(ConflictError):
    """Another uploader works on the same journals."""

    code = "OUTBOX_LOCKED"


class ServerAddressError(MalformedError):
    """The address of the server cannot work as given."""

    code = "SERVER_ADDRESS_INVALID"


class TokenUnusableError(MalformedError):
    """No token was given, or one that no header can carry."""

    code = "TOKEN_UNUSABLE"


class TokenFileUnreadableError(NotFoundError):
    """The file of the token cannot be read."""

    code = "TOKEN_FILE_UNREADABLE"


class AnswerInvalidError(UnavailableError):
    """The server's answer is not what the protocol says; nothing counts as acknowledged."""

    code = "ANSWER_INVALID"


def disk_error(error: OSError, path: Path, waiting: int) -> JournalWaitingError:
    """Map an `OSError` of a write to `path`; `waiting` events are kept in memory."""
    if error.errno in _FULL:
        return JournalDiskFullError(path=str(path), waiting=waiting)
    return JournalWriteError(path=str(path), waiting=waiting, reason=error.strerror or str(error))
