"""Bodies that handlers read by themselves: hostile ones cost their sender, not the server."""

import asyncio
import gzip
import random
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from litestar import Response, post

from etude.store import Database
from etude.testing.web import client, services_for
from etude.web import bodies
from etude.web.app import create_app
from etude.web.bodies import read_body, require_media_type, stream_body
from etude.web.declared import EVERYWHERE, Access, declared
from etude.web.errors import BodyEncodingError, BodyTooLargeError
from etude.web.front import BodyLimits, Front
from etude.web.in_flight import InFlight
from etude.web.services import HttpRequest, services_of

LIMIT = 8 * 1024 * 1024
PUBLIC = declared(roles=EVERYWHERE, needs=Access.PUBLIC)
KNOWN = {"BODY_TOO_LARGE", "BODY_ENCODING_BROKEN", "ENCODING_UNSUPPORTED", "MEDIA_TYPE_UNSUPPORTED"}

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@post("/whole", opt=PUBLIC, status_code=200)
async def whole(request: HttpRequest) -> Response[bytes]:
    """Return the body as it was understood."""
    require_media_type(request, "application/x-ndjson", "application/octet-stream")
    body = await read_body(request, LIMIT)
    assert services_of(request).in_flight.held_bytes >= len(body)
    return Response(content=body, media_type="application/octet-stream")


@post("/parts", opt=PUBLIC, status_code=200)
async def parts(request: HttpRequest) -> dict[str, int]:
    """Return how large the body was, without holding it."""
    return {"size": sum([len(part) async for part in stream_body(request, LIMIT)])}


@pytest.fixture
def database(run: Run, sqlite_url: str) -> Iterator[Database]:
    opened: Database = run(Database.open(sqlite_url))
    yield opened
    run(opened.close())


