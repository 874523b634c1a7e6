"""What toys ask a model is counted by web, over the link and once; on both databases."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.clock import RandomIds, SystemClock
from etude.files import armed
from etude.gateway.command_ledger import CommandLedger
from etude.gateway.commands import CommandRunner
from etude.gateway.control import Control
from etude.gateway.errors import ToyQuotaError
from etude.gateway.link import GatewayLink
from etude.gateway.link_messages import Hello
from etude.gateway.model_room import ModelRoom
from etude.people.devices import add_device
from etude.people.scopes import Scope
from etude.people.spending import ledger
from etude.people.spending.amounts import Limit, Tokens, read_prices
from etude.people.spending.ledger import Entry
from etude.people.spending.link_records import LEASE_TOKENS, Room, RoomWanted, ToyCall
from etude.people.spending.terms import Terms
from etude.people.spending.toys_feed import report_sinks
from etude.settings import Settings
from etude.store import Database
from etude.testing.linked import serving, until
from etude.testing.web import client, service_token, services_for
from etude.web.services import compose

CALL = ToyCall(
    call_id="c1", device_id="toy-1", stage="chat", model="small", prompt_tokens=90,
    completion_tokens=60, estimated=False, ago_ms=5_000,
)  # fmt: skip
PRICES = read_prices("small=2/4")


class Crash(BaseException):
    """The process ends here."""


class Desk:
    """The sinks of web, over a database with one toy."""

    def __init__(self, database: Database, run: Callable[..., Any]) -> None:
        self.database, self.run = database, run
        run(self._furnish())

    async def _furnish(self) -> None:
        async with self.database.transaction() as work:
            now = SystemClock().now()
            await add_device(work.connection, device_id="toy-1", name="Toy", now=now)

    def tell(
        self, terms: Terms, *items: msgspec.Struct | bytes, gateway_id: str = "gw"
    ) -> list[Room]:
        calls, room = report_sinks(terms)
        sink = room if isinstance(items[0], RoomWanted) else calls
        raws = [
            msgspec.Raw(one if isinstance(one, bytes) else msgspec.json.encode(one))
            for one in items
        ]

        async def told() -> list[Room]:
            async with self.database.transaction() as work:
                replies = await sink.store(work, gateway_id, raws, SystemClock().now())
            found = [one for _, rooms in replies for one in rooms]
            assert all(isinstance(one, Room) for one in found)
            return found  # type: ignore[return-value]  # as asserted

        answered: list[Room] = self.run(told())
        return answered

    def left(self, terms: Terms) -> int:
        (room,) = self.tell(terms, RoomWanted(device_id="toy-1", model="small"))
        return room.tokens

    def entries(self) -> list[Entry]:
        async def read() -> list[Entry]:
            async with self.database.read() as connection:
                return list((await ledger.everybodys(connection)).items)

        found: list[Entry] = self.run(read())
        return found


@pytest.fixture
def desk(database: Database, run: Callable[..., Any]) -> Desk:
    return Desk(database, run)


def test_a_call_that_is_told_again_is_counted_once(desk: Desk) -> None:
    """In one message, in another, over another link; each time it is said to be noted."""
    terms = Terms(prices=PRICES)
    for items in ((CALL, CALL), (CALL,)):
        (room,) = desk.tell(terms, *items)
        assert set(room.noted) == {"c1"}
    (one,) = desk.entries()
    assert one.owner.startswith("device:")
    told = (one.stage, one.state, one.prompt_tokens, one.completion_tokens, one.cost_micro)
    assert told == ("chat", "answered", 90, 60, 2 * 90 + 4 * 60)
    assert one.ended_at is not None
    assert (one.ended_at - one.asked_at).total_seconds() == pytest.approx(5, abs=0.5)


def test_what_is_left_follows_from_every_limit(desk: Desk) -> None:
    """The smallest counts: of the toy's day, of everybody's month, in tokens and in money."""
    desk.tell(Terms(), CALL)
    assert desk.left(Terms()) == LEASE_TOKENS
    assert desk.left(Terms(quota=Limit(tokens=500))) == 350
    assert desk.left(Terms(quota=Limit(tokens=500), month=Limit(tokens=200))) == 50
    assert desk.left(Terms(month=Limit(tokens=100))) == 0
    assert desk.left(Terms(month=Limit(micro=400))) == 0  # nobody said what it costs
    assert desk.left(Terms(prices=PRICES, month=Limit(micro=400))) == 100


def test_what_cannot_be_read_is_passed_over(desk: Desk) -> None:
    """Its neighbours are counted; of a toy that is not known, the gateway's day is drawn on."""
    stranger = msgspec.structs.replace(CALL, call_id="c2", device_id="unknown")
    failed = msgspec.structs.replace(CALL, call_id="c3", error_code="LLM_TIMEOUT")
    rooms = desk.tell(Terms(), b'{"call_id": 7}', b"[]", stranger, failed)
    assert {one.device_id: one.noted for one in rooms} == {"unknown": ("c2",), "toy-1": ("c3",)}
    found = {one.owner.partition(":")[0]: (one.state, one.error_code) for one in desk.entries()}
    assert found == {"gateway": ("answered", None), "device": ("failed", "LLM_TIMEOUT")}


