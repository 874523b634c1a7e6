"""What toys may ask of a model: as web says, a little while it is away, and nothing waits long."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from etude.clock import RandomIds
from etude.gateway.errors import ToyQuotaError
from etude.gateway.model_room import ASK_S, AWAY_TOKENS, FRESH_S, MOST_WAITING, ModelRoom
from etude.people.spending.amounts import Tokens
from etude.people.spending.link_records import CALLS, ROOM, Room, RoomWanted, ToyCall
from etude.testing.virtual_time import run

MOST = Tokens(prompt=100, completion=400)
USED = Tokens(prompt=90, completion=60)


class Web:
    """The other side: answers as a test says, or not at all."""

    def __init__(self, *, tokens: int = 20_000, up: bool = True, answers: bool = True) -> None:
        self.room = ModelRoom(RandomIds())
        self.tokens, self.up, self.answers = tokens, up, answers
        self.asked: list[RoomWanted] = []
        self.calls: list[ToyCall] = []
        self.room.linked = lambda: self.up
        self.room.report = self.hear
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, kind: str, item: msgspec.Struct) -> None:
        if not self.up:
            return
        if isinstance(item, RoomWanted):
            assert kind == ROOM
            self.asked.append(item)
            if self.answers:
                self._later(self.tell(Room(device_id=item.device_id, tokens=self.tokens)))
        elif isinstance(item, ToyCall):
            assert kind == CALLS
            self.calls.append(item)

    async def tell(self, *rooms: Room) -> None:
        raws = [msgspec.Raw(msgspec.json.encode(one)) for one in rooms]
        await self.room.handlers()[ROOM].apply(raws)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def ask(self, toy: str = "toy-1", used: Tokens = USED) -> bool:
        """Ask a question as chat does; return whether it was asked."""
        try:
            await self.room.take(toy, "small", MOST)
        except ToyQuotaError:
            return False
        self.room.used(toy, "chat", "small", MOST, used, estimated=False)
        return True


def test_web_is_asked_once_a_minute_and_told_every_call() -> None:
    """The first question asks what is left; the next ones draw on that; then it is asked anew."""

    async def main() -> None:
        web = Web()
        assert [await web.ask() for _ in range(5)] == [True] * 5
        assert web.asked == [RoomWanted(device_id="toy-1", model="small")]
        assert [(one.prompt_tokens, one.completion_tokens) for one in web.calls] == [(90, 60)] * 5
        assert len({one.call_id for one in web.calls}) == 5
        await asyncio.sleep(FRESH_S + 1)
        assert await web.ask()
        assert len(web.asked) == 2

    run(main)


def test_where_nothing_is_left_nobody_is_asked() -> None:
    """Neither the model nor, within a minute, web; other toys have their own; later there is."""

    async def main() -> None:
        web = Web(tokens=MOST.all - 1)
        assert [await web.ask() for _ in range(3)] == [False] * 3
        assert (len(web.asked), web.calls) == (1, [])
        web.tokens = 20_000
        assert await web.ask("toy-2")
        await asyncio.sleep(FRESH_S + 1)
        assert await web.ask()

    run(main)


def test_a_share_is_drawn_on_here_until_web_has_counted() -> None:
    """Three questions fit; what web says later is less what it has not counted yet."""

    async def main() -> None:
        web = Web(tokens=3 * MOST.all)
        assert [await web.ask() for _ in range(4)] == [True, True, True, False]
        first = web.calls[0].call_id
        await web.tell(Room(device_id="toy-1", tokens=MOST.all + 299, noted=(first,)))
        assert not await web.ask()  # two calls of 150 are not in it
        ids = tuple(one.call_id for one in web.calls)
        await web.tell(Room(device_id="toy-1", tokens=MOST.all, noted=ids))
        assert await web.ask()

    run(main)


@pytest.mark.parametrize(("up", "answers"), [(False, True), (True, False)])
def test_while_web_counts_nothing_toys_go_on_with_a_little(*, up: bool, answers: bool) -> None:
    """Away or silent: each question waits a second at most, and all toys have one small share."""

    async def main() -> None:
        web = Web(up=up, answers=answers)
        loop = asyncio.get_running_loop()
        asked, spent = 0, 0
        while True:
            began_s = loop.time()
            allowed = await web.ask(f"toy-{asked % 3}", Tokens(prompt=100, completion=900))
            assert loop.time() - began_s <= ASK_S + 0.01
            if not allowed:
                break
            asked, spent = asked + 1, spent + 1000
        assert spent + MOST.all > AWAY_TOKENS - 1000
        assert spent <= AWAY_TOKENS

    run(main)


def test_questions_at_once_do_not_take_more_than_there_is() -> None:
    """A hundred toys ask in the same moment while web is away: so many as fit into the share."""

    async def main() -> None:
        web = Web(up=False)

        async def take(number: int) -> bool:
            try:
                await web.room.take(f"toy-{number}", "small", MOST)
            except ToyQuotaError:
                return False
            return True

        taken = await asyncio.gather(*(take(number) for number in range(100)))
        assert sum(taken) == AWAY_TOKENS // MOST.all

    run(main)


def test_what_web_has_not_counted_is_told_again() -> None:
    """At the beginning of each link, with its age, until web says that it is noted."""

    async def main() -> None:
        web = Web(up=False)
        assert await web.ask()
        await asyncio.sleep(30)
        for _ in range(2):
            ((kind, told),) = web.room.standing()
            assert kind == CALLS
            assert isinstance(told, ToyCall)
            assert told.ago_ms == pytest.approx(30_000, abs=100)
        await web.tell(Room(device_id="toy-1", tokens=20_000, noted=(told.call_id,)))
        assert list(web.room.standing()) == []

    run(main)


def test_calls_that_nobody_counts_have_a_bound() -> None:
    """However small: once so many wait, nothing more is asked, and none is forgotten."""

    async def main() -> None:
        web = Web()
        for _ in range(MOST_WAITING):
            await web.tell(Room(device_id="toy-1", tokens=20_000))
            assert await web.ask(used=Tokens())
        assert not await web.ask()
        assert len(web.room.standing()) == MOST_WAITING

    run(main)
