"""What goes over the link between a gateway and web: JSON text frames, told apart by `type`.

Both sides read with `decode_from_gateway` or `decode_from_web` and refuse what is too large, no
JSON, or none of these messages. Unknown members are passed over, so that either side may be newer.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from etude.errors import MalformedError

PATH: Final = "/api/v1/gateway/link"
VERSION: Final = 1
MAX_FRAME_BYTES: Final = 256 * 1024
MAX_IN_FLIGHT: Final = 64
"""Commands that a gateway works on at a time; web sends no more before it has answers."""
MAX_DEVICES: Final = 200
"""Devices named by one `Devices` message."""
PING_S: Final = 10.0
"""Each side asks the other for a sign of life so often, and cuts the link after as long without."""
SLOW_S: Final = 10.0
"""How long one message may take to be taken by the other side."""
_PART_BYTES: Final = 64 * 1024

Id = Annotated[str, Meta(min_length=1, max_length=64)]
DeviceId = Annotated[str, Meta(min_length=1, max_length=128)]
Kind = Annotated[str, Meta(min_length=1, max_length=32)]


class LinkFrameError(MalformedError):
    """A frame of the link is too large, no JSON, or no message that this side may get."""

    code = "LINK_FRAME_INVALID"


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The gateway's first message. `reaches_offline`: it has a broker, so perhaps any device."""

    gateway_id: Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9._:@-]+$")]
    version: Annotated[int, Meta(ge=1)] = VERSION
    reaches_offline: bool = False


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """A device has been connected for `age_ms`; not since a time: two machines' clocks differ."""

    device_id: DeviceId
    connection_id: Id
    age_ms: Annotated[int, Meta(ge=0, le=2**42)]


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """A connection has ended."""

    device_id: DeviceId
    connection_id: Id


class Devices(msgspec.Struct, frozen=True, kw_only=True, tag="devices"):
    """Who came and went. After the link began, `all_told` ends the list of who is connected."""

    connected: Annotated[tuple[Connected, ...], Meta(max_length=MAX_DEVICES)] = ()
    gone: Annotated[tuple[Gone, ...], Meta(max_length=MAX_DEVICES)] = ()
    all_told: bool = False


Outcome = Literal["done", "refused", "offline", "timeout"]


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What became of a command. `done` and `refused` settle it; else it is sent again."""

    msg_id: Id
    outcome: Outcome
    code: int = 0
    message: Annotated[str, Meta(max_length=1000)] = ""


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """Items of one kind that the gateway has to tell; told again at the beginning of a link."""

    kind: Kind
    items: tuple[msgspec.Raw, ...]


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome"):
    """Web's first message: the link counts."""

    link_id: Id
    version: int = VERSION


class Deliver(msgspec.Struct, frozen=True, kw_only=True, tag="deliver"):
    """A command. The same `msg_id` may come again: it is done once and answered every time."""

    msg_id: Id
    device_id: DeviceId
    action: Annotated[str, Meta(min_length=1, max_length=32)]
    payload: msgspec.Raw
    within_ms: Annotated[int, Meta(ge=0)]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot"):
    """A part of everything of one kind that the gateway is to know; it counts once `last` came."""

    kind: Kind
    items: tuple[msgspec.Raw, ...]
    first: bool
    last: bool


class Changed(msgspec.Struct, frozen=True, kw_only=True, tag="changed"):
    """Items of one kind as they are now."""

    kind: Kind
    items: tuple[msgspec.Raw, ...]


FromGateway = Hello | Devices | Answer | Report
FromWeb = Welcome | Deliver | Snapshot | Changed

_from_gateway: Final = msgspec.json.Decoder(FromGateway)
_from_web: Final = msgspec.json.Decoder(FromWeb)
_encoder: Final = msgspec.json.Encoder()
_Item = TypeVar("_Item")


def encode(message: FromGateway | FromWeb) -> str:
    """Return the frame of a message."""
    return _encoder.encode(message).decode()


def decode_from_gateway(frame: str | bytes | None) -> FromGateway:
    """Read what a gateway sent; raises `LinkFrameError`."""
    return _decode(_from_gateway, frame)


def decode_from_web(frame: str | bytes | None) -> FromWeb:
    """Read what web sent; raises `LinkFrameError`."""
    return _decode(_from_web, frame)


def snapshot(kind: str, items: Sequence[msgspec.Struct]) -> Iterator[Snapshot]:
    """Cut everything of one kind into messages that fit their frames."""
    parts = list(_parts(items)) or [()]
    for index, part in enumerate(parts):
        yield Snapshot(kind=kind, items=part, first=index == 0, last=index == len(parts) - 1)


def changed(kind: str, items: Sequence[msgspec.Struct]) -> Iterator[Changed]:
    """Cut changes into messages that fit their frames."""
    for part in _parts(items):
        yield Changed(kind=kind, items=part)


def report(kind: str, items: Sequence[msgspec.Struct]) -> Iterator[Report]:
    """Cut what the gateway has to tell into messages that fit their frames."""
    for part in _parts(items):
        yield Report(kind=kind, items=part)


def batches(items: Iterable[_Item], size: int) -> Iterator[tuple[_Item, ...]]:
    """Cut `items` into tuples of at most `size`."""
    batch: list[_Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def _parts(items: Iterable[msgspec.Struct]) -> Iterator[tuple[msgspec.Raw, ...]]:
    part: list[msgspec.Raw] = []
    size = 0
    for item in items:
        text = _encoder.encode(item)
        if part and size + len(text) > _PART_BYTES:
            yield tuple(part)
            part, size = [], 0
        part.append(msgspec.Raw(text))
        size += len(text)
    if part:
        yield tuple(part)


_Message = TypeVar("_Message")


def _decode(decoder: "msgspec.json.Decoder[_Message]", frame: str | bytes | None) -> _Message:
    if not isinstance(frame, str) or len(frame) > MAX_FRAME_BYTES:
        raise LinkFrameError(reason="no text, or too long")
    try:
        return decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        # Its words name members and types, never their values.
        raise LinkFrameError(reason=str(error)[:200]) from error
