"""A model that says what a test told it to, over real HTTP, at its best and at its worst.

`FakeModel.serve` opens an OpenAI-compatible endpoint on the loopback. Each request takes the next
part of the script; when the script is over, `usual` is played again and again. Whoever asks for a
stream gets one.
"""

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec

from etude.testing.waiting import joined

_CHAT: Final = "/v1/chat/completions"
_CHUNK: Final = "chat.completion.chunk"
_BLOCK: Final = b" " * 65536
_PIECE: Final = 24


@dataclass(frozen=True)
class Says:
    """Answer with a text. `words` may make it from the last message that was sent."""

    words: str | Callable[[str], str]
    finish_reason: str = "stop"
    prompt_tokens: int = 11
    completion_tokens: int = 7
    streams: bool = True
    """Whether it streams if that is asked for; some servers never do."""
    counts: bool = True
    """Whether it says how many tokens there were."""


@dataclass(frozen=True)
class Status:
    """Answer with a status, as when something is wrong."""

    status: int
    code: str = "error"
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "no"


@dataclass(frozen=True)
class Raw:
    """Answer 200 with these bytes."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hangs:
    """Take the request, say `words` (only in a stream), and nothing more until somebody goes."""

    words: str = ""


@dataclass(frozen=True)
class Drips:
    """Send a body byte by byte, with a pause before each, and never end it."""

    pause_s: float = 0.02


@dataclass(frozen=True)
class Floods:
    """Send a body without end, as fast as it is read."""


@dataclass(frozen=True)
class Cuts:
    """Close the connection in the middle of the body; in a stream, after `words`."""

    words: str = ""
    cleanly: bool = False
    """Whether the stream is ended as if it were whole."""


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

    @property
    def streamed(self) -> bool:
        """Whether a stream was asked for."""
        return self.body.get("stream") is True


class FakeModel:
    """What a test sees of the model.

    Attributes:
        script: what is played for the next requests, oldest first.
        usual: what is played after the script; it may be made from the request.
        asked: every request, in order.
        arrived: is released for each request.
        hung: is released when a `Hangs` has said its words.
        left: is released when whoever asked closes the connection before the end of `Hangs`.
    """

    def __init__(
        self,
        script: Iterable[Part] = (),
        usual: Part | Callable[[Asked], Part] | None = None,
    ) -> None:
        """Begin with a script."""
        self.script = deque(script)
        self.usual: Part | Callable[[Asked], Part] = usual or Says("All right.")
        self.asked: list[Asked] = []
        self.arrived = threading.Semaphore(0)
        self.hung = threading.Semaphore(0)
        self.left = threading.Semaphore(0)
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
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            self._stopped.set()
            server.shutdown()
            joined(thread)
            server.server_close()

    def take(self, asked: Asked) -> Part:
        """Note a request; return what is played for it."""
        with self._guard:
            self.asked.append(asked)
            self.arrived.release()
            if self.script:
                return self.script.popleft()
            return self.usual(asked) if callable(self.usual) else self.usual

    def wait(self, seconds: float) -> bool:
        """Wait; return whether the server stopped meanwhile."""
        return self._stopped.wait(seconds)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def take(self, model: FakeModel) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = msgspec.json.decode(self.rfile.read(int(headers.get("content-length", 0))))
        asked = Asked(path=self.path, headers=headers, body=body)
        part = model.take(asked)
        if self.path != _CHAT:
            part = Status(404, "not_found")
        match part:
            case Says() if asked.streamed and part.streams:
                self._stream(_chunks(part, asked))
            case Says():
                self._answer(200, _completion(part, body))
            case Status():
                error = {"error": {"message": part.message, "type": "error", "code": part.code}}
                self._answer(part.status, msgspec.json.encode(error), part.headers)
            case Raw():
                self._answer(200, part.body, part.headers)
            case Hangs():
                if asked.streamed:
                    self._stream([_chunk(asked.body["model"], part.words)], end=False)
                model.hung.release()
                self._wait_for_leaving(model)
                self.close_connection = True
            case Cuts() if asked.streamed:
                self._stream([_chunk(asked.body["model"], part.words)], end=part.cleanly)
                self.close_connection = True
            case _:
                self._spoil(model, part)

    def _stream(self, chunks: Iterable[bytes], *, end: bool = True) -> None:
        """Send events, each a piece of the body; without `end` the body stays open."""
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for chunk in chunks:
            event = b"data: " + chunk + b"\n\n"
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        if end:
            self.wfile.write(b"0\r\n\r\n")

    def _wait_for_leaving(self, model: FakeModel) -> None:
        """Wait until the other side closes, which is noted, or the server stops."""
        self.connection.settimeout(0)
        while not model.wait(0.02):
            try:
                if self.connection.recv(1, socket.MSG_PEEK) == b"":
                    model.left.release()
                    return
            except BlockingIOError:
                continue
            except OSError:
                model.left.release()
                return

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


def _said(part: Says, body: Mapping[str, Any]) -> str:
    words = part.words
    return words if isinstance(words, str) else words(str(body["messages"][-1]["content"]))


def _chunks(part: Says, asked: Asked) -> Iterator[bytes]:
    """Yield an answer in pieces of some words, as a model's endpoint streams it."""
    model, text = asked.body["model"], _said(part, asked.body)
    yield _chunk(model, "")
    for at in range(0, len(text), _PIECE):
        yield _chunk(model, text[at : at + _PIECE])
    yield _chunk(model, None, part.finish_reason)
    if part.counts:
        usage = _usage(part)
        yield msgspec.json.encode({"object": _CHUNK, "model": model, "choices": [], "usage": usage})
    yield b"[DONE]"


def _chunk(model: str, words: str | None, finish_reason: str | None = None) -> bytes:
    delta = {} if words is None else {"content": words}
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return msgspec.json.encode({"object": _CHUNK, "model": model, "choices": [choice]})


def _usage(part: Says) -> dict[str, int]:
    return {
        "prompt_tokens": part.prompt_tokens,
        "completion_tokens": part.completion_tokens,
        "total_tokens": part.prompt_tokens + part.completion_tokens,
    }


def _completion(part: Says, body: Mapping[str, Any]) -> bytes:
    message = {"role": "assistant", "content": _said(part, body)}
    return msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": part.finish_reason}],
        }
        | ({"usage": _usage(part)} if part.counts else {})
    )
