"""HTTP from the edge: one request, one answer, every fault of the wire under one name.

No retry in here: whoever sends owns the schedule (for uploads `etude.edge.outbox`). Redirects are
not followed, so that a token goes to the host it is for and nowhere else.
"""

import ssl
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final, Self

import httpx2

MAX_ANSWER_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 16
_FIRST_PRINTABLE, _LAST_PRINTABLE = 0x21, 0x7E
_LAST_PORT: Final = 65535


@cache
def tls_context() -> ssl.SSLContext:
    """Return what the clients of this process check servers by.

    The certificates of the system are read once: for each client it took 30 ms of a core.
    """
    return httpx2.create_ssl_context()


class FaultKind(StrEnum):
    """What was wrong."""

    ADDRESS = "address"
    """The server's address cannot work as given."""
    TOKEN = "token"  # noqa: S105 - a word for what is wrong, no secret
    """The token cannot work as given."""
    CONNECT = "connect"
    """Nobody is there."""
    TIMEOUT = "timeout"
    """Too slow."""
    CUT = "cut"
    """The connection broke in the middle."""
    PROTOCOL = "protocol"
    """What came is not HTTP, or what was to be sent is not."""
    TOO_LARGE = "too_large"
    """The answer has more than it may: 1 MiB, unless the client allows more."""


class NetworkFault(Exception):  # noqa: N818 - a fault of the wire, not an error of ours yet
    """No answer could be had.

    Args:
        kind: what was wrong.
        reason: for a person; holds no header and no token.
    """

    def __init__(self, kind: FaultKind, reason: str) -> None:
        """Keep kind and reason."""
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


@dataclass(frozen=True)
class Timeouts:
    """How long to wait. Seconds."""

    connect_s: float = 10.0
    silence_s: float = 30.0
    """The longest pause while sending or receiving."""
    answer_s: float = 120.0
    """The longest an answer may take from its first byte to its last."""


