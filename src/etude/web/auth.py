"""Who is asking: the bearer token of a request, checked before anything of its body is read."""

from typing import Any, Final, TypeAlias

from litestar.connection import ASGIConnection
from litestar.datastructures import Headers
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler

from etude.courseware.publish_token import PublishToken
from etude.errors import ForbiddenError
from etude.people.errors import TokenInvalidError, TokenMissingError
from etude.people.records import Principal
from etude.people.scopes import require
from etude.web.context import context_of
from etude.web.declared import Access, declaration_in
from etude.web.errors import EncodingUnknownError, MediaTypeError
from etude.web.services import HttpRequest, Services

SCHEME: Final = "bearer"
JSON: Final = "application/json"

Connection: TypeAlias = ASGIConnection[Any, Any, Any, Any]


async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let a request through to its route, or refuse it: the application's guard.

    Raises:
        TokenMissingError, TokenInvalidError: 401, the route is not public and nobody known asks.
        ScopeForbiddenError: 403, the principal has none of the scopes that the route needs.
        MediaTypeError, EncodingUnknownError: 415, the route takes JSON and the body is not.
    """
    declared = declaration_in(handler.opt)
    if declared is None:  # Litestar's own OPTIONS handlers
        return
    if Access.PUBLISH_TOKEN in declared.needs:
        _require_publish_token(connection)
    elif not declared.public:
        await _identify(connection, declared.needs)
    if isinstance(handler, HTTPRouteHandler) and handler.parsed_data_field is not None:
        _require_json(connection.headers)


async def _identify(connection: Connection, needs: tuple[str, ...]) -> None:
    services: Services = connection.app.state["services"]
    bearer = bearer_of(connection.headers.get("authorization"))
    principal = await services.authenticator.authenticate(bearer)
    if principal.token_key is not None:
        services.token_use.note(principal.token_key, services.clock.now())
    require_any(principal, needs)
    context_of(connection.scope).principal = principal


def _require_publish_token(connection: Connection) -> None:
    services: Services = connection.app.state["services"]
    bearer = bearer_of(connection.headers.get("authorization"))
    if bearer is None:
        raise TokenMissingError
    # Where none is set up, none is right: who asks from outside is told no more than that.
    token = PublishToken(services.settings.courseware_publish_token.get_secret_value())
    if not token.accepts(bearer):
        raise TokenInvalidError


def _require_json(headers: Headers) -> None:
    """Refuse a body that the route would misread: it takes plain JSON (RFC 9110 §15.5.16)."""
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise MediaTypeError(expected=JSON)
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise EncodingUnknownError


def bearer_of(header: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer …` header (RFC 6750 §2.1), if it has one."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == SCHEME else None


def require_any(principal: Principal, needs: tuple[str, ...]) -> None:
    """Raise `ScopeForbiddenError` unless the principal has one of the scopes."""
    refused: ForbiddenError | None = None
    for scope in needs:
        if scope == Access.SIGNED_IN:
            return
        try:
            require(principal, scope)
        except ForbiddenError as error:
            refused = error
        else:
            return
    if refused is not None:
        raise refused


def principal_of(request: HttpRequest) -> Principal:
    """Return who is asking, on a route that declared a need other than `Access.PUBLIC`."""
    principal = context_of(request.scope).principal
    if not isinstance(principal, Principal):
        message = "the route is public: it has no principal"
        raise TypeError(message)
    return principal