def zstd(data: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(data)


def inflate(encoding: str | None, data: bytes, chunk_bytes: int, limit: int = LIMIT) -> bytes:
    """Inflate as `stream_body` does, from chunks of a given size."""
    inflater, found = bodies._inflater(encoding), b""
    for start in range(0, len(data), chunk_bytes):
        for part in inflater.feed(data[start : start + chunk_bytes]):
            found += part
            if len(found) > limit:
                raise BodyTooLargeError(limit_bytes=limit)
    inflater.finish()
    return found


@given(
    pieces=st.lists(st.binary(max_size=400), min_size=1, max_size=5),
    encoding=st.sampled_from(["gzip", "x-gzip", "zstd"]),
    chunk_bytes=st.integers(1, 5000),
)
def test_what_was_packed_comes_back(pieces: list[bytes], encoding: str, chunk_bytes: int) -> None:
    """Several members or frames, cut anywhere, unpack to what they were made of."""
    pack = zstd if encoding == "zstd" else gzip.compress
    packed = b"".join(pack(piece) for piece in pieces)
    assert inflate(encoding, packed, chunk_bytes) == b"".join(pieces)


@given(data=st.binary(min_size=1, max_size=300), encoding=st.sampled_from(["gzip", "zstd"]))
def test_every_truncation_is_noticed(data: bytes, encoding: str) -> None:
    """A packed body that lacks its last bytes, one or all of them, is never taken for whole."""
    packed = zstd(data) if encoding == "zstd" else gzip.compress(data)
    for length in range(len(packed)):
        with pytest.raises(BodyEncodingError):
            inflate(encoding, packed[:length], 64)


@given(
    data=st.binary(max_size=100),
    garbage=st.binary(min_size=1, max_size=50),
    encoding=st.sampled_from(["gzip", "zstd"]),
)
def test_garbage_behind_the_end_is_noticed(data: bytes, garbage: bytes, encoding: str) -> None:
    """What follows the last member and is none is refused, zeros too."""
    packed = zstd(data) if encoding == "zstd" else gzip.compress(data)
    for tail in (garbage, b"\0" * len(garbage)):
        with pytest.raises(BodyEncodingError):
            inflate(encoding, packed + tail, 64)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_stopped_at_the_limit(encoding: str) -> None:
    """A few hundred kilobytes that mean 256 MiB are refused within a few megabytes of memory."""
    size = 256 * 1024 * 1024
    if encoding == "zstd":
        maker = zstandard.ZstdCompressor(level=19).compressobj()
        bomb = b"".join(maker.compress(bytes(1024 * 1024)) for _ in range(256)) + maker.flush()
    else:
        packer = zlib.compressobj(9, wbits=31)
        bomb = b"".join(packer.compress(bytes(1024 * 1024)) for _ in range(256)) + packer.flush()
    assert len(bomb) < size // 500
    inflater = bodies._inflater(encoding)
    tracemalloc.start()
    try:
        found = 0
        for part in inflater.feed(bomb):
            found += len(part)
            if found > LIMIT:
                break
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert LIMIT < found < 2 * LIMIT
    assert peak < 16 * 1024 * 1024


def test_a_window_larger_than_the_rule_is_refused() -> None:
    """A zstd frame that wants 128 MiB of memory to be read is refused (RFC 9659: 8 MiB)."""
    wide = zstandard.ZstdCompressionParameters.from_level(19, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(BodyEncodingError):
        inflate("zstd", packer.compress(b"x" * 1000) + packer.flush(), 64)


def test_thousands_of_empty_members_are_refused() -> None:
    """Each member costs a decoder, so their number is bounded."""
    with pytest.raises(BodyEncodingError):
        inflate("gzip", gzip.compress(b"") * (bodies.MAX_MEMBERS + 1), 65536)
    assert inflate("gzip", gzip.compress(b"") * bodies.MAX_MEMBERS, 65536) == b""


def hostile(chance: random.Random) -> tuple[bytes, dict[str, bytes]]:
    """Make up a body and its headers: right, damaged, cut, mislabelled, bombs, noise."""
    plain = chance.choice([b"", b'{"a":1}\n' * chance.randrange(40), chance.randbytes(200)])
    label = chance.choice(
        ["gzip", "zstd", "x-gzip", "identity", "br", "gzip, gzip", "GZIP", "\N{SNOWMAN}"]
    )
    packers: list[Callable[[bytes], bytes]] = [gzip.compress, zstd, bytes, zlib.compress]
    data = chance.choice(packers)(
        chance.choice([plain, bytes(10 * 1024 * 1024)] if chance.random() < 0.05 else [plain])
    )
    harm = chance.randrange(6)
    if harm == 0 and data:
        data = data[: chance.randrange(len(data))]
    elif harm == 1 and data:
        place = chance.randrange(len(data))
        data = data[:place] + chance.randbytes(1) + data[place + 1 :]
    elif harm == 2:
        data += chance.randbytes(chance.randrange(1, 9))
    elif harm == 3:
        data += data
    media_type = chance.choice(["application/x-ndjson"] * 9 + ["text/html", "", "application/json"])
    return data, {"Content-Encoding": label.encode(), "Content-Type": media_type.encode()}


def test_a_thousand_hostile_bodies_never_break_the_server(
    run: Run, database: Database, tmp_path: Path
) -> None:
    """Whatever is sent: 200 or a documented 4xx, and nothing stays counted as held."""

    async def ask() -> None:
        services = services_for(database, tmp_path)
        chance = random.Random(20260301)
        seen: set[str] = set()
        async with client(services, (whole, parts)) as asking:
            for _ in range(1000):
                data, headers = hostile(chance)
                path = chance.choice(["/whole", "/parts"])
                answer = await asking.post(path, content=data, headers=headers)
                if answer.status_code != 200:
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert answer.json()["code"] in KNOWN, answer.text
                    seen.add(answer.json()["code"])
                assert services.in_flight.held_bytes == 0
        assert seen == KNOWN

    run(ask())


def test_an_announced_size_over_the_limit_is_refused_at_once(
    run: Run, database: Database, tmp_path: Path
) -> None:
    """`Content-Length` over the limit: 413 before one byte of the body is read."""
    read: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100_000):
            read.append(1)
            yield bytes(1024)

    async def ask() -> None:
        async with client(services_for(database, tmp_path), (whole,)) as asking:
            headers = {"Content-Type": "application/x-ndjson", "Content-Length": str(LIMIT + 1)}
            answer = await asking.post("/whole", content=endless(), headers=headers)
            assert (answer.status_code, answer.json()["limit_bytes"]) == (413, LIMIT)
            assert len(read) <= 1
            read.clear()
            headers = {"Content-Type": "application/x-ndjson"}
            answer = await asking.post("/whole", content=endless(), headers=headers)
            assert answer.status_code == 413
            assert len(read) <= LIMIT // 1024 + 2

    run(ask())


def test_over_the_bound_callers_are_told_to_come_again(
    run: Run, database: Database, tmp_path: Path
) -> None:
    """429 with `Retry-After` when too many bytes are held; afterwards everything is free again."""

    async def ask() -> None:
        services = services_for(database, tmp_path)
        object.__setattr__(services, "in_flight", InFlight(max_bytes=1000))
        async with client(services, (whole, parts)) as asking:
            headers = {"Content-Type": "application/x-ndjson"}
            assert (await asking.post("/whole", content=bytes(1000), headers=headers)).is_success
            busy = await asking.post("/whole", content=bytes(1001), headers=headers)
            assert (busy.status_code, busy.json()["code"]) == (429, "BUSY")
            assert int(busy.headers["retry-after"]) > 0
            streamed = await asking.post("/parts", content=bytes(1001), headers=headers)
            assert streamed.json() == {"size": 1001}
        assert services.in_flight.held_bytes == 0

    run(ask())


class Line:
    """An ASGI connection whose caller sends `messages` and then says nothing more."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def through(self, front: Front, path: str = "/whole") -> int:
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/x-ndjson")],
            "http_version": "1.1",
            "asgi": {"version": "3.0"},
            "scheme": "http",
            "server": ("etude.test", 80),
            "client": ("127.0.0.1", 1),
        }
        await front(scope, self.receive, self.send)
        return int(self.sent[0]["status"]) if self.sent else 0


@pytest.mark.parametrize(("idle_s", "total_s"), [(0.01, 60.0), (60.0, 0.01)])
def test_a_body_that_does_not_come_is_given_up(
    idle_s: float, total_s: float, run: Run, database: Database, tmp_path: Path
) -> None:
    """408 and the end of the connection, when it pauses too long or takes too long altogether."""

    async def ask() -> None:
        limits = BodyLimits(idle_s=idle_s, total_s=total_s)
        app = create_app(services_for(database, tmp_path), (whole,), limits=limits)
        line = Line({"type": "http.request", "body": b"{", "more_body": True})
        assert await line.through(app) == 408
        assert (b"connection", b"close") in line.sent[0]["headers"]

    run(ask())


def test_a_caller_that_hangs_up_is_no_fault(run: Run, database: Database, tmp_path: Path) -> None:
    """The connection ends before the body: no 5xx, nothing held, the handler went no further."""

    async def ask() -> None:
        services = services_for(database, tmp_path)
        app = create_app(services, (whole,))
        gone = {"type": "http.disconnect"}
        begun = {"type": "http.request", "body": b"{", "more_body": True}
        assert await Line(begun, gone).through(app) == 400
        assert services.in_flight.held_bytes == 0

    run(ask())


def test_no_length_is_believed_that_is_no_number() -> None:
    """A made-up `Content-Length` neither passes nor breaks; the count of what comes binds."""
    for announced in (None, "", "-1", "1e3", "0x10", "\uff11", " 7"):
        bodies._check_announced(announced, 10)
    for announced in ("11", "9" * 5000):
        with pytest.raises(BodyTooLargeError):
            bodies._check_announced(announced, 10)
