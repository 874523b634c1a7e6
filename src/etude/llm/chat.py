"""One question to a model, one answer: a chat over any OpenAI-compatible endpoint.

No retry in here: whoever asks owns the schedule, and each error says whether asking again can help.
Nothing is sent unless a person configured an endpoint, and then to that address only: redirects are
not followed, and nothing that comes from outside names an address. The environment of OpenAI's own
library (`OPENAI_…`) is not used, so that no other key goes to this endpoint.
"""

import asyncio
import contextlib
import importlib.util
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import httpx2
import msgspec
import structlog
from msgspec import Meta

from etude.llm.answers import Answer, Gathering, read_completion
from etude.llm.errors import (
    INSTALL_LINE,
    LlmAddressError,
    LlmAnswerError,
    LlmAnswerTooLargeError,
    LlmBrokenError,
    LlmError,
    LlmNotInstalledError,
    LlmRefusedError,
    LlmThrottledError,
    LlmTimeoutError,
    LlmUnreachableError,
)
from etude.net import tls_context

if TYPE_CHECKING:  # an extra: imported when a model is asked
    import openai

CONNECT_S: Final = 5.0
TOTAL_S: Final = 60.0
MAX_ANSWER_BYTES: Final = 2 << 20
MAX_STREAM_BYTES: Final = 32 << 20
"""A stream wraps each word in some two hundred bytes; its text has the bound of any answer."""
LONGEST_PAUSE_S: Final = 3600
_USUAL_PAUSE_S: Final = 10
_PRINTABLE: Final = range(0x21, 0x7F)
_LAST_PORT: Final = 65535
_LONGEST_REFUSAL: Final = 2000
_DIALECT: Final = ("max_tokens", "stream_options")
_NO_KEY: Final = "none"
# What OpenAI's library may add of its own accord, from the environment.
_NOT_OURS: Final = ("openai-organization", "openai-project")

