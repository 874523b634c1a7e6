"""One picture from an endpoint that speaks OpenAI's images protocol.

The answer has to hold the bytes (`b64_json`): an address would have to be fetched, and nothing that
comes from outside names an address here. Redirects are not followed. No retry in here.
"""

import asyncio
import base64
import binascii
from typing import Any, Final

import httpx2
import msgspec

from etude.llm.errors import (
    LlmAnswerError,
    LlmAnswerTooLargeError,
    LlmBrokenError,
    LlmError,
    LlmRefusedError,
    LlmThrottledError,
    LlmTimeoutError,
    LlmUnreachableError,
)
from etude.net import tls_context

TOTAL_S: Final = 180.0
CONNECT_S: Final = 5.0
MAX_BYTES: Final = 32 << 20
PAUSE_S: Final = 10
SIZE: Final = "1024x1024"
_BEGINNINGS: Final = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"))


class PictureEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where pictures are made. The key is not in its `repr`."""

    url: str
    model: str
    key: str | None = None
    total_s: float = TOTAL_S

    def __repr__(self) -> str:
        """Name address and model only."""
        return f"PictureEndpoint({self.url}, {self.model})"


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture; `kind` is what its bytes are: png, jpg or webp."""

    data: bytes
    kind: str


class _One(msgspec.Struct, frozen=True):
    b64_json: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    data: tuple[_One, ...]


async def draw(endpoint: PictureEndpoint, prompt: str) -> Picture:
    """Return a picture of what the prompt says.

    Raises:
        LlmError: one of its kinds, each with `retry_is_pointless`.
    """
    body: dict[str, Any] = {"model": endpoint.model, "prompt": prompt, "n": 1, "size": SIZE}
    if not endpoint.model.startswith("gpt-image"):  # these send the bytes without being asked
        body["response_format"] = "b64_json"
    sent = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    waits = httpx2.Timeout(endpoint.total_s, connect=CONNECT_S)
    try:
        async with (
            asyncio.timeout(endpoint.total_s),
            httpx2.AsyncClient(
                follow_redirects=False, timeout=waits, headers=sent, verify=tls_context()
            ) as client,
            client.stream("POST", f"{endpoint.url}/images/generations", json=body) as response,
        ):
            if response.status_code != 200:  # noqa: PLR2004 - RFC 9110 §15.3.1
                raise _refusal(response.status_code)
            return _read(await _bounded(response))
    except (TimeoutError, httpx2.TimeoutException):
        raise LlmTimeoutError(total_s=endpoint.total_s) from None
    except httpx2.HTTPError as error:
        raise LlmUnreachableError(reason=type(error).__name__) from None


async def _bounded(response: httpx2.Response) -> bytes:
    whole = bytearray()
    async for block in response.aiter_bytes():
        whole += block
        if len(whole) > MAX_BYTES:
            raise LlmAnswerTooLargeError(limit=MAX_BYTES)
    return bytes(whole)


def _refusal(status: int) -> LlmError:
    if status == 429:  # noqa: PLR2004 - RFC 6585 §4
        return LlmThrottledError(retry_after_s=PAUSE_S)
    if status >= 500:  # noqa: PLR2004 - RFC 9110 §15.6
        return LlmBrokenError(http_status=status)
    return LlmRefusedError(reason="request", http_status=status)


def _read(body: bytes) -> Picture:
    try:
        (first, *_) = msgspec.json.decode(body, type=_Answer).data
        data = base64.b64decode(first.b64_json or "", validate=True)
    except (msgspec.DecodeError, ValueError, binascii.Error):
        raise LlmAnswerError(reason="no_picture") from None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Picture(data=data, kind="webp")
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return Picture(data=data, kind=kind)
    raise LlmAnswerError(reason="no_picture")
