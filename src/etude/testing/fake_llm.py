"""A model that says what a test told it to, over real HTTP, at its best and at its worst.

`FakeModel.serve` opens an OpenAI-compatible endpoint on the loopback. Each request takes the next
part of the script; when the script is over, `usual` is played again and again.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec

_CHAT: Final = "/v1/chat/completions"
_BLOCK: Final = b" " * 65536
_UNTIL_STOPPED_S: Final = 600.0


@dataclass(frozen=True)
class Says:
    """Answer with a text. `words` may make it from the last message that was sent."""

    words: str | Callable[[str], str]
    finish_reason: str = "stop"
    prompt_tokens: int = 11
    completion_tokens: int = 7


@dataclass(frozen=True)
class Status:
    """Answer with a status, as when something is wrong."""

    status: int
    code: str = "error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Answer 200 with these bytes."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hangs:
    """Take the request and say nothing until the server stops."""


@dataclass(frozen=True)
class Drips:
    """Send a body byte by byte, with a pause before each, and never end it."""

    pause_s: float = 0.02


@dataclass(frozen=True)
class Floods:
    """Send a body without end, as fast as it is read."""


@dataclass(frozen=True)
class Cuts:
    """Close the connection in the middle of the body."""


Part = Says | Status | Raw | Hangs | Drips | Floods | Cuts


@dataclass(frozen=True)
class Asked:
    """A request as it came. Header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def last(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


class FakeModel:
    """What a test sees of the model.

    Attributes:
        script: what is played for the next requests, oldest first.
        usual: what is played after the script.
        asked: every request, in order.
    """

    def __init__(self, script: Iterable[Part] = (), usual: Part | None = None) -> None:
        """Begin with a script."""
        self.script = deque(script)
        self.usual: Part = usual or Says("All right.")
        self.asked: list[Asked] = []
        self.arrived = threading.Semaphore(0)
        self._stopped = threading.Event()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a free port of the loopback; yield the base address (`http://…/v1`)."""
        self._stopped.clear()
        model = self

        class Handler(_Handler):
            def do_POST(self) -> None:
                with contextlib.suppress(OSError):  # who asked has gone
                    self.take(model)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            self._stopped.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def take(self, asked: Asked) -> Part:
        """Note a request; return what is played for it."""
        with self._guard:
            self.asked.append(asked)
            self.arrived.release()
            return self.script.popleft() if self.script else self.usual

    def wait(self, seconds: float) -> bool:
        """Wait; return whether the server stopped meanwhile."""
        return self._stopped.wait(seconds)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def take(self, model: FakeModel) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = msgspec.json.decode(self.rfile.read(int(headers.get("content-length", 0))))
        part = model.take(Asked(path=self.path, headers=headers, body=body))
        if self.path != _CHAT:
            part = Status(404, "not_found")
        match part:
            case Says():
                self._answer(200, _completion(part, body))
            case Status():
                error = {"error": {"message": "no", "type": "error", "code": part.code}}
                self._answer(part.status, msgspec.json.encode(error), part.headers)
            case Raw():
                self._answer(200, part.body, part.headers)
            case Hangs():
                model.wait(_UNTIL_STOPPED_S)
                self.close_connection = True
            case _:
                self._spoil(model, part)

    def _spoil(self, model: FakeModel, part: Drips | Floods | Cuts) -> None:
        """Begin a good answer and never end it well."""
        self.close_connection = True
        self._head(200, {"Content-Type": "application/json", "Content-Length": str(1 << 40)})
        if isinstance(part, Cuts):
            self.wfile.write(b'{"choices": [')
            return
        piece, pause_s = (b" ", part.pause_s) if isinstance(part, Drips) else (_BLOCK, 0.0)
        while not model.wait(pause_s):
            self.wfile.write(piece)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        own = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        self._head(status, {**own, **(headers or {})})
        self.wfile.write(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base's names
        """Say nothing."""


def _completion(part: Says, body: Mapping[str, Any]) -> bytes:
    words = part.words
    text = words if isinstance(words, str) else words(str(body["messages"][-1]["content"]))
    message = {"role": "assistant", "content": text}
    return msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": part.finish_reason}],
            "usage": {
                "prompt_tokens": part.prompt_tokens,
                "completion_tokens": part.completion_tokens,
                "total_tokens": part.prompt_tokens + part.completion_tokens,
            },
        }
    )
