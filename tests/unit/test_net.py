from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from etude.net import MAX_ANSWER_BYTES, FaultKind, HttpClient, NetworkFault

Answer = Callable[[httpx2.Request], httpx2.Response]


def client(answer: Answer, bearer: str | None = None, server: str = "https://a.test") -> HttpClient:
    return HttpClient(server, bearer=bearer, wire=httpx2.MockTransport(answer))


def send(opened: HttpClient, body: bytes | Path = b"x") -> httpx2.Response | object:
    with opened:
        return opened.send("POST", "/p", body, {"Content-Type": "text/plain"})


def test_a_request_carries_token_type_and_path() -> None:
    """And nothing goes to another place than the server's address and prefix."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(201, headers={"X-Thing": "1"}, content=b"made")

    with client(answer, "secret", "https://a.test/prefix/") as opened:
        reply = opened.send("PUT", "/p%2Fq", b"data", {"Content-Type": "audio/wav"})
    assert (reply.status, reply.headers["x-thing"], reply.body) == (201, "1", b"made")
    assert str(seen[0].url) == "https://a.test/prefix/p%2Fq"
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert seen[0].headers["content-type"] == "audio/wav"
    assert seen[0].headers["user-agent"].startswith("etude/")


def test_a_file_is_streamed_with_its_length(tmp_path: Path) -> None:
    """Not in memory, not chunked."""
    file = tmp_path / "clip.wav"
    file.write_bytes(b"x" * 200_000)
    seen: list[tuple[str | None, bytes]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.headers.get("content-length"), request.read()))
        assert "transfer-encoding" not in request.headers
        return httpx2.Response(200)

    send(client(answer), file)
    assert seen == [("200000", file.read_bytes())]


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    """The token goes where it is for."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.host == "a.test"
        return httpx2.Response(302, headers={"Location": "https://thief.test/"})

    with client(answer, "secret") as opened:
        assert opened.send("POST", "/p", b"", {}).status == 302


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectError("refused"), FaultKind.CONNECT),
        (httpx2.ConnectTimeout("slow"), FaultKind.CONNECT),
        (httpx2.ReadTimeout("slow"), FaultKind.TIMEOUT),
        (httpx2.WriteTimeout("slow"), FaultKind.TIMEOUT),
        (httpx2.PoolTimeout("slow"), FaultKind.TIMEOUT),
        (httpx2.ReadError("reset"), FaultKind.CUT),
        (httpx2.WriteError("reset"), FaultKind.CUT),
        (httpx2.RemoteProtocolError("gone"), FaultKind.CUT),
        (httpx2.LocalProtocolError("Illegal header value b'Bearer secret'"), FaultKind.PROTOCOL),
        (httpx2.ProxyError("proxy"), FaultKind.CONNECT),
        (httpx2.UnsupportedProtocol("ftp"), FaultKind.ADDRESS),
        (httpx2.InvalidURL("?"), FaultKind.ADDRESS),
        (httpx2.DecodingError("gzip"), FaultKind.PROTOCOL),
        (httpx2.TooManyRedirects("loop"), FaultKind.PROTOCOL),
    ],
)
def test_every_fault_of_the_library_is_one_of_ours(raised: Exception, kind: FaultKind) -> None:
    """One table; no word of a protocol error is passed on, for it may quote a token."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        raise raised

    with pytest.raises(NetworkFault) as fault:
        send(client(answer))
    assert fault.value.kind is kind
    assert "secret" not in str(fault.value)


def test_a_large_answer_comes_in_blocks() -> None:
    """However large, up to what the caller takes; its status is known before its body."""
    content = b"x" * (MAX_ANSWER_BYTES + 1)
    with client(lambda _: httpx2.Response(200, content=content), "secret") as opened:
        with opened.fetching("/p", len(content)) as (status, blocks):
            assert (status, b"".join(blocks)) == (200, content)
        with (
            pytest.raises(NetworkFault) as raised,
            opened.fetching("/p", len(content) - 1) as (_, blocks),
        ):
            b"".join(blocks)
    assert raised.value.kind is FaultKind.TOO_LARGE


def test_a_large_answer_that_is_cut_is_named() -> None:
    """An error of the library in the midst of the blocks is one of ours."""

    def blocks_until_cut() -> Iterator[bytes]:
        yield b"x"
        raise httpx2.ReadError(message="cut")

    with (
        client(lambda _: httpx2.Response(200, content=blocks_until_cut())) as opened,
        pytest.raises(NetworkFault) as raised,
        opened.fetching("/p", 10) as (_, blocks),
    ):
        b"".join(blocks)
    assert raised.value.kind is FaultKind.CUT


def test_an_answer_without_end_is_too_large() -> None:
    """At most 1 MiB is read."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=b"x" * (MAX_ANSWER_BYTES + 1))

    with pytest.raises(NetworkFault) as fault:
        send(client(answer))
    assert fault.value.kind is FaultKind.TOO_LARGE


@pytest.mark.parametrize(
    "server",
    ["", "a.test", "ftp://a.test", "https://", "file:///etc/passwd", "https://a.test/?x=1",
     "https://a.test/#x", "https://user:word@a.test", "https://a.test:port", "https://a.test:0",
     "https://a.test:-1", "https://a.test:65536", "https://a.test:73616", "https://a test"],
)  # fmt: skip
def test_an_address_that_cannot_work_is_refused_at_once(server: str) -> None:
    """Before anything is sent."""
    with pytest.raises(NetworkFault) as fault:
        HttpClient(server)
    assert fault.value.kind is FaultKind.ADDRESS


@pytest.mark.parametrize("bearer", ["", "a b", "a\nX-Evil: 1", "ключ", "a\x7f"])
def test_a_token_that_no_header_can_carry_is_refused_without_quoting_it(bearer: str) -> None:
    """No header injection, no secret in a message."""
    with pytest.raises(NetworkFault) as fault:
        HttpClient("https://a.test", bearer=bearer)
    assert fault.value.kind is FaultKind.TOKEN
    assert not bearer or bearer not in str(fault.value)
