"""A web site that answers what a test tells it to: a search engine, a maker of pictures."""

import base64
import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec

from etude.testing.waiting import joined

Answer = tuple[int, bytes]
PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class FakeSite:
    """A site over real HTTP.

    Attributes:
        answer: makes the answer (status, body) from path with query, and body.
        asked: every request: path with query, and body.
    """

    def __init__(self, answer: Callable[[str, bytes], Answer]) -> None:
        """Answer by `answer`."""
        self.answer = answer
        self.asked: list[tuple[str, bytes]] = []

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a free port of the loopback; yield the address, without a slash at its end."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                site.asked.append((self.path, body))
                status, said = site.answer(self.path, body)
                self.send_response_only(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                with contextlib.suppress(OSError):  # who asked has gone
                    self.wfile.write(said)

            do_POST = do_GET  # noqa: N815 - the base's name

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base's names
                """Say nothing."""

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


def results(*found: tuple[str, str, str]) -> Answer:
    """Return what SearXNG answers: title, address and content of each page."""
    rows = [{"title": title, "url": url, "content": said} for title, url, said in found]
    return 200, msgspec.json.encode({"query": "q", "results": rows})


def picture(data: bytes = PNG) -> Answer:
    """Return what OpenAI's images protocol answers."""
    return 200, msgspec.json.encode({"data": [{"b64_json": base64.b64encode(data).decode()}]})
