"""Bodies of several parts (RFC 7578) that are read as they come: no part is held in memory."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeAlias

import msgspec
from multipart import (  # type: ignore[import-untyped]  # it has no types of its own
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
    parse_options_header,
)

from etude.web.bodies import stream_body
from etude.web.errors import MediaTypeError, MultipartInvalidError
from etude.web.services import HttpRequest

MEDIA_TYPE: Final = "multipart/form-data"
_HEADER_BYTES: Final = 1024
_Event: TypeAlias = MultipartSegment | bytearray | bytes | None


class BodyPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part: its name, and its bytes as they come. What is not read is passed over."""

    name: str
    chunks: AsyncIterator[bytes]


@asynccontextmanager
async def parts_of(
    request: HttpRequest, limit_bytes: int, most_parts: int
) -> AsyncIterator[AsyncIterator[BodyPart]]:
    """Open a body; yields its parts, one after the other.

    Raises:
        MediaTypeError: 415, it is of another type.
        MultipartInvalidError: 400, it is not as its type says, cut off, or has too many parts.
        BodyTooLargeError, BodyTimeoutError, BodyCutOffError: as of `stream_body`.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != MEDIA_TYPE or not options.get("boundary"):
        raise MediaTypeError(expected=MEDIA_TYPE)
    async with (
        aclosing(_events(request, options["boundary"], limit_bytes, most_parts)) as events,
        aclosing(_parts(events)) as parts,
    ):
        yield parts


async def _parts(events: AsyncGenerator[_Event]) -> AsyncGenerator[BodyPart]:
    async for event in events:
        if isinstance(event, MultipartSegment):
            chunks = _chunks(events)
            yield BodyPart(name=event.name or "", chunks=chunks)
            async for _ in chunks:  # what the caller left
                pass


async def _chunks(events: AsyncGenerator[_Event]) -> AsyncGenerator[bytes]:
    async for event in events:
        if event is None:
            return
        if isinstance(event, bytes | bytearray):
            yield bytes(event)


async def _events(
    request: HttpRequest, boundary: str, limit_bytes: int, most_parts: int
) -> AsyncGenerator[_Event]:
    try:
        with PushMultipartParser(
            boundary,
            max_header_size=_HEADER_BYTES,
            max_segment_count=most_parts,
            strict=True,
        ) as parser:
            async with aclosing(stream_body(request, limit_bytes)) as chunks:
                async for chunk in chunks:
                    for event in parser.parse(chunk):
                        yield event
    except MultipartError as error:
        raise MultipartInvalidError(reason=str(error)[:200]) from error
