"""Who is asking: the bearer token of a request, checked before anything of its body is read."""

from typing import Final

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from etude.errors import ForbiddenError
from etude.people.records import Principal
from etude.people.scopes import require
from etude.people.tokens import authenticate
from etude.web.context import context_of
from etude.web.declared import Access, declaration_in
from etude.web.services import HttpRequest, Services

SCHEME: Final = "bearer"


async def guard(connection: ASGIConnection, handler: BaseRouteHandler) -> None:  # type: ignore[type-arg] # Litestar's own signature
    """Let a request through to its route, or refuse it: the application's guard.

    Raises:
        TokenMissingError, TokenInvalidError: 401, the route is not public and nobody known asks.
        ScopeForbiddenError: 403, the principal has none of the scopes that the route needs.
    """
    declared = declaration_in(handler.opt)
    if declared is None or declared.public:  # Litestar's OPTIONS handlers declare nothing
        return
    services: Services = connection.app.state["services"]
    bearer = bearer_of(connection.headers.get("authorization"))
    async with services.database.read() as reader:
        principal = await authenticate(reader, bearer, services.clock.now())
    require_any(principal, declared.needs)
    context_of(connection.scope).principal = principal


def bearer_of(header: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer …` header (RFC 6750 §2.1), None if it has none."""
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
