"""What can go wrong with people, devices and tokens.

Errors that name a learner are discreet: their text (for logs and tracebacks) is the code alone,
because ids of learners never appear in logs (`docs/rules.md 50`). The faces still read `params`.
"""

from etude.errors import (
    ConflictError,
    EtudeError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MalformedError,
    NotFoundError,
    UnauthenticatedError,
    UnavailableError,
)


class _DiscreetError(EtudeError):
    """Keeps its parameters out of `str()` and `repr()`."""

    def __init__(self, **params: str | float) -> None:
        super().__init__(**params)
        self.args = ()

    def __str__(self) -> str:
        return self.code


class TokenMissingError(UnauthenticatedError):
    """The request carries no bearer token."""

    code = "TOKEN_MISSING"


class TokenInvalidError(UnauthenticatedError):
    """The token is malformed, unknown, expired or revoked; which of these is not told."""

    code = "TOKEN_INVALID"


class ScopeForbiddenError(ForbiddenError):
    """The token is known but lacks the scope that this needs."""

    code = "FORBIDDEN_SCOPE"


class ScopeUnknownError(InvalidError):
    """There is no such scope."""

    code = "SCOPE_UNKNOWN"


class ScopeNotAllowedError(InvalidError):
    """This kind of principal can never hold that scope."""

    code = "SCOPE_NOT_ALLOWED"


class TokenExpiryError(InvalidError):
    """A token must expire after it is made."""

    code = "TOKEN_EXPIRY_PAST"


class TokenUnknownError(NotFoundError):
    """No token has this public part."""

    code = "TOKEN_UNKNOWN"


class LearnerUnknownError(_DiscreetError, NotFoundError):
    """No learner has this id."""

    code = "LEARNER_UNKNOWN"


class LearnerErasedError(GoneError):
    """The learner was erased; nothing of them is kept or accepted any more (`docs/rules.md 49`)."""

    code = "LEARNER_ERASED"


class DeviceUnknownError(NotFoundError):
    """No device has this id."""

    code = "DEVICE_UNKNOWN"


class DeviceExistsError(ConflictError):
    """A device with this id is registered already."""

    code = "DEVICE_EXISTS"


class HolderOverlapError(_DiscreetError, ConflictError):
    """Somebody else holds the device during a part of that time; the parameters name them."""

    code = "HOLDER_OVERLAP"


class HolderIntervalError(InvalidError):
    """A holder's time must end after it starts."""

    code = "HOLDER_INTERVAL_EMPTY"


class TimeOutOfRangeError(InvalidError):
    """A time has no offset from UTC, or lies before 1970 or after 9998."""

    code = "TIME_OUT_OF_RANGE"


class HolderMissingError(ConflictError):
    """Nobody holds the device at that time, so it cannot be given back."""

    code = "HOLDER_MISSING"


class StaffUnknownError(NotFoundError):
    """No member of staff has this sign-in name."""

    code = "STAFF_UNKNOWN"


class StaffExistsError(ConflictError):
    """The sign-in name is taken."""

    code = "STAFF_EXISTS"


class IdInvalidError(InvalidError):
    """An id that a person chooses is not of letters, digits and `. _ : @ -`, or is too long."""

    code = "ID_INVALID"


class NameInvalidError(InvalidError):
    """A name or label is empty, too long or holds control characters."""

    code = "NAME_INVALID"


class PasswordLengthError(InvalidError):
    """The password is shorter or longer than allowed."""

    code = "PASSWORD_LENGTH"


class PasswordNotTextError(InvalidError):
    """The password holds bytes that are no text, so it could never be typed again."""

    code = "PASSWORD_NOT_TEXT"


class CursorInvalidError(MalformedError):
    """The `cursor` of a list was not made by the list itself."""

    code = "CURSOR_INVALID"


class ExportTargetError(ConflictError):
    """The file of an export exists already or cannot be written; nothing was left behind."""

    code = "EXPORT_TARGET"


class CommandUnknownError(NotFoundError):
    """The device was given no command with this `msg_id`, or it was settled too long ago."""

    code = "COMMAND_UNKNOWN"


class MessageIdTakenError(ConflictError):
    """The `msg_id` names another command already. The same one may be sent again and again."""

    code = "MESSAGE_ID_TAKEN"


class DeviceCredentialInvalidError(UnauthenticatedError):
    """A device's credential is malformed, forged, or signed with a key that is not accepted."""

    code = "DEVICE_CREDENTIAL_INVALID"


class DeviceCredentialExpiredError(UnauthenticatedError):
    """A device's credential was valid once; the device gets another at its next start."""

    code = "DEVICE_CREDENTIAL_EXPIRED"


class DeviceKeyMissingError(EtudeError):
    """A key that signs devices' credentials is not there, cannot be read, or is no key."""

    code = "DEVICE_KEY_MISSING"


class BindCodeUnknownError(NotFoundError):
    """No device shows this code."""

    code = "BIND_CODE_UNKNOWN"


class BindCodeExpiredError(GoneError):
    """The code's time is over; the device shows another one."""

    code = "BIND_CODE_EXPIRED"


class BindCodeUsedError(ConflictError):
    """Somebody has bound a device with this code already."""

    code = "BIND_CODE_USED"


class BindProofMissingError(ConflictError):
    """The device names a serial number whose key is known, and has not proven it yet."""

    code = "BIND_PROOF_MISSING"


class DeviceBoundElsewhereError(ConflictError):
    """The device is bound with another client id; binding it anew must be asked for."""

    code = "DEVICE_BOUND_ELSEWHERE"


class DeviceNotBoundError(ConflictError):
    """The device is not bound."""

    code = "DEVICE_NOT_BOUND"


class SerialKeyInvalidError(InvalidError):
    """A line of a file of serial numbers and keys is not `serial,key`; keys are never shown."""

    code = "SERIAL_KEY_INVALID"


class SerialKeysUnreadableError(EtudeError):
    """The file that keeps the keys of serial numbers is damaged."""

    code = "SERIAL_KEYS_UNREADABLE"


class SerialFileUnreadableError(InvalidError):
    """A file of serial numbers and keys cannot be read, or is no text in UTF-8."""

    code = "SERIAL_FILE_UNREADABLE"


class GatewayTokenMissingError(UnavailableError):
    """The file with the gateway's token is not there or cannot be read."""

    code = "GATEWAY_TOKEN_MISSING"