@dataclass(frozen=True)
class Reply:
    """What a server answered. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Streamed:
    """A body that is made while it is sent, of a length that is known; what it raises comes out."""

    size: int
    blocks: Iterator[bytes]


class HttpClient:
    """Requests to one server, over kept-alive connections. One thread at a time; close it.

    Args:
        server: its base address, `https://host[:port][/prefix]`.
        bearer: a token for `Authorization`, or None.
        headers: sent with every request.
        timeouts: see `Timeouts`.
        wire: what stands in for the network in a test (`httpx2.MockTransport`).
        most_answer_bytes: a longer answer is refused while it comes.

    Raises:
        NetworkFault: `address` or `token` unusable.
    """

    def __init__(
        self,
        server: str,
        *,
        bearer: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        wire: httpx2.BaseTransport | None = None,
        most_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        """Check address and token; connects at the first request."""
        self.server = _checked_server(server)
        self._most_answer_bytes = most_answer_bytes
        self._timeouts = timeouts or Timeouts()
        sent = {"User-Agent": f"etude/{version('etude')}", "Accept-Encoding": "identity"}
        if bearer is not None:
            sent["Authorization"] = f"Bearer {_checked_token(bearer)}"
        waits = httpx2.Timeout(self._timeouts.silence_s, connect=self._timeouts.connect_s)
        self._client = httpx2.Client(
            headers={**sent, **(headers or {})},
            timeout=waits,
            transport=wire,
            verify=tls_context(),
        )

    def send(
        self, method: str, path: str, body: bytes | Path | Streamed, headers: Mapping[str, str]
    ) -> Reply:
        """Send one request and read the whole answer, whatever its status.

        Args:
            method: `POST`, `PUT`, `GET`.
            path: below the server's address, percent-encoded, beginning with `/`.
            body: bytes, or a file or `Streamed` that is not held in memory.
            headers: of this request alone.

        Raises:
            NetworkFault: there was no answer, or none that can be read.
            OSError: the file of the body cannot be read.
        """
        if isinstance(body, bytes):
            return self._send(method, path, body, headers)
        if isinstance(body, Streamed):
            length = {"Content-Length": str(body.size)}
            return self._send(method, path, body.blocks, {**headers, **length})
        sized = {**headers, "Content-Length": str(body.stat().st_size)}
        with closing(_blocks(body)) as content:
            return self._send(method, path, content, sized)

    def _send(
        self, method: str, path: str, content: bytes | Iterator[bytes], headers: Mapping[str, str]
    ) -> Reply:
        try:
            with self._client.stream(
                method, self.server + path, content=content, headers=dict(headers)
            ) as answer:
                return Reply(answer.status_code, dict(answer.headers), self._read(answer))
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise _fault_of(error) from error

    def _read(self, answer: httpx2.Response) -> bytes:
        return b"".join(self._blocks_of(answer, self._most_answer_bytes))

    def _blocks_of(self, answer: httpx2.Response, most_bytes: int) -> Iterator[bytes]:
        due_s = time.monotonic() + self._timeouts.answer_s
        read = 0
        for block in answer.iter_bytes():
            read += len(block)
            if read > most_bytes:
                raise NetworkFault(FaultKind.TOO_LARGE, f"more than {most_bytes} bytes")
            if time.monotonic() > due_s:
                raise NetworkFault(FaultKind.TIMEOUT, "the answer did not end")
            yield block

    @contextmanager
    def fetching(self, path: str, most_bytes: int) -> Generator[tuple[int, Iterator[bytes]]]:
        """Get a large answer block by block: its status, and its body as it comes.

        Args:
            path: as for `send`.
            most_bytes: a longer body is refused while it comes.

        Raises:
            NetworkFault: there is no answer, or, in the block, not the whole of it.
        """
        try:
            with self._client.stream("GET", self.server + path) as answer:
                yield answer.status_code, self._blocks_of(answer, most_bytes)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise _fault_of(error) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()


def _checked_server(server: str) -> str:
    try:
        url = httpx2.URL(server)
    except httpx2.InvalidURL as error:
        raise NetworkFault(FaultKind.ADDRESS, str(error)) from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise NetworkFault(FaultKind.ADDRESS, "it begins with http:// or https:// and names a host")
    if url.query or url.fragment or url.userinfo:
        raise NetworkFault(FaultKind.ADDRESS, "it may not hold a query, a fragment or a password")
    # The resolver takes a port modulo 65536: without this a token would reach somebody else.
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        raise NetworkFault(FaultKind.ADDRESS, f"a port is a number from 1 to {_LAST_PORT}")
    if "%" in url.host and ":" not in url.host:  # a space, say; of an IPv6 address it is the zone
        raise NetworkFault(FaultKind.ADDRESS, "its host holds what no name or address may hold")
    return server.rstrip("/")


def _checked_token(bearer: str) -> str:
    """Refuse what no header can carry, here, where no message can quote it."""
    if not bearer or any(not _FIRST_PRINTABLE <= ord(one) <= _LAST_PRINTABLE for one in bearer):
        raise NetworkFault(FaultKind.TOKEN, "a token is printable ASCII without spaces")
    return bearer


def _blocks(file: Path) -> Generator[bytes]:
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            yield block


def _fault_of(error: Exception) -> NetworkFault:
    """Map an error of httpx2; the first row that fits counts."""
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), FaultKind.PROTOCOL)
    # Protocol errors may quote a header, and so a token: their words stay out.
    name = type(error).__name__
    reason = name if kind is FaultKind.PROTOCOL else str(error) or name
    return NetworkFault(kind, reason)


_KINDS: Final[tuple[tuple[type[Exception], FaultKind], ...]] = (
    (httpx2.ConnectTimeout, FaultKind.CONNECT),
    (httpx2.TimeoutException, FaultKind.TIMEOUT),
    (httpx2.ConnectError, FaultKind.CONNECT),
    (httpx2.ProxyError, FaultKind.CONNECT),
    (httpx2.NetworkError, FaultKind.CUT),
    (httpx2.RemoteProtocolError, FaultKind.CUT),
    (httpx2.UnsupportedProtocol, FaultKind.ADDRESS),
    (httpx2.InvalidURL, FaultKind.ADDRESS),
)