_log: Final = structlog.get_logger("etude.llm")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where the model is. The key is not in its `repr`.

    Attributes:
        url: base address as OpenAI's libraries take it, `https://host[:port]/v1`.
        model: its name there.
        key: sent as a bearer token; None = the endpoint wants none.
        connect_s: the longest wait for a connection.
        total_s: the longest wait for the whole answer, connecting included.
        silence_s: the longest pause within an answer; None = as long as the whole may take.
    """

    url: str
    model: str
    key: str | None = None
    connect_s: float = CONNECT_S
    total_s: float = TOTAL_S
    silence_s: float | None = None

    def __repr__(self) -> str:
        """Name address and model only."""
        return f"Endpoint({self.url}, {self.model})"


class Message(msgspec.Struct, frozen=True):
    """A part of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        messages: the conversation so far, oldest first.
        max_tokens: the longest answer, in the model's tokens.
        temperature: 0 = always the likeliest word; None = the endpoint's own.
        model: which model of the endpoint; None = the one that it is configured with.
    """

    messages: tuple[Message, ...]
    max_tokens: Annotated[int, Meta(ge=1)] = 1024
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    model: str | None = None


class Chat:
    """Asks one endpoint. For one event loop; close it, or use it as a context.

    Cancelling a question closes its connection, and others go on.

    Raises:
        LlmAddressError: address, key or model cannot be used.
        LlmNotInstalledError: `etude[llm]` is missing.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        """Check endpoint and installation; connects and imports at the first question."""
        if importlib.util.find_spec("openai") is None:
            raise LlmNotInstalledError(install=INSTALL_LINE)
        self.endpoint = _checked(endpoint)
        self._client: openai.AsyncOpenAI | None = None
        self._unaccepted: set[str] = set()

    async def ask(self, request: Request) -> Answer:
        """Return the model's answer.

        Raises:
            LlmError: one of its kinds, each with `retry_is_pointless`.
        """
        return await self._logged(lambda: self._ask(request))

    async def stream(self, request: Request, seen: Callable[[str], None] | None = None) -> Answer:
        """Return the model's answer, read piece by piece: for answers that take minutes.

        An answer that ends at `max_tokens` comes with `cut`. An endpoint that does not stream is
        understood, too.

        Args:
            request: what is asked.
            seen: is told each piece as it comes.

        Raises:
            LlmError: as `ask`; whether anything had come by then is known to `seen`.
        """
        told = seen or (lambda _: None)
        return await self._logged(lambda: self._stream(request, told))

    async def _logged(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            answer = await self._understood(ask)
        except LlmError as error:
            _log.warning("no answer of the model", action="llm.ask", code=error.code)
            raise
        _log.info(
            "the model answered",
            action="llm.ask",
            model=answer.model,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )
        return answer

    async def _understood(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask in the endpoint's dialect: what it refuses to read is not sent again.

        Newer models of OpenAI know `max_tokens` by another name; some servers know no
        `stream_options`. Such a refusal costs nothing.
        """
        while True:
            try:
                return await ask()
            except _UnacceptedError as error:
                self._unaccepted.add(error.name)

    async def _ask(self, request: Request) -> Answer:
        client = self._connected()
        async with self._mapped():
            raw = await client.chat.completions.with_raw_response.create(**self._sent(request))
        return read_completion(raw.content, self.endpoint.model)

    async def _stream(self, request: Request, seen: Callable[[str], None]) -> Answer:
        completions = self._connected().chat.completions.with_streaming_response
        sent = self._sent(request)
        sent["stream"] = True
        if "stream_options" not in self._unaccepted:
            sent["stream_options"] = {"include_usage": True}
        async with self._mapped(), completions.create(**sent) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                answer = read_completion(await response.read(), sent["model"])
                seen(answer.text)
                return answer
            gathering = Gathering(sent["model"], MAX_ANSWER_BYTES, seen)
            async for line in response.iter_lines():
                if gathering.take(line):
                    break
            return gathering.answer()

    def _sent(self, request: Request) -> dict[str, Any]:
        sent: dict[str, Any] = msgspec.to_builtins(request)
        named = {name: value for name, value in sent.items() if value is not None}
        if "max_tokens" in self._unaccepted:
            named["max_completion_tokens"] = named.pop("max_tokens")
        return {"model": self.endpoint.model} | named

    @contextlib.asynccontextmanager
    async def _mapped(self) -> AsyncIterator[None]:
        """End in time, and say what goes wrong as one of ours."""
        import openai  # noqa: PLC0415 - an extra

        try:
            async with asyncio.timeout(self.endpoint.total_s):
                yield
        except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
            raise LlmTimeoutError(total_s=self.endpoint.total_s) from None
        except openai.APIStatusError as error:
            if name := _unaccepted(error.status_code, error.body, self._unaccepted):
                raise _UnacceptedError(name) from None
            raise _refusal(error.status_code, error.response.headers, error.body) from None
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            raise LlmUnreachableError(reason=type(cause).__name__) from None

    def _connected(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            import openai  # noqa: PLC0415 - an extra, looked for when this was made

            # At level debug it logs what was asked, whatever our own level is.
            logging.getLogger("openai").setLevel(logging.WARNING)
            self._client = openai.AsyncOpenAI(
                base_url=self.endpoint.url,
                api_key=self.endpoint.key or _NO_KEY,
                max_retries=0,
                http_client=_wire(self.endpoint),
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def __aenter__(self) -> Self:
        """Close at the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """See `close`."""
        await self.close()


class _UnacceptedError(Exception):
    """The endpoint does not know a parameter of a request."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _unaccepted(status: int, body: object, known: Container[str]) -> str | None:
    """Return which of the parameters that not every server knows a refusal is about, if any."""
    if status not in {400, 422}:
        return None
    said = str(body)[:_LONGEST_REFUSAL]
    return next((one for one in _DIALECT if one in said and one not in known), None)


def _checked(endpoint: Endpoint) -> Endpoint:
    try:
        url = httpx2.URL(endpoint.url)
    except httpx2.InvalidURL:
        raise LlmAddressError(reason="the address is no URL") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise LlmAddressError(reason="the address names no host behind http:// or https://")
    # The resolver takes a port modulo 65536: without this a key would reach somebody else.
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        raise LlmAddressError(reason=f"a port is a number from 1 to {_LAST_PORT}")
    if url.userinfo or url.query or url.fragment:
        raise LlmAddressError(reason="the address may hold no password, query or fragment")
    if endpoint.key is not None and not _is_printable(endpoint.key):
        raise LlmAddressError(reason="the key is not printable ASCII without spaces")
    if not endpoint.model.strip():
        raise LlmAddressError(reason="the model has no name")
    return endpoint


def _is_printable(key: str) -> bool:
    return bool(key) and all(ord(character) in _PRINTABLE for character in key)


def _wire(endpoint: Endpoint) -> httpx2.AsyncClient:
    """Return the connection pool: one key, no redirect, bounded answers."""

    async def prepare(request: httpx2.Request) -> None:
        for name in _NOT_OURS:
            request.headers.pop(name, None)
        request.headers["Accept-Encoding"] = "identity"  # so that the bound is of what is held
        if endpoint.key is None:
            request.headers.pop("Authorization", None)

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise LlmAnswerError(reason="compressed")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            kind = response.headers.get("Content-Type", "")
            streamed = kind.startswith("text/event-stream")
            limit = MAX_STREAM_BYTES if streamed else MAX_ANSWER_BYTES
            response.stream = _Bounded(response.stream, limit)

    return httpx2.AsyncClient(
        follow_redirects=False,
        verify=tls_context(),
        timeout=httpx2.Timeout(
            endpoint.total_s,
            connect=endpoint.connect_s,
            read=endpoint.silence_s or endpoint.total_s,
        ),
        event_hooks={"request": [prepare], "response": [bound]},
    )


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it becomes too long."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for block in self._stream:
            left -= len(block)
            if left < 0:
                raise LlmAnswerTooLargeError(limit=self._limit)
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


def _refusal(status: int, headers: Mapping[str, str], body: object) -> LlmError:
    """Return the error for a status that is no success; the body's words stay out."""
    code = body.get("code") if isinstance(body, dict) else None
    if status == 429 and code != "insufficient_quota":  # noqa: PLR2004 - RFC 6585 §4
        return LlmThrottledError(retry_after_s=_pause_s(headers))
    if status >= 500:  # noqa: PLR2004 - RFC 9110 §15.6
        return LlmBrokenError(http_status=status)
    return LlmRefusedError(reason=_REASONS.get(status, _other(status)), http_status=status)


_REASONS: Final[Mapping[int, str]] = {
    401: "credentials",
    402: "quota",
    403: "credentials",
    404: "model",
    429: "quota",
}


def _other(status: int) -> str:
    return "redirect" if 300 <= status < 400 else "request"  # noqa: PLR2004 - RFC 9110 §15.4


def _pause_s(headers: Mapping[str, str]) -> int:
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit() and len(said) <= 9:  # noqa: PLR2004 - more is no pause
        return min(max(int(said), 1), LONGEST_PAUSE_S)
    return _USUAL_PAUSE_S
