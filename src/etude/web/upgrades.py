"""What may become a WebSocket: the link of a gateway, and nothing else."""

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from etude import i18n
from etude.gateway.link_messages import PATH
from etude.people import scopes
from etude.people.authentication import Authenticator
from etude.web.auth import bearer_of
from etude.web.context import RequestContext
from etude.web.errors import RouteNotFoundError
from etude.web.gateway_link import GatewayLinks
from etude.web.problems import MEDIA_TYPE, document, log_failure, status_of, understand
from etude.web.sockets import Receive, Send, Socket

ROLES: Final = frozenset({"all", "server"})
_REFUSABLE: Final = "websocket.http.response"  # the ASGI server can answer instead of upgrading

Scope: TypeAlias = MutableMapping[str, Any]


class LinkEndpoint:
    """The ASGI application of WebSockets: the link, and a refusal everywhere else."""

    def __init__(self, links: GatewayLinks, authenticator: Authenticator, *, served: bool) -> None:
        """Serve `links` to those whom `authenticator` knows; `served`: this role has the link."""
        self._links = links
        self._authenticator = authenticator
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Who may not have it is refused before it becomes a WebSocket."""

        async def check() -> None:
            principal = await self._authenticator.authenticate(_bearer(scope))
            scopes.require(principal, scopes.Scope.GATEWAY_LINK)

        await receive()  # `websocket.connect`
        try:
            if not self._served or scope["path"] != PATH:
                raise RouteNotFoundError  # noqa: TRY301 - answered like every other refusal
            await check()
        except Exception as failure:  # noqa: BLE001 - the border: each becomes a problem document
            await _refuse(scope, send, failure)
            return
        await send({"type": "websocket.accept"})
        await self._links.hold(Socket(receive, send), check)


def _bearer(scope: Scope) -> str | None:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return bearer_of(headers.get(b"authorization", b"").decode("latin-1"))


async def _refuse(scope: Scope, send: Send, failure: Exception) -> None:
    error, _ = understand(failure)
    status = status_of(error)
    request_id = RequestContext().id
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(failure, request_id, error.code)
    if _REFUSABLE not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    body = document(error, (), request_id, i18n.DEFAULT_LOCALE)
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
    ]
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Bearer realm="etude"'))
    await send({"type": f"{_REFUSABLE}.start", "status": status, "headers": headers})
    await send({"type": f"{_REFUSABLE}.body", "body": body})
