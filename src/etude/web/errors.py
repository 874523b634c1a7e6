"""Failures of HTTP itself, before a request reaches the noun it is about (RFC 9110 §15.5)."""

from etude.errors import (
    EtudeError,
    MalformedError,
    NotFoundError,
    ThrottledError,
    TooLargeError,
    UnavailableError,
    UnsupportedError,
)


class RouteNotFoundError(NotFoundError):
    """Nothing is served at this address, or not by a server of this role."""

    code = "ROUTE_NOT_FOUND"


class MethodNotAllowedError(EtudeError):
    """The address exists and does not take this method; `allowed` names those it takes."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class RequestInvalidError(MalformedError):
    """A parameter or field of the request is missing, unknown or of the wrong type (`field`)."""

    code = "REQUEST_INVALID"


class RequestMalformedError(MalformedError):
    """The request is not HTTP, or a header that every request needs is not valid."""

    code = "REQUEST_MALFORMED"


class BodyMalformedError(MalformedError):
    """The body is not the JSON that its media type promises."""

    code = "BODY_MALFORMED"


class BodyEncodingError(MalformedError):
    """The body is not whole or not valid in its `Content-Encoding`."""

    code = "BODY_ENCODING_BROKEN"


class MultipartInvalidError(MalformedError):
    """The body is not the parts that its media type promises. Parameter `reason`."""

    code = "MULTIPART_INVALID"


class BodyTooLargeError(TooLargeError):
    """The body is over `limit_bytes`, as sent or once inflated."""

    code = "BODY_TOO_LARGE"


class BodyTimeoutError(EtudeError):
    """The body did not arrive in time."""

    code = "BODY_TIMEOUT"
    status = 408


class BodyCutOffError(MalformedError):
    """The connection ended before the body did. Nobody is left to read this."""

    code = "BODY_CUT_OFF"


class MediaTypeError(UnsupportedError):
    """The body's media type is not `expected`."""

    code = "MEDIA_TYPE_UNSUPPORTED"


class EncodingUnknownError(UnsupportedError):
    """The body's `Content-Encoding` is not one of gzip, zstd, identity."""

    code = "ENCODING_UNSUPPORTED"


class BusyError(ThrottledError):
    """Too many bodies are being worked on in this process; nothing of this one was kept."""

    code = "BUSY"


class HttpError(EtudeError):
    """Any other refusal of the HTTP layer, answered with the status `http_status`."""

    code = "HTTP_ERROR"


class DiskNotWritableError(UnavailableError):
    """A file cannot be written into the data folder."""

    code = "DISK_NOT_WRITABLE"
