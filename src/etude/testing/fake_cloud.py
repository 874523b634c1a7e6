"""A cloud for uploads: stores each event once, answers as the protocol says, fails on demand.

`FakeCloud.answer` is the whole server as a function, for `httpx2.MockTransport`; `serve` puts it
behind a real socket, where a connection can be cut in the middle.
"""

import contextlib
import gzip
import hashlib
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote

import httpx2
import msgspec

from etude.events.canonical import same_content
from etude.events.ndjson import LineError, scan_line, split_lines
from etude.testing.waiting import joined

NAMED_ERRORS: Final = 20


@dataclass(frozen=True)
class Answer:
    """Status, body (JSON) and headers of one answer."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """Cut the connection: before the request is handled, or after `answer_bytes` of the answer."""

    answer_bytes: int | None = None


class FakeCloud:
    """What a test sees of the server side.

    Attributes:
        events: the lines stored, by session and event id, in order of arrival.
        media: the recordings, by session and sha256.
        requests: `METHOD path` of everything that was asked.
        next: answers to give instead of the true one, or cuts, oldest first; None = the true one.
        poison: event ids that are refused, each by itself.
        poison_422: event ids whose presence makes the whole body a `422`.
        erased: session ids that are answered with `410`.
        token: what the bearer must be; None = anything.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.events: dict[str, dict[str, bytes]] = {}
        self.media: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        self.next: deque[Answer | Cut | None] = deque()
        self.poison: set[str] = set()
        self.poison_422: set[str] = set()
        self.erased: set[str] = set()
        self.token: str | None = None
        self._guard = threading.Lock()

    def wire(self) -> httpx2.MockTransport:
        """Return the cloud as what stands in for the network."""

        def answer(request: httpx2.Request) -> httpx2.Response:
            instead = self.next.popleft() if self.next else None
            if isinstance(instead, Cut) and instead.answer_bytes is None:
                raise httpx2.ReadError("cut")  # noqa: EM101 - stands for a library's own
            said = self.answer(request.method, request.url.raw_path.decode(), request)
            if isinstance(instead, Cut):
                raise httpx2.RemoteProtocolError("cut")  # noqa: EM101 - see above
            said = instead or said
            return httpx2.Response(said.status, json=said.body, headers=said.headers)

        return httpx2.MockTransport(answer)

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a free port of the loopback; yield the address."""
        cloud = self

        class Handler(_Handler):
            def respond(self) -> None:
                self.take(cloud)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            joined(thread)
            server.server_close()

    def answer(self, method: str, path: str, request: "httpx2.Request | _Received") -> Answer:
        """Handle one request."""
        with self._guard:
            self.requests.append(f"{method} {path}")
            session_id, what, *rest = path.removeprefix("/api/v1/sessions/").split("/")
            session_id = unquote(session_id)
            if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
                return _problem(401, "TOKEN_INVALID")
            if session_id in self.erased:
                return _problem(410, "SESSION_ERASED")
            body = request.read()
            if request.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if what == "media":
                return self._take_media(session_id, rest[0], body)
            return self._take_events(session_id, body)

    def _take_media(self, session_id: str, sha256: str, body: bytes) -> Answer:
        if session_id not in self.events:
            return _problem(404, "SESSION_UNKNOWN")
        if hashlib.sha256(body).hexdigest() != sha256:
            return _problem(409, "BLOB_DIGEST_MISMATCH")
        self.media.setdefault(session_id, {})[sha256] = body
        return Answer(201, {"sha256": sha256, "status": "stored"})

    def _take_events(self, session_id: str, body: bytes) -> Answer:
        stored = self.events.setdefault(session_id, {})
        errors: list[dict[str, Any]] = []
        conflicts: list[str] = []
        received = duplicates = 0
        for number, line in split_lines([body]):
            try:
                if isinstance(line, LineError):
                    raise line
                event_id = scan_line(line, number, session_id).event_id
            except LineError as error:
                errors.append({"line": number, "code": error.code, "message": "refused"})
                continue
            if event_id in self.poison_422:
                return _problem(422, "INTERNAL_DECODER")
            if event_id in self.poison:
                errors.append({"line": number, "code": "bad_type", "message": "poisoned"})
                continue
            received += 1
            known = stored.setdefault(event_id, line)
            if known is not line:
                duplicates += same_content(known, line)
                conflicts += [] if same_content(known, line) else [event_id]
        if errors and not received:
            return _problem(422, "NO_VALID_LINE", errors=errors[:NAMED_ERRORS])
        return Answer(
            200,
            {
                "status": "accepted",
                "session_id": session_id,
                "events_received": received,
                "duplicates_skipped": duplicates,
                "events_rejected": len(errors),
                "errors": errors[:NAMED_ERRORS],
                "conflicts": conflicts,
                "watermark": None,
            },
        )


def _problem(status: int, code: str, **more: Any) -> Answer:  # noqa: ANN401 - members of a problem
    return Answer(status, {"code": code, "title": code.title(), "detail": f"{code}.", **more})


@dataclass(frozen=True)
class _Received:
    headers: dict[str, str]
    body: bytes

    def read(self) -> bytes:
        return self.body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        raise NotImplementedError

    def do_POST(self) -> None:
        self.respond()

    def do_PUT(self) -> None:
        self.respond()

    def take(self, cloud: FakeCloud) -> None:
        """Handle one request, as `cloud.next` wants it."""
        instead = cloud.next.popleft() if cloud.next else None
        if isinstance(instead, Cut) and instead.answer_bytes is None:
            self._hang_up()
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        said = cloud.answer(self.command, self.path, _Received(headers, body))
        if isinstance(instead, Answer):
            said = instead
        wire = _encode(said)
        if isinstance(instead, Cut):
            self.wfile.write(wire[: instead.answer_bytes])
            self._hang_up()
            return
        self.wfile.write(wire)

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base's names
        """Say nothing."""


def _encode(answer: Answer) -> bytes:
    body = msgspec.json.encode(answer.body)
    headers = {"Content-Type": "application/json", "Content-Length": len(body), **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode() + body
