"""What happens to every request before and after the routes, whatever the outcome.

Outermost ASGI layer: gives the request its id, limits how long its body may take, sets the security
headers, releases what was held for it, and writes one log line. The path is logged as the route's
template, because paths hold ids; headers and bodies are never logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any, Final, TypeAlias

import msgspec
import structlog

from etude import i18n
from etude.errors import EtudeError
from etude.web.context import RequestContext, put_context
from etude.web.errors import BodyTimeoutError
from etude.web.in_flight import InFlight
from etude.web.problems import MEDIA_TYPE, document, log_failure

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


class BodyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a body may pause, and take altogether.

    8 MiB at 256 kbit/s take 262 s: a school's slow line still gets through.
    """

    idle_s: float = 20.0
    total_s: float = 300.0


SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
PROBES: Final = frozenset({"/health", "/ready"})

log = structlog.get_logger("etude.web")


class Front:
    """The whole application as an ASGI callable; `etude.web.app.create_app` makes it."""

    def __init__(
        self,
        app: App,
        sockets: App,
        in_flight: InFlight,
        limits: BodyLimits,
    ) -> None:
        """Wrap `app`; what a request holds of `in_flight` is released at its end.

        `sockets` gets what wants to become a WebSocket.
        """
        self._app = app
        self._sockets = sockets
        self._in_flight = in_flight
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        if scope["type"] == "websocket":
            await self._sockets(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Exchange(self._app, scope, receive, send).run(self._limits, self._in_flight)


class _Exchange:
    """One request and its response."""

    def __init__(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        self._app = app
        # RFC 9110 §9.3.2: HEAD is GET without the content, which the ASGI server leaves out.
        self._scope = dict(scope, method="GET") if scope["method"] == "HEAD" else scope
        self._method = scope["method"]
        self._receive = receive
        self._send = send
        self._context = RequestContext()
        self._started = monotonic()
        self._status = 0
        put_context(self._scope, self._context)

    async def run(self, limits: BodyLimits, in_flight: InFlight) -> None:
        self._idle_s, self._until = limits.idle_s, self._started + limits.total_s
        try:
            await self._app(self._scope, self._receive_in_time, self._send_with_headers)
        except Exception as failure:  # noqa: BLE001 - the outermost border of the process
            await self._last_resort(failure)
        finally:
            in_flight.release(self._context.held_bytes)
            self._log()

    async def _receive_in_time(self) -> Message:
        context = self._context
        if context.body_ended:
            return await self._receive()
        until = self._until + context.more_body_s
        patience_s = min(self._idle_s, until - monotonic())
        try:
            async with asyncio.timeout(patience_s):
                message = await self._receive()
        except TimeoutError:
            context.body_ended = True
            raise BodyTimeoutError from None
        context.disconnected = message["type"] == "http.disconnect"
        context.body_ended = context.disconnected or not message.get("more_body", False)
        return message

    async def _send_with_headers(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [pair for pair in SECURITY_HEADERS if pair[0] not in present]
            headers.append((b"x-request-id", self._context.id.encode()))
            message["headers"] = headers
        await self._send(message)

    async def _last_resort(self, failure: Exception) -> None:
        """Answer for what failed outside of every error handler, if it is not too late."""
        code = failure.code if isinstance(failure, EtudeError) else EtudeError.code
        log_failure(failure, self._context.id, code)
        self._context.code = code
        if self._status:
            return  # the ASGI server breaks the connection off: the caller sees it is not whole
        body = document(EtudeError(), (), self._context.id, i18n.DEFAULT_LOCALE)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        await self._send_with_headers(
            {"type": "http.response.start", "status": EtudeError.status, "headers": headers}
        )
        await self._send({"type": "http.response.body", "body": body})

    def _log(self) -> None:
        route = self._scope.get("path_template")
        write = log.debug if route in PROBES else log.info
        write(
            "request",
            action="http.request",
            request_id=self._context.id,
            method=self._method,
            route=route,
            status=self._status,
            code=self._context.code,
            duration_ms=round((monotonic() - self._started) * 1000, 1),
        )
