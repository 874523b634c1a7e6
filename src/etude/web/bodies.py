"""Request bodies that a handler reads by itself: bounded in size, in memory and in time.

A body may come as `Content-Encoding: gzip` or `zstd` (`docs/http-api.md §Bodies`). Inflation stops
at the limit: a bomb costs its caller a 413 and this process a few megabytes. The time a body may
take is limited for every route in `etude.web.front`.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Final, Protocol

import zstandard
from litestar import Request
from litestar.datastructures import State

from etude.web.context import context_of
from etude.web.errors import (
    BodyCutOffError,
    BodyEncodingError,
    BodyMalformedError,
    BodyTooLargeError,
    EncodingUnknownError,
    MediaTypeError,
)
from etude.web.services import HttpRequest, services_of

# One deflate stream inflates a slice to at most 1,032 times its size; one zstd block of 4 bytes
# to 128 KiB. The slices bound what one step can produce to about 4 MiB.
GZIP_SLICE_BYTES: Final = 4096
ZSTD_SLICE_BYTES: Final = 128
ZSTD_WINDOW_BYTES: Final = 8 * 1024 * 1024  # RFC 9659: what a recipient need support at most
MAX_MEMBERS: Final = 1000  # RFC 1952 allows several; each costs a decoder


class JsonRequest(Request[Any, Any, State]):
    """A request whose JSON may be nested as deeply as its sender likes."""

    async def json(self) -> Any:  # noqa: ANN401 - whatever JSON it is; the handler's struct types it
        """Return the body as JSON values; `BodyMalformedError` if it is nested too deeply."""
        try:
            return await super().json()
        except RecursionError:  # msgspec's answer to some thousand brackets, where 400 is meant
            raise BodyMalformedError from None


async def read_body(request: HttpRequest, limit_bytes: int) -> bytes:
    """Return the whole body, inflated.

    Its size counts against `etude.web.in_flight` until the request has ended.

    Raises:
        BodyTooLargeError: over `limit_bytes`, as sent (at once, by `Content-Length`) or inflated.
        EncodingUnknownError: 415, a `Content-Encoding` other than gzip, zstd, identity.
        BodyEncodingError: 400, not whole or not valid in its encoding.
        BodyTimeoutError: 408, it did not arrive in time.
        BusyError: 429, too many bodies are held already.
        BodyCutOffError: the caller is gone.
    """
    context, in_flight = context_of(request.scope), services_of(request).in_flight
    parts: list[bytes] = []
    async for part in stream_body(request, limit_bytes):
        in_flight.hold(len(part))
        context.held_bytes += len(part)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def stream_body(request: HttpRequest, limit_bytes: int) -> AsyncGenerator[bytes]:
    """Yield the body in parts, inflated; raises as `read_body` does, except `BusyError`."""
    inflate = _inflater(request.headers.get("content-encoding"))
    _check_announced(request.headers.get("content-length"), limit_bytes)
    received = yielded = 0
    async for chunk in _chunks(request):
        received += len(chunk)
        if received > limit_bytes:
            raise BodyTooLargeError(limit_bytes=limit_bytes)
        for part in inflate.feed(chunk):
            yielded += len(part)
            if yielded > limit_bytes:
                raise BodyTooLargeError(limit_bytes=limit_bytes)
            if part:
                yield part
    inflate.finish()


def require_media_type(request: HttpRequest, *expected: str) -> str:
    """Return the body's media type without parameters; `MediaTypeError` unless it is expected."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in expected:
        raise MediaTypeError(expected=", ".join(expected))
    return sent


def _check_announced(content_length: str | None, limit_bytes: int) -> None:
    if content_length is None or not content_length.isdecimal():
        return  # the ASGI server has refused what is no number; the count below is what binds
    if len(content_length) > 18 or int(content_length) > limit_bytes:  # noqa: PLR2004 - 10^18 is over any limit
        raise BodyTooLargeError(limit_bytes=limit_bytes)


async def _chunks(request: HttpRequest) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise BodyCutOffError
        chunk = message["body"]
        more = message["more_body"]
        if chunk:
            yield chunk


class _Inflater(Protocol):
    """Turns what was sent into what was meant, step by step."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what `chunk` adds; each part is small enough to hold."""

    def finish(self) -> None:
        """Raise `BodyEncodingError` if the body is not whole."""


class _Plain:
    """No encoding."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        return


class _Decoder(Protocol):
    """One gzip member or one zstd frame, as both libraries offer it."""

    @property
    def eof(self) -> bool:
        """Whether its end was reached."""

    @property
    def unused_data(self) -> bytes:
        """What came after its end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what `data` adds."""


class _Compressed:
    """One or more gzip members or zstd frames, one after another."""

    def __init__(
        self, encoding: str, new_decoder: Callable[[], _Decoder], slice_bytes: int
    ) -> None:
        self._encoding = encoding
        self._new_decoder = new_decoder
        self._slice_bytes = slice_bytes
        self._decoder = new_decoder()
        self._members = 1

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), self._slice_bytes):
            data = chunk[start : start + self._slice_bytes]
            while data:
                if self._decoder.eof:
                    self._begin_member()
                try:
                    yield self._decoder.decompress(data)
                except (zlib.error, zstandard.ZstdError) as error:
                    raise BodyEncodingError(encoding=self._encoding) from error
                data = self._decoder.unused_data if self._decoder.eof else b""

    def finish(self) -> None:
        if not self._decoder.eof:
            raise BodyEncodingError(encoding=self._encoding)

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BodyEncodingError(encoding=self._encoding)
        self._decoder = self._new_decoder()


def _gzip_decoder() -> _Decoder:
    return zlib.decompressobj(wbits=31)


def _zstd_decoder() -> _Decoder:
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    return decompressor.decompressobj(write_size=64 * 1024)


def _inflater(content_encoding: str | None) -> _Inflater:
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return _Plain()
    if encoding in {"gzip", "x-gzip"}:  # RFC 9110 §8.4.1.3
        return _Compressed("gzip", _gzip_decoder, GZIP_SLICE_BYTES)
    if encoding == "zstd":
        return _Compressed("zstd", _zstd_decoder, ZSTD_SLICE_BYTES)
    raise EncodingUnknownError
