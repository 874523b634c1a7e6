"""The network that loses an answer."""

import http.server
import threading
from collections.abc import Iterator

import httpx2
import pytest

from etude.testing.relay import Relay
from etude.testing.waiting import joined


class Counting(http.server.BaseHTTPRequestHandler):
    """Counts the requests that reached the server."""

    protocol_version = "HTTP/1.1"
    reached: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reached.append(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def reached() -> list[bytes]:
    return []


@pytest.fixture
def network(reached: list[bytes]) -> Iterator[Relay]:
    handler = type("Handler", (Counting,), {"reached": reached})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with Relay(server.server_port) as relay:
            yield relay
        server.shutdown()
        joined(thread)


def test_it_carries_both_ways(network: Relay) -> None:
    """Nothing is lost or changed while nobody asks for it."""
    body = bytes(range(256)) * 1000
    with httpx2.Client() as client:
        for _ in range(3):
            assert client.post(network.url, content=body).content == body
    assert network.answers_lost == 0


def test_the_request_arrives_and_the_answer_is_lost(network: Relay, reached: list[bytes]) -> None:
    """The server has done the work, the client learns nothing, and the next try goes through."""
    network.lose_next_answer()
    with httpx2.Client() as client:
        with pytest.raises(httpx2.TransportError):
            client.post(network.url, content=b"once")
        assert client.post(network.url, content=b"again").content == b"again"
    assert reached == [b"once", b"again"]
    assert network.answers_lost == 1
