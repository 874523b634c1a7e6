"""Requests that nobody means well with, made up from a seed: the same each time.

Each is the bytes of a whole HTTP/1.1 request, because half of them no client library would send.

>>> answer = send(port, hostile(17, target))
>>> answer.status, answer.code
"""

import contextlib
import gzip
import json
import random
import socket
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import zstandard

from etude.testing.school import event

PATIENCE_S: Final = 60.0
NDJSON: Final = "application/x-ndjson"
_TRUE: Final = True

Headers: TypeAlias = list[tuple[str, str]]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is aimed at: a session, and the tokens that it is tried with.

    `token` is that of a device, `foreign` somebody else's, `operator` may do everything.
    """

    session_id: str
    token: str
    foreign: str
    operator: str


class Hostile(msgspec.Struct, frozen=True, kw_only=True):
    """A request; `kind` says what is wrong with it."""

    kind: str
    wire: bytes


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back; `status` 0 means that the connection ended without an answer."""

    status: int
    media_type: str
    body: bytes

    @property
    def code(self) -> str:
        """The code of a problem document."""
        return str(json.loads(self.body)["code"])


class _Draft:
    """A good upload of a few events, to be spoilt."""

    def __init__(self, chance: random.Random, target: Target) -> None:
        self.chance = chance
        self.target = target
        self.method = "POST"
        self.path = f"/api/v1/sessions/{target.session_id}/events"
        self.events = [event(target.session_id, n) for n in range(1, chance.randint(1, 5))]
        self.lines = [json.dumps(each, ensure_ascii=False).encode() for each in self.events]
        self.headers: Headers = [("Content-Type", NDJSON)]
        self.token: str | None = target.token
        self.body: bytes | None = None
        self.wire: bytes | None = None

    def pick(self, *options: Any) -> Any:  # noqa: ANN401 - whatever the options are
        return self.chance.choice(options)

    def put_line(self, line: bytes) -> None:
        """Put a line somewhere among the good ones."""
        self.lines.insert(self.chance.randint(0, len(self.lines)), line)

    def spoilt_event(self, **fields: object) -> bytes:
        return json.dumps(event(self.target.session_id, 99) | fields).encode()

    def content(self) -> bytes:
        return b"\n".join(self.lines) if self.body is None else self.body

    def request(self) -> bytes:
        if self.wire is not None:
            return self.wire
        body = self.content()
        headers = [("Host", "etude.test"), ("Connection", "close"), *self.headers]
        if self.token is not None:
            headers.append(("Authorization", f"Bearer {self.token}"))
        if not any(name.lower() in {"content-length", "transfer-encoding"} for name, _ in headers):
            headers.append(("Content-Length", str(len(body))))
        head = f"{self.method} {self.path} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers)
        return head.encode("utf-8", "surrogatepass") + b"\r\n" + body


def hostile(seed: int, target: Target) -> Hostile:
    """Return the request of a seed. Every kind comes up within any few dozen seeds."""
    draft = _Draft(random.Random(seed), target)  # noqa: S311 - seeded, so that a failure repeats
    spoil = _KINDS[seed % len(_KINDS)]
    spoil(draft)
    return Hostile(kind=spoil.__name__.strip("_"), wire=draft.request())


