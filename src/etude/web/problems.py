"""Every failure, on every route, as one document: RFC 9457 `application/problem+json`.

`type` is `urn:etude:error:<CODE>`; the codes are listed in `docs/errors.md`. `title` and `detail`
are in the language of `Accept-Language`. `instance` is the request's id, which the log repeats. The
error's parameters follow as members of their own.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from litestar import Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    SerializationException,
    ValidationException,
)
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from etude import i18n
from etude.errors import EtudeError, UnauthenticatedError
from etude.store.failures import where
from etude.web.context import context_of
from etude.web.errors import (
    BodyCutOffError,
    BodyMalformedError,
    BodyTimeoutError,
    BodyTooLargeError,
    EncodingUnknownError,
    HttpError,
    MethodNotAllowedError,
    RequestInvalidError,
    RequestMalformedError,
    RouteNotFoundError,
)
from etude.web.services import HttpRequest

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:etude:error:"
RESERVED: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "errors", "http_status"}
)
MAX_FIELD_ERRORS: Final = 20

log = structlog.get_logger("etude.web")


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One thing wrong with a request: where (`body.name`, `query.limit`) and what, technically."""

    field: str
    reason: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One of several errors that a problem gathers (a refused line); its parameters follow."""

    code: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem document (RFC 9457). Further members are the error's parameters."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[FieldError] | msgspec.UnsetType = msgspec.UNSET


def answer_problem(request: HttpRequest, exception: Exception) -> Response[bytes]:
    """Turn whatever a route raised into its problem document."""
    error, fields = understand(exception)
    context = context_of(request.scope)
    if context.disconnected:  # Litestar reports it as a fault of its own
        error = BodyCutOffError()
    status = status_of(error)
    context.code = error.code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(exception, context.id, error.code)
    locale = i18n.negotiate(request.headers.get("accept-language"))
    return Response(
        content=document(error, fields, context.id, locale),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=_headers(request, error) | {"Content-Language": locale},
    )


def understand(exception: Exception) -> tuple[EtudeError, list[FieldError]]:
    """Map any exception to an error of ours; what nobody foresaw becomes `INTERNAL`."""
    if isinstance(exception, EtudeError):
        return exception, []
    if isinstance(exception, ValidationException):
        fields = _field_errors(exception.extra)
        named = ", ".join(dict.fromkeys(each.field for each in fields)) or "?"
        return RequestInvalidError(field=named), fields
    if isinstance(exception, HTTPException):
        return _refusal(exception), []
    return EtudeError(), []


JSON_LIMIT_BYTES: Final = 1024 * 1024


def _refusal(exception: HTTPException) -> EtudeError:
    """Map what Litestar refuses by itself."""
    if isinstance(exception, MethodNotAllowedException):
        return MethodNotAllowedError(allowed=_allowed(exception.headers))
    if isinstance(exception, RequestEntityTooLarge):
        return BodyTooLargeError(limit_bytes=JSON_LIMIT_BYTES)
    if isinstance(exception.__cause__, SerializationException):
        return BodyMalformedError()
    status = exception.status_code
    if status == HTTPStatus.NOT_FOUND:
        return RouteNotFoundError()
    if status == HTTPStatus.BAD_REQUEST:
        return RequestMalformedError()
    return (
        HttpError(http_status=status) if status < HTTPStatus.INTERNAL_SERVER_ERROR else EtudeError()
    )


def status_of(error: EtudeError) -> int:
    """Return the HTTP status that `error` is answered with."""
    return int(error.params.get("http_status", error.status))


def document(
    error: EtudeError, fields: Sequence[FieldError], request_id: str, locale: str
) -> bytes:
    """Write the problem document of `error` in `locale`."""
    status = status_of(error)
    title = _title(status, locale)
    problem = Problem(
        type=TYPE_PREFIX + error.code,
        title=title,
        status=status,
        detail=_detail(error, locale, title),
        instance=f"urn:uuid:{request_id}",
        code=error.code,
        errors=list(fields) if fields else msgspec.UNSET,
    )
    members: dict[str, Any] = msgspec.to_builtins(problem)
    members.update({k: v for k, v in error.params.items() if k not in RESERVED})
    if error.parts:
        members["errors"] = [_part(part, locale) for part in error.parts]
    return msgspec.json.encode(members)


def _part(part: EtudeError, locale: str) -> dict[str, Any]:
    """One of several errors that a problem gathers, such as a refused line of a body."""
    return {**part.params, "code": part.code, "message": _detail(part, locale, part.code)}


def _title(status: int, locale: str) -> str:
    try:
        return i18n.text(f"problem.title.{status}", locale)
    except KeyError:
        return HTTPStatus(status).phrase


def _detail(error: EtudeError, locale: str, title: str) -> str:
    try:
        return i18n.text(f"error.{error.code}", locale, **error.params)
    except (KeyError, IndexError, ValueError):  # a message nobody wrote must not become a 500
        log.warning("message missing", action="problem.text_missing", code=error.code)
        return title


def _headers(request: HttpRequest, error: EtudeError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if isinstance(error, UnauthenticatedError):
        shown = "authorization" in request.headers
        headers["WWW-Authenticate"] = 'Bearer realm="etude"' + (
            ', error="invalid_token"' if shown else ""
        )
    if isinstance(error, MethodNotAllowedError):
        headers["Allow"] = str(error.params["allowed"])
    if isinstance(error, EncodingUnknownError):
        headers["Accept-Encoding"] = "gzip, zstd"
    if isinstance(error, BodyTimeoutError):
        headers["Connection"] = "close"
    if "retry_after_s" in error.params:
        headers["Retry-After"] = str(error.params["retry_after_s"])
    return headers


def _allowed(headers: Mapping[str, str] | None) -> str:
    methods = {each.strip() for each in (headers or {}).get("allow", "").split(",") if each.strip()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _field_errors(extra: object) -> list[FieldError]:
    found: list[FieldError] = []
    for each in extra if isinstance(extra, list) else []:
        source = getattr(each.get("source"), "value", each.get("source")) or "body"
        # A parameter that would hide a word of Python's own has one more `_` there than outside.
        key = str(each.get("key") or "").rstrip("_")
        found.append(
            FieldError(
                field=f"{source}.{key}" if key else str(source), reason=str(each.get("message", ""))
            )
        )
    return found[:MAX_FIELD_ERRORS]


def log_failure(exception: BaseException, request_id: str, code: str) -> None:
    """Log a failure of the server's own by its kind and place, never by its text.

    The text of an exception may quote a learner's words or a token (`docs/rules.md 50`).
    """
    log.error(
        "request failed",
        action="http.failed",
        request_id=request_id,
        code=code,
        error=type(exception).__qualname__,
        caused_by=[type(cause).__qualname__ for cause in _causes(exception)],
        where=where(exception),
    )


def _causes(exception: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    cause = exception.__cause__ or exception.__context__
    while cause is not None and len(causes) < 5:  # noqa: PLR2004 - enough to find the source
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes
