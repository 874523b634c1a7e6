import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from etude.testing.playmate import Playmate
from etude.testing.playroom import Playroom
from etude.testing.waiting import within

ROOM = cast("Playroom", SimpleNamespace(ota_url="http://127.0.0.1:9/"))


class Toy:
    """Stays, or gives up after a moment."""

    def __init__(self, gives_up: Exception | None = None) -> None:
        self.gives_up = gives_up
        self.scrapped = False

    async def stay(self, _client: Any, _ota_url: str) -> None:
        await asyncio.sleep(0.02 if self.gives_up else 3600)
        if self.gives_up:
            raise self.gives_up

    def scrap(self) -> None:
        self.scrapped = True


def practising(*toys: Toy) -> Any:
    return Playroom.practising(ROOM, cast("list[Playmate]", list(toys)))


def test_a_toy_that_gives_up_ends_what_waits_for_it() -> None:
    """With its reason; the others are called off, and the caller is not cancelled any more."""
    toys = Toy(), Toy(TimeoutError("no gateway"))

    async def wait() -> None:
        async with practising(*toys):
            await asyncio.Event().wait()  # for a clip, say

    async def play() -> None:
        with pytest.raises(TimeoutError, match="no gateway"):
            await within(wait(), "the reason")
        await asyncio.sleep(0.01)

    asyncio.run(play())
    assert all(toy.scrapped for toy in toys)


def test_toys_that_stay_end_with_the_block() -> None:
    """Its own error passes, and so does a cancellation from outside."""
    toy = Toy()

    async def fail() -> None:
        async with practising(toy):
            raise KeyError

    async def be_cancelled() -> None:
        async with practising(toy):
            await asyncio.sleep(3600)

    async def cancel() -> None:
        task = asyncio.create_task(be_cancelled())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pytest.raises(KeyError):
        asyncio.run(fail())
    asyncio.run(cancel())
    assert toy.scrapped
