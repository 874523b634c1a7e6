"""Provisioning over HTTP: what a device asks at every start (`/xiaozhi/ota/`, `…/activate`).

The answers are read by firmware that trusts them, so they hold the sections and keys that it knows
and nothing else, never null, never empty: an unknown key may be too long for its storage, a version
that is not of dotted numbers ends in a boot loop. Anything but 200 makes it come again, ten times
in 85 minutes. Nothing here needs a database or web, and nothing that a device sends is logged: its
body may hold what it signs with.
"""

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from etude import i18n
from etude.clock import Clock
from etude.errors import EtudeError, MalformedError
from etude.gateway.activation import Caller, DeviceUnreadableError
from etude.gateway.provisioning import Provisioning

PATH: Final = "/xiaozhi/ota"
SOCKET_PATH: Final = "/xiaozhi/v1/"
MAX_BODY_BYTES: Final = 64 * 1024
BODY_S: Final = 10.0
RETRY_S: Final = 10
TIMEOUT_MS: Final = 30_000
NO_VERSION: Final = "0.0.0"
"""Newer than nothing: no firmware takes it for an upgrade."""

_DEVICE_ID: Final = re.compile(r"[0-9a-z][0-9a-z:._-]{0,63}")
_CLIENT_ID: Final = re.compile(r"[0-9A-Za-z:._-]{1,64}")
_SERIAL: Final = re.compile(r"[0-9A-Za-z._:-]{1,64}")
_VERSION: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?")
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")

log = structlog.get_logger("etude.gateway")


class ServerTime(msgspec.Struct, frozen=True):
    """The time, and the minutes that local time is ahead of UTC."""

    timestamp: int
    timezone_offset: int


class Firmware(msgspec.Struct, frozen=True):
    """The version that the device has: nothing to upgrade to."""

    version: str
    url: str = ""


class WebSocket(msgspec.Struct, frozen=True):
    """Where to connect, with what token (empty: none yet), framing audio how."""

    url: str
    token: str
    version: int = 1


class ShownActivation(msgspec.Struct, frozen=True):
    """What an unbound device shows, and signs if it has a serial number.

    The challenge is always there: firmware without a serial ignores it, other clients read it
    beside every code.
    """

    code: str
    message: str
    timeout_ms: int
    challenge: str


class OtaAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; `activation` is there only while the device is not bound."""

    server_time: ServerTime
    firmware: Firmware
    websocket: WebSocket
    activation: ShownActivation | msgspec.UnsetType = msgspec.UNSET


class OtaApp:
    """The routes. One per process.

    Args:
        provisioning: who is bound, and which codes are shown.
        clock: the time that devices set theirs by.
        socket_url: where devices connect; None: the host that they asked, at `socket_port`.
        socket_port: the port of the devices' WebSocket.
    """

    def __init__(
        self,
        provisioning: Provisioning,
        clock: Clock,
        *,
        socket_url: str | None = None,
        socket_port: int = 8000,
    ) -> None:
        """Answer with what `provisioning` decides."""
        self._provisioning = provisioning
        self._clock = clock
        self._socket_url = socket_url
        self._socket_port = socket_port

    def starlette(self) -> Starlette:
        """Return the ASGI application. Serve it without an access log: addresses are devices'."""
        asked = _bare(self._ota)
        activate = _bare(self._activate)
        return Starlette(
            routes=[
                Route("/health", _health, methods=["GET"]),
                Route(PATH, asked, methods=["GET", "POST"]),
                Route(f"{PATH}/", asked, methods=["GET", "POST"]),
                Route(f"{PATH}/activate", activate, methods=["POST"]),
                Route(f"{PATH}/activate/", activate, methods=["POST"]),
            ]
        )

    async def _ota(self, request: Request) -> Response:
        body = await _read_body(request)
        caller = read_caller(request, body)
        token = self._provisioning.token(caller)
        activation: ShownActivation | msgspec.UnsetType = msgspec.UNSET
        if token is None:
            shown = await self._provisioning.activation(caller)
            locale = i18n.negotiate(request.headers.get("accept-language"))
            code = shown.pending.code
            activation = ShownActivation(
                code=code,
                message=i18n.text("provisioning.show_code", locale, code=code),
                timeout_ms=TIMEOUT_MS,
                challenge=shown.challenge,
            )
        answer = OtaAnswer(
            server_time=self._time(),
            firmware=Firmware(version=safe_version(caller.version)),
            websocket=WebSocket(url=self._url(request), token=token or ""),
            activation=activation,
        )
        return _json(answer)

    async def _activate(self, request: Request) -> Response:
        body = await _read_body(request)
        caller = read_caller(request, body)
        wrapped = body.get("Payload")
        proof = wrapped if isinstance(wrapped, dict) else body
        shown = {
            name: _text(proof.get(name), 512)
            for name in ("serial_number", "challenge", "hmac")
            if isinstance(proof.get(name), str)
        }
        if await self._provisioning.activated(caller, shown):
            return _json({"message": "activated"})
        return _json({"message": "waiting"}, status=202)

    def _time(self) -> ServerTime:
        now = self._clock.now()
        offset = now.astimezone().utcoffset()
        minutes = 0 if offset is None else round(offset.total_seconds() / 60)
        return ServerTime(round(now.timestamp() * 1000), minutes)

    def _url(self, request: Request) -> str:
        if self._socket_url is not None:
            return self._socket_url
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if host is None:
            raise DeviceUnreadableError(header="Host")
        return f"ws://{host[1]}:{self._socket_port}{SOCKET_PATH}"