def send(port: int, request: Hostile) -> Answer:
    """Send a request on a connection of its own and read until that ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as line:
        with contextlib.suppress(OSError):  # refused before all of it was sent: the server's right
            line.sendall(request.wire)
        return _read(line)


def _read(line: socket.socket) -> Answer:
    parts: list[bytes] = []
    with contextlib.suppress(ConnectionResetError):  # what came before counts
        while part := line.recv(65_536):
            parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    if not first:
        return Answer(status=0, media_type="", body=b"")
    headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
    return Answer(
        status=int(first.split(" ")[1]), media_type=headers.get("content-type", ""), body=body
    )


def _broken_json(draft: _Draft) -> None:
    line = bytearray(draft.spoilt_event())
    for _ in range(draft.chance.randint(1, 4)):
        at = draft.chance.randrange(len(line))
        how = draft.chance.randrange(3)
        if how == 0:
            del line[at : at + draft.chance.randint(1, 40)]
        elif how == 1:
            line[at] = draft.chance.randrange(256)
        else:
            line[at:at] = draft.pick(b'"', b"{", b"}", b"\\", b",", b"\0", b"//", b"\xef\xbb\xbf")
        if not line:
            break
    draft.put_line(bytes(line))


def _no_numbers(draft: _Draft) -> None:
    number = draft.pick("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "01", "+1", ".5")
    field = draft.pick("ts", "confidence", "seq", "value")
    line = draft.spoilt_event(**{field: 12345}).replace(b"12345", number.encode())
    draft.put_line(line)


def _huge_numbers(draft: _Draft) -> None:
    number: Any = draft.pick(
        10**400, 2**53, 2**53 + 1, -(2**63), 2**64, -1, 0, -0.0, 1e308, 5e-324, 3.0, 1.5
    )
    draft.put_line(draft.spoilt_event(**{draft.pick("ts", "confidence", "seq", "value"): number}))


def _long_line(draft: _Draft) -> None:
    length = draft.pick(65_536, 65_537, 65_535, 70_000, 1_000_000)
    line = draft.spoilt_event(note="")
    filler = b"x" * (length - len(line))
    draft.put_line(line.replace(b'"note": ""', b'"note": "' + filler + b'"'))


def _deep_nesting(draft: _Draft) -> None:
    depth = draft.pick(10, 100, 500, 1000, 5000, 30_000)
    opening, closing = draft.pick((b"[", b"]"), (b'{"a":', b"}"))
    inside = opening * depth + b"1" + closing * draft.pick(depth, depth - 1)
    line = draft.spoilt_event(value=12345).replace(b"12345", inside)
    draft.put_line(draft.pick(line, inside))


def _wrong_session(draft: _Draft) -> None:
    other: Any = draft.pick(
        "another", "", " ", None, 7, draft.target.session_id.upper(), "../" + "x" * 200, ["s"]
    )
    draft.put_line(draft.spoilt_event(session_id=other))


def _lone_surrogates(draft: _Draft) -> None:
    field = draft.pick("event_id", "signal", "phase", "note", "event_type", "session_id")
    text = draft.pick(rb"\ud800", rb"\udfff\ud800", rb"ok\ud83d", b"\xed\xa0\x80", b"\xff\xfe")
    draft.put_line(draft.spoilt_event(**{field: "12345"}).replace(b"12345", text))


def _odd_types(draft: _Draft) -> None:
    odd: Any = draft.pick(None, _TRUE, 0, "", "x", [], {}, [[]], {"a": {}}, "\u0000", "x" * 300)
    fields = (
        "event_id", "ts", "event_type", "signal", "phase", "confidence", "alert_tier", "meta",
        "seq", "cloud_review_available", "transition_source", "correlation_id", "journey_id",
    )  # fmt: skip
    draft.put_line(draft.spoilt_event(**{draft.pick(*fields): odd}))


def _odd_meta(draft: _Draft) -> None:
    started: Any = draft.pick(
        "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-02-30T00:00:00Z", 7, [],
        "2026-01-01T00:00:00+99:99", "\uff12\uff10\uff12\uff16-01-01T00:00:00Z",
        "", {"a": 1}, "x" * 10_000, "2026-01-01T00:00:00.123456789Z",
        "2026-W01-1T00:00:00Z", "20260101T000000+0000",
    )  # fmt: skip
    draft.put_line(
        draft.spoilt_event(event_type="session_start", seq=1, meta={"started_at": started})
    )


def _random_bytes(draft: _Draft) -> None:
    draft.body = draft.chance.randbytes(draft.chance.randint(1, 20_000))


def _bomb(draft: _Draft) -> None:
    size = draft.pick(9, 60) * 1024 * 1024
    filler = draft.pick(b" ", b"\n", b"{", b"\0")
    if draft.chance.random() < 0.5:  # noqa: PLR2004 - either
        draft.body = gzip.compress(filler * size, 9, mtime=0)
        draft.headers.append(("Content-Encoding", "gzip"))
    else:
        draft.body = zstandard.compress(filler * size)
        draft.headers.append(("Content-Encoding", "zstd"))


def _broken_packing(draft: _Draft) -> None:
    name, pack = draft.pick(
        ("gzip", lambda data: gzip.compress(data, mtime=0)),
        ("zstd", zstandard.compress),
        ("gzip", zlib.compress),
        ("gzip", bytes),
        ("zstd", bytes),
        ("zstd", lambda data: gzip.compress(data, mtime=0)),
    )
    packed = bytearray(pack(draft.content() + b"\n"))
    how = draft.chance.randrange(4)
    if how == 0:
        del packed[draft.chance.randrange(len(packed)) :]
    elif how == 1:
        packed[draft.chance.randrange(len(packed))] ^= 1 << draft.chance.randrange(8)
    elif how == 2:  # noqa: PLR2004 - the third way
        packed += draft.chance.randbytes(draft.chance.randint(1, 50))
    else:
        packed = packed * 1100
    draft.body = bytes(packed)
    draft.headers.append(("Content-Encoding", name))


def _unknown_packing(draft: _Draft) -> None:
    name = draft.pick("br", "deflate", "gzip, gzip", "compress", "\u00fc", "", ",", "x" * 5000)
    draft.headers.append(("Content-Encoding", name))


def _wrong_media_type(draft: _Draft) -> None:
    kind: str | None = draft.pick(
        None, "", "application/json", "text/plain", "application/x-ndjson-not", ";", "\u2603",
        "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "x" * 5000,
    )  # fmt: skip
    draft.headers = [] if kind is None else [("Content-Type", kind)]


def _no_token(draft: _Draft) -> None:
    draft.token = None
    scheme = draft.pick(None, "", "Bearer", "Bearer ", "Basic eDp5", "Digest x", "bearer\tx")
    if scheme is not None:
        draft.headers.append(("Authorization", scheme))


def _odd_token(draft: _Draft) -> None:
    good = draft.target.token
    draft.token = draft.pick(
        good[:-1], good + "0", good.upper(), "etd_" + "0" * 16 + "_" + "0" * 64, "x" * 7000,
        good.replace("_", "-"), "\u00e9\u4e2d", "' OR 1=1 --", good + " " + good, "null",
    )  # fmt: skip


def _foreign_token(draft: _Draft) -> None:
    draft.token = draft.target.foreign


def _odd_path(draft: _Draft) -> None:
    odd = draft.pick(
        "%00", "%2e%2e", "..", ".", "a%2Fb", "a%2fb", "%ff%fe", "%", "%zz", "x" * 129, "x" * 5000,
        "%E2%80%AE", "a%3Fb", "a%23b", "%20", "%0d%0aX-Evil:%201", "'", "%ED%A0%80", "a;b", "a%5Cb",
    )  # fmt: skip
    draft.token = draft.pick(draft.target.token, draft.target.operator)
    rest = draft.pick("/events", "", "/media/" + "0" * 64, "/recap", "/quarantine", "/nope", "//")
    draft.path = f"/api/v1/sessions/{odd}{rest}"
    draft.method = draft.pick("POST", "GET", "PUT", "PATCH")


def _odd_query(draft: _Draft) -> None:
    draft.method, draft.body, draft.token = "GET", b"", draft.target.operator
    draft.path = draft.pick("/api/v1/sessions", draft.path) + draft.pick(
        "?limit=-1", "?limit=9999999999999999999999", "?limit=x", "?cursor=%00",
        "?cursor=" + "9" * 99, "?since=yesterday", "?status=%F0%9F%92%A9", "?format=xml",
        "?learner=%00", "?device='", "?a[]=1", "?since=0001-01-01T00:00:00%2B14:00", "?%ff",
        "?limit=1&limit=2", "?" + "&".join(["a=1"] * 500),
        "?since=9999-12-31T23:59:59-14:00", "?cursor=-1", "?cursor=MQ%3D%3D",
    )  # fmt: skip


def _odd_method(draft: _Draft) -> None:
    draft.method = draft.pick("DELETE", "TRACE", "PROPFIND", "get", "OPTIONS", "PATCH", "M-SEARCH")


def _odd_headers(draft: _Draft) -> None:
    draft.headers += draft.pick(
        [("Etude-Device", "toy-2")], [("Etude-Device", "\u0000")], [("Etude-Device", "x" * 4000)],
        [("Accept-Language", "*;q=zz,,;;=")], [("Accept-Language", "zh-" + "a" * 6000)],
        [("Accept", "image/png;q=0")], [("X-Request-Id", "\u2028" * 50)], [("Range", "bytes=0-1")],
        [(f"X-{number}", "y" * 50) for number in range(400)], [("X-Long", "y" * 60_000)],
        [("Content-Type", "text/plain")], [("Expect", "200-maybe")], [("Upgrade", "websocket")],
        [("If-Match", "*")], [("Cookie", "a=b; " * 500)], [("Bad Name", "x")], [(":x", "y")],
    )  # fmt: skip


def _odd_length(draft: _Draft) -> None:
    length = draft.pick(
        "-1", "1e3", "0x10", "99999999999999999999999", str(9 * 1024 * 1024), "", "+3"
    )
    draft.headers.append(("Content-Length", length))
    if draft.chance.random() < 0.3:  # noqa: PLR2004 - sometimes
        draft.headers.append(("Content-Length", "5"))


def _odd_chunks(draft: _Draft) -> None:
    draft.headers.append(("Transfer-Encoding", draft.pick("chunked", "gzip, chunked", "identity")))
    draft.body = draft.pick(
        b"zz\r\nabc\r\n0\r\n\r\n", b"-5\r\nabc\r\n0\r\n\r\n", b"3\r\nabcdef\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\n", b"3;ext=\xff\r\nabc\r\n0\r\n\r\n", b"0\r\nX: \x00\r\n\r\n",
    )  # fmt: skip


def _no_http(draft: _Draft) -> None:
    draft.wire = draft.pick(
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"POST /api/v1/sessions HTTP/1.1\r\nHost: x\r\n X: folded\r\n\r\n",
        b"\r\n\r\n\r\nNOPE\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        draft.chance.randbytes(200) + b"\r\n\r\n",
    )


def _too_many_lines(draft: _Draft) -> None:
    draft.body = draft.pick(b"{}\n", b"x\n", b"\n", b"[\n") * draft.pick(20_001, 60_000)


def _odd_recording(draft: _Draft) -> None:
    draft.method = "PUT"
    digest = draft.pick("0" * 64, "g" * 64, "0" * 63, "", "..%2f..%2fetc%2fpasswd", "A" * 64)
    draft.path = f"/api/v1/sessions/{draft.target.session_id}/media/{digest}"
    draft.headers = draft.pick([], [("Content-Type", "audio/wav")], [("Content-Type", "\u00b5/x")])
    draft.body = draft.chance.randbytes(draft.chance.randint(0, 3000))


def _odd_json_route(draft: _Draft) -> None:
    draft.method, draft.path = draft.pick(
        ("POST", "/api/v1/learners"), ("POST", "/api/v1/tokens"), ("POST", "/api/v1/devices"),
        ("PATCH", f"/api/v1/sessions/{draft.target.session_id}"),
        ("POST", "/api/v1/devices/toy-1/holders"), ("DELETE", "/api/v1/learners/%00"),
    )  # fmt: skip
    draft.token = draft.target.operator
    kinds = ("application/json", "application/json", "application/xml", "x")
    draft.headers = [("Content-Type", draft.pick(*kinds))]
    draft.body = draft.pick(
        b"{", b"[" * 50_000, b'{"display_name": "\\ud800"}', b'{"display_name": "\\u0000"}', b"",
        b'{"learner_id": 1e999}', b"\xff", b'{"display_name":"' + b"x" * 2_000_000 + b'"}', b"null",
    )  # fmt: skip


_KINDS: Final[Sequence[Callable[[_Draft], None]]] = (
    _broken_json, _no_numbers, _huge_numbers, _long_line, _deep_nesting, _wrong_session,
    _lone_surrogates, _odd_types, _odd_meta, _random_bytes, _broken_packing, _unknown_packing,
    _wrong_media_type, _no_token, _odd_token, _foreign_token, _odd_path, _odd_query, _odd_method,
    _odd_headers, _odd_length, _odd_chunks, _no_http, _odd_recording, _odd_json_route, _broken_json,
    _huge_numbers, _lone_surrogates, _odd_types, _broken_packing, _bomb, _too_many_lines,
)  # fmt: skip
