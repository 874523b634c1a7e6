"""The port that devices connect to: asks before it upgrades, bounds every client, never waits.

Who may come in is decided by `admit` before the handshake is answered, so a device that is not
allowed gets an HTTP status and costs no connection. Firmware ends by dropping TCP, does not answer
Close, and keeps its socket: so closing has a deadline of a second, and the socket is cut after it.
An address is never logged: its query may hold a token.
"""

import asyncio
import http
import logging
import socket
from typing import Final
from urllib.parse import urlsplit

import msgspec
import structlog
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from etude.clock import Ids
from etude.gateway.bounds import ConnectionRules
from etude.gateway.connection import DeviceConnection
from etude.gateway.errors import DevicePortError
from etude.gateway.handshake import Admit, Handshake, Refusal, read_handshake
from etude.gateway.messages import AudioParams
from etude.gateway.playback import Pacing, Ticker
from etude.gateway.ports import CloseReason, PracticeFactory
from etude.gateway.registry import Registry

CLOSE_S: Final = 1.0
PING_S: Final = 25.0
OPEN_S: Final = 10.0
STOP_S: Final = 3.0
MAX_MESSAGE_BYTES: Final = 131_072
"""Twice what firmware sends at most."""
MAX_QUEUE: Final = 32
SEND_BUFFER_BYTES: Final = 65_536
"""In the kernel: seconds of audio, so that a slow device is noticed while it matters."""
HEALTH: Final = "/health"

_CLOSE_CODES: Final = {
    CloseReason.MALFORMED: CloseCode.PROTOCOL_ERROR,
    CloseReason.TOO_LARGE: CloseCode.MESSAGE_TOO_BIG,
    CloseReason.FLOOD: CloseCode.POLICY_VIOLATION,
    CloseReason.REVOKED: CloseCode.POLICY_VIOLATION,
    CloseReason.NO_HELLO: CloseCode.POLICY_VIOLATION,
    CloseReason.STOPPING: CloseCode.GOING_AWAY,
    CloseReason.FAILED: CloseCode.INTERNAL_ERROR,
}
_LIBRARY_CODES: Final[dict[int, CloseReason]] = {
    CloseCode.PROTOCOL_ERROR: CloseReason.MALFORMED,
    CloseCode.INVALID_DATA: CloseReason.MALFORMED,
    CloseCode.MESSAGE_TOO_BIG: CloseReason.TOO_LARGE,
    CloseCode.INTERNAL_ERROR: CloseReason.SILENT,  # its ping was not answered
    CloseCode.GOING_AWAY: CloseReason.STOPPING,
}

_log = structlog.get_logger(__name__)


class _DeviceSocket(ServerConnection):
    """A WebSocket that remembers who was let in, with a small buffer in the kernel."""

    admitted: Handshake | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        found = transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


class _SocketWire:
    """`connection.Wire` over a WebSocket."""

    def __init__(self, socket_: ServerConnection, closers: set["asyncio.Task[None]"]) -> None:
        self._socket = socket_
        self._closers = closers

    def send(self, message: str | bytes) -> None:
        broadcast([self._socket], message)

    def unsent_bytes(self) -> int:
        return self._socket.transport.get_write_buffer_size()

    def close(self, reason: CloseReason) -> None:
        if reason is CloseReason.SLOW:  # a Close would wait behind what it does not take
            self._socket.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._close(reason))
        self._closers.add(task)
        task.add_done_callback(self._closers.discard)

    async def _close(self, reason: CloseReason) -> None:
        code = _CLOSE_CODES.get(reason, CloseCode.NORMAL_CLOSURE)
        try:
            async with asyncio.timeout(CLOSE_S + 0.5):
                await self._socket.close(code, str(reason))
        except TimeoutError:
            self._socket.transport.abort()


class DeviceServer:
    """Listens for devices and keeps one connection for each.

    Args:
        host: the interface to listen on.
        port: 0 = any that is free, see `port`.
        admit: who may come in.
        make_practice: what runs on a connection.
        ids: of connections.
        audio: what clips are encoded as; declared to every device.
        rules: the bounds of a connection.
        pacing: when frames are sent.
        max_connections: how many at once; more are told to come back (503).
    """

    def __init__(  # noqa: PLR0913 - what a server is made of, all but the address by name
        self,
        host: str,
        port: int,
        *,
        admit: Admit,
        make_practice: PracticeFactory,
        ids: Ids,
        audio: AudioParams | None = None,
        rules: ConnectionRules | None = None,
        pacing: Pacing | None = None,
        max_connections: int = 2_000,
    ) -> None:
        """Listen to nothing before `start`."""
        self._host = host
        self._port = port
        self._admit = admit
        self._make_practice = make_practice
        self._ids = ids
        self._audio = audio or AudioParams()
        self._rules = rules or ConnectionRules()
        self._pacing = pacing or Pacing()
        self._max_connections = max_connections
        self._registry = Registry()
        self._closers: set[asyncio.Task[None]] = set()
        self._server: Server | None = None
        self._ticker: Ticker | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def connections(self) -> Registry:
        """Who is connected."""
        return self._registry

    async def start(self) -> None:
        """Listen.

        Raises:
            DevicePortError: the address cannot be listened on.
        """
        self._ticker = Ticker()
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                process_request=self._process_request,
                compression=None,
                server_header=None,
                open_timeout=OPEN_S,
                ping_interval=PING_S,
                ping_timeout=PING_S,
                close_timeout=CLOSE_S,
                max_size=MAX_MESSAGE_BYTES,
                max_queue=MAX_QUEUE,
                # Above our own bound: the library's sends, its pings too, must never wait.
                write_limit=self._rules.unsent_bytes * 4,
                create_connection=_DeviceSocket,
                logger=_quiet_logger(),
            )
        except OSError as error:
            raise DevicePortError(
                host=self._host, port=self._port, reason=error.strerror or str(error)
            ) from error
        self._port = self._server.sockets[0].getsockname()[1]
        _log.info("listening", action="devices.listening", host=self._host, port=self._port)

    async def stop(self) -> None:
        """Close every connection and stop listening; takes at most a few seconds."""
        server, self._server = self._server, None
        if server is None:
            return
        self._registry.close_all(CloseReason.STOPPING)
        server.close(code=CloseCode.GOING_AWAY)
        try:
            async with asyncio.timeout(STOP_S):
                await server.wait_closed()
        except TimeoutError:
            _log.warning("devices still connected", action="devices.stop_late")
        if self._closers:
            await asyncio.wait(set(self._closers), timeout=STOP_S)

    def connection(self, device_id: str) -> DeviceConnection | None:
        """Return the connection of a device; None = it is not connected."""
        return self._registry.connection(device_id)

    # The handshake

    def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer `/health`, refuse who may not come in; None = go on with the handshake."""
        path = urlsplit(request.path).path
        if path == HEALTH and "Upgrade" not in request.headers:
            connected = len(self._registry.connected())
            return _answer(connection, http.HTTPStatus.OK, {"status": "ok", "devices": connected})
        handshake = read_handshake(request.headers.raw_items(), request.path)
        refusal = self._refusal(handshake)
        if refusal is None and isinstance(connection, _DeviceSocket):
            connection.admitted = handshake
            return None
        refusal = refusal or Refusal.NOT_NOW
        _log.info("refused", action="device.refused", status=int(refusal))
        return _answer(connection, refusal, {"refused": refusal.name.lower()})

    def _refusal(self, handshake: Handshake | None) -> Refusal | None:
        if handshake is None:
            return Refusal.UNREADABLE
        if self._server is None or len(self._registry) >= self._max_connections:
            return Refusal.NOT_NOW
        try:
            return self._admit(handshake)
        except Exception:  # noqa: BLE001 - whatever `admit` raises, nobody comes in by it
            _log.exception("admission failed", action="device.admit_failed")
            return Refusal.NOT_NOW

    # A connection

    async def _serve(self, socket_: ServerConnection) -> None:
        """Feed one connection with what its device says, until it ends."""
        handshake = socket_.admitted if isinstance(socket_, _DeviceSocket) else None
        if handshake is None or self._ticker is None:
            return
        connection = DeviceConnection(
            device_id=handshake.device_id,
            connection_id=self._ids.new(),
            wire=_SocketWire(socket_, self._closers),
            make_practice=self._make_practice,
            ticker=self._ticker,
            version=handshake.version,
            audio=self._audio,
            rules=self._rules,
            pacing=self._pacing,
            greeted=self._registry.greeted,
        )
        self._registry.opened(connection)
        reason = CloseReason.FAILED
        try:
            while True:
                connection.receive(await socket_.recv())
        except ConnectionClosed as closed:
            reason = reason_of(closed)
        except Exception:  # noqa: BLE001 - a fault of ours ends this connection and is seen
            _log.exception("connection failed", action="device.failed")
        finally:
            connection.ended(reason)
            self._registry.left(connection)


def reason_of(closed: ConnectionClosed) -> CloseReason:
    """Return why a connection ended that we did not close: mostly, the device dropped TCP."""
    sent = closed.sent
    if sent is None or closed.rcvd_then_sent:
        return CloseReason.DEVICE_LEFT
    return _LIBRARY_CODES.get(sent.code, CloseReason.FAILED)


def _answer(connection: ServerConnection, status: int, body: dict[str, str | int]) -> Response:
    answer = connection.respond(status, msgspec.json.encode(body).decode())
    del answer.headers["Content-Type"]
    answer.headers["Content-Type"] = "application/json"
    return answer


def _quiet_logger() -> logging.Logger:
    """Return a logger that keeps the library's lines out: at debug level they quote every header.

    What ends a connection is logged by us, with its reason.
    """
    quiet = logging.getLogger("etude.gateway.library")
    quiet.setLevel(logging.CRITICAL)
    return quiet
