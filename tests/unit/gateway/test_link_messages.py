"""The link's frames: what one side writes the other reads, and nothing else."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway import link_messages as wire

ids = st.text(min_size=1, max_size=64).filter(str.isprintable)
connected = st.builds(
    wire.Connected, device_id=ids, connection_id=ids, age_ms=st.integers(0, 2**42)
)
gone = st.builds(wire.Gone, device_id=ids, connection_id=ids)
from_gateway = st.one_of(
    st.builds(wire.Hello, gateway_id=st.from_regex("[a-z0-9-]{1,64}", fullmatch=True)),
    st.builds(
        wire.Devices,
        connected=st.lists(connected, max_size=5).map(tuple),
        gone=st.lists(gone, max_size=5).map(tuple),
        all_told=st.booleans(),
    ),
    st.builds(
        wire.Answer,
        msg_id=ids,
        outcome=st.sampled_from(["done", "refused", "offline", "timeout"]),
        code=st.integers(-(2**31), 2**31),
        message=ids,
    ),
)


class Item(msgspec.Struct):
    text: str


@given(from_gateway)
def test_what_a_gateway_writes_web_reads(message: wire.FromGateway) -> None:
    """Every message comes back as it was, and is no message of the other direction."""
    frame = wire.encode(message)
    assert wire.decode_from_gateway(frame) == message
    with pytest.raises(wire.LinkFrameError):
        wire.decode_from_web(frame)


@given(st.lists(st.text(max_size=2000).map(Item), max_size=200))
def test_a_snapshot_arrives_whole_in_frames_that_fit(items: list[Item]) -> None:
    """All items in order; the first and the last part say so; an empty one is one part."""
    parts = list(wire.snapshot("colour", items))
    assert [part.first for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    read: list[Any] = []
    for part in parts:
        frame = wire.encode(part)
        assert len(frame) <= wire.MAX_FRAME_BYTES
        again = wire.decode_from_web(frame)
        assert isinstance(again, wire.Snapshot)
        read += [msgspec.json.decode(item, type=Item) for item in again.items]
    assert read == items


def test_members_that_are_not_known_are_passed_over() -> None:
    """A newer side may say more."""
    frame = json.dumps({"type": "welcome", "link_id": "l", "version": 2, "motd": "hello"})
    assert wire.decode_from_web(frame) == wire.Welcome(link_id="l", version=2)


@given(st.one_of(st.text(), st.binary(), st.none(), st.recursive(st.none(), st.lists).map(str)))
def test_anything_else_is_a_typed_error(frame: str | bytes | None) -> None:
    """Whatever comes, either a message or `LINK_FRAME_INVALID`."""
    with suppress(wire.LinkFrameError):
        assert isinstance(wire.decode_from_gateway(frame), msgspec.Struct)


@given(st.lists(st.integers()), st.integers(1, 10))
def test_batches_keep_everything_in_order(items: list[int], size: int) -> None:
    """No batch is empty or too large."""
    batches = list(wire.batches(items, size))
    assert [each for batch in batches for each in batch] == items
    assert all(1 <= len(batch) <= size for batch in batches)