def test_a_gateway_is_shown_by_its_id(
    database: Database, run: Callable[..., Any], tmp_path: Path, desk: Desk
) -> None:
    """An id of host and port is shown whole; a toy is shown by its own."""
    stranger = msgspec.structs.replace(CALL, call_id="c2", device_id="unknown")
    desk.tell(Terms(), stranger, gateway_id="house:8000")
    desk.tell(Terms(), CALL, gateway_id="house:8000")

    async def shown() -> list[tuple[str, str]]:
        token = await service_token(database, Scope.OPERATE)
        async with client(services_for(database, tmp_path), token=token) as asking:
            items = (await asking.get("/api/v1/model-calls")).json()["items"]
        return [(one["owner"]["kind"], one["owner"]["id"]) for one in items]

    assert run(shown()) == [("gateway", "house:8000"), ("device", "toy-1")]


def test_a_kill_while_calls_are_entered(desk: Desk) -> None:
    """Nothing is counted, and nothing said to be noted; told again, it is counted once."""

    def crash(name: str) -> None:
        if name == "people.toy_calls.entered":
            raise Crash

    with armed(crash), pytest.raises(Crash):
        desk.tell(Terms(), CALL)
    assert desk.entries() == []
    assert desk.tell(Terms(), CALL)[0].noted == ("c1",)
    assert len(desk.entries()) == 1


def test_over_a_real_link(
    database: Database, run: Callable[..., Any], tmp_path: Path, desk: Desk
) -> None:
    """A toy asks until its day is used up, web restarts meanwhile, and every call is counted."""
    most, used = Tokens(prompt=100, completion=100), Tokens(prompt=60, completion=60)
    settings = Settings(data=tmp_path, llm_quota="tokens=700")
    room = ModelRoom(RandomIds())

    async def ask() -> bool:
        try:
            await room.take("toy-1", "small", most)
        except ToyQuotaError:
            return False
        room.used("toy-1", "translate", "small", most, used, estimated=False)
        return True

    async def play() -> int:
        token = await service_token(database, Scope.GATEWAY_LINK, name="gateway")
        commands = CommandLedger(tmp_path / "commands.jsonl")
        commands.open(0)
        asked = 0
        link = None
        async with serving(compose(settings, database)) as port:
            link = GatewayLink(
                f"http://127.0.0.1:{port}",
                token=lambda: token,
                hello=Hello(gateway_id="gw"),
                runner=CommandRunner(Control(lambda _: None, None), commands, SystemClock()),
                handlers=room.handlers(),
                standing=room.standing,
            )
            room.report, room.linked = link.report, lambda: link.up
            keeping = asyncio.create_task(link.run())
            await until(lambda: link.up)
            asked += await ask()
            await until(lambda: not room.standing())
        await until(lambda: not link.up)
        asked += await ask()
        assert len(room.standing()) == 1
        async with serving(compose(settings, database), port):
            await until(lambda: link.up and not room.standing())
            while await ask():
                asked += 1
                await until(lambda: not room.standing())
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        commands.close()
        return asked

    asked = run(play())
    entries = desk.entries()
    assert (asked, len(entries)) == (5, 5)
    assert sum(one.prompt_tokens + one.completion_tokens for one in entries) == 600