def read_caller(request: Request, body: Mapping[str, Any]) -> Caller:
    """Return who asks: headers first, then what the body says of the same.

    Raises `DeviceUnreadableError` for an id that is missing, repeated or unusable.
    """
    application, board = _section(body, "application"), _section(body, "board")
    device_id = (_once(request, "Device-Id") or _text(body.get("mac_address"), 128)).lower()
    client_id = _once(request, "Client-Id") or _text(body.get("uuid"), 128)
    if not _DEVICE_ID.fullmatch(device_id):
        raise DeviceUnreadableError(header="Device-Id")
    if not _CLIENT_ID.fullmatch(client_id):
        raise DeviceUnreadableError(header="Client-Id")
    agent, _, agent_version = request.headers.get("user-agent", "").partition("/")
    serial = request.headers.get("serial-number", "").strip()
    return Caller(
        device_id=device_id,
        client_id=client_id,
        board=_text(board.get("name") or board.get("type") or agent, 64),
        version=_text(application.get("version") or agent_version, 32),
        serial=serial if _SERIAL.fullmatch(serial) else "",
        address=_network(request.client.host if request.client else ""),
    )


def safe_version(version: str) -> str:
    """Return a version that firmware can read: what it told, or one that nothing is older than."""
    return version if _VERSION.fullmatch(version) else NO_VERSION


def _once(request: Request, name: str) -> str:
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise DeviceUnreadableError(header=name)
    return values[0].strip() if values else ""


def _section(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object, longest: int) -> str:
    """Return what of a text can be shown to a person and kept, of anything else nothing."""
    return _UNPRINTABLE.sub(" ", value)[:longest].strip() if isinstance(value, str) else ""


def _network(address: str) -> str:
    """Return what one subscriber has: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if found.version == 4 or found.ipv4_mapped:  # noqa: PLR2004 - IPv4
        return address
    return str(ipaddress.ip_network((found, 64), strict=False))


async def _read_body(request: Request) -> Mapping[str, Any]:
    """Return the object that a device sent; nothing for anything that is none."""
    read = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                read += chunk
                if len(read) > MAX_BODY_BYTES:
                    return {}
    except (TimeoutError, ClientDisconnect):
        return {}
    try:
        body = msgspec.json.decode(bytes(read))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


Handler = Callable[[Request], Awaitable[Response]]


def _bare(handler: Handler) -> Handler:
    """Answer refusals as the wire has it: a status, and a code for whoever looks into it."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except EtudeError as error:
            log.info("refused", action="provisioning.refused", code=error.code)
            retry_s = error.params.get("retry_after_s", RETRY_S)
            headers = {} if isinstance(error, MalformedError) else {"Retry-After": str(retry_s)}
            return _json({"error": error.code}, status=error.status, headers=headers)

    return answer


async def _health(_request: Request) -> Response:
    return _json({"status": "ok"})


def _json(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    body = msgspec.json.encode(value)
    return Response(body, status, headers=headers, media_type="application/json")
