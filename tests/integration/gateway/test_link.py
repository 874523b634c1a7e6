"""The link (`docs/rules.md 44`): web and gateways in one process, over real sockets."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from etude.clock import SystemClock
from etude.gateway import link_messages as wire
from etude.gateway.link import ChangeHandler
from etude.gateway.ports import CloseReason, ToolFailure, ToolResult
from etude.people import changes
from etude.people.changes import ChangeSource, ReportSink
from etude.people.devices import add_device
from etude.people.scopes import Scope
from etude.people.tokens import revoke_token
from etude.store import Database
from etude.testing.linked import Station, Toy, serving, until
from etude.testing.waiting import within
from etude.testing.web import service_token, services_for
from etude.web.gateway_link import GatewayLinks
from etude.web.services import Services

CARD = "self.sd.ensure_app"
FOLDERS = {"action": "ENSURE_APP_DIRS", "payload": {"app_id": "english", "tasks": ["a", "b"]}}
START = {"action": "START_APP_TASK", "payload": {"app": "english", "task": "shadowing"}}


class Colour(msgspec.Struct):
    key: int
    name: str


class House:
    """A web process, its database, and who asks it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.colours = {1: "red", 2: "green"}
        self.told: list[tuple[str, bytes]] = []
        self.token = ""
        self.operator = ""
        self.port = 0

    def new_services(self) -> Services:
        services = services_for(self.database, self.folder)
        source = ChangeSource(kind="colour", everything=self._all, about=self._some)
        links = GatewayLinks(
            self.database,
            services.clock,
            services.ids,
            sources=[source],
            sinks=[ReportSink(kind="code", store=self._store)],
        )
        object.__setattr__(services, "links", links)
        return services

    async def start(self) -> None:
        self._web = serving(self.new_services(), self.port)
        self.port = await self._web.__aenter__()

    async def stop(self) -> None:
        await self._web.__aexit__(None, None, None)

    async def furnish(self, *toys: str) -> None:
        self.token = await service_token(self.database, Scope.GATEWAY_LINK, name="gateway")
        self.operator = await service_token(self.database, Scope.OPERATE, name="operator")
        async with self.database.transaction() as work:
            for toy in toys:
                await add_device(work.connection, device_id=toy, name=toy, now=SystemClock().now())

    def station(self, name: str = "g1", **kwargs: Any) -> Station:
        return Station(name, self.port, self.token, self.folder, **kwargs)

    async def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.operator}"}
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}/api/v1/devices", headers=headers, timeout=60
        ) as client:
            return await client.request(method, path, json=body)

    async def act(self, toy: str, body: dict[str, Any]) -> str:
        answer = await self.ask("POST", f"/{toy}/actions", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["msg_id"])

    async def settled(self, toy: str, msg_id: str, *states: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                seen = (await self.ask("GET", f"/{toy}/actions/{msg_id}")).json()
                if seen["state"] in (states or ("done", "refused", "expired")):
                    return dict(seen)
                await asyncio.sleep(0.02)

    async def online(self, toy: str) -> str | None:
        return (await self.ask("GET", f"/{toy}/presence")).json()["gateway_id"]

    async def wait_online(self, toy: str, gateway: str | None) -> None:
        async with asyncio.timeout(60):
            while await self.online(toy) != gateway:  # noqa: ASYNC110 - it is asked over HTTP
                await asyncio.sleep(0.02)

    async def _all(self, _: AsyncConnection) -> Sequence[Colour]:
        return [Colour(key, name) for key, name in self.colours.items()]

    async def _some(self, _: AsyncConnection, keys: Collection[int]) -> Sequence[Colour]:
        return [Colour(key, self.colours[key]) for key in keys]

    async def _store(
        self, _: Any, gateway: str, items: Sequence[msgspec.Raw], __: Any
    ) -> list[tuple[str, list[Colour]]]:
        self.told += [(gateway, bytes(item)) for item in items]
        return [("colour", [Colour(9, "taken")])]


Play = Callable[[Callable[[House], Awaitable[None]]], None]


@pytest.fixture
def play(
    database: Database, run: Callable[[Coroutine[Any, Any, Any]], Any], tmp_path: Path
) -> Iterator[Play]:
    """Run a scene in a house with the toys `toy-1` and `toy-2`."""
    house = House(database, tmp_path)

    async def scene(of: Callable[[House], Awaitable[None]]) -> None:
        await house.furnish("toy-1", "toy-2")
        await house.start()
        try:
            await of(house)
        finally:
            await house.stop()

    return lambda of: run(scene(of))


def test_an_action_reaches_the_device_that_is_connected_and_its_answer_comes_back(
    play: Play,
) -> None:
    """ENSURE_APP_DIRS calls the card's tool once for each task, and is done."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            toy = station.meet(Toy("toy-1", "c-1", CARD))
            await house.wait_online("toy-1", "g1")
            msg_id = await house.act("toy-1", FOLDERS)
            seen = await house.settled("toy-1", msg_id)
            assert (seen["state"], seen["code"]) == ("done", 0)
            assert toy.called == [
                (CARD, {"app_id": "english", "task_id": "a"}),
                (CARD, {"app_id": "english", "task_id": "b"}),
            ]
            station.part(toy)
            await house.wait_online("toy-1", None)

    play(scene)


def test_the_same_msg_id_asks_nothing_twice_and_another_content_is_refused(play: Play) -> None:
    """An action is known by its `msg_id`, from the request to the device."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            toy = station.meet(Toy("toy-1", "c-1", CARD))
            asked = FOLDERS | {"msg_id": "m-1"}
            answers = [await house.ask("POST", "/toy-1/actions", asked) for _ in range(3)]
            assert {answer.status_code for answer in answers} == {202}
            await house.settled("toy-1", "m-1")
            again = await house.ask("POST", "/toy-1/actions", asked)
            assert (again.status_code, again.json()["state"]) == (202, "done")
            assert len(toy.called) == 2
            for path, body in (("/toy-1/actions", START), ("/toy-2/actions", FOLDERS)):
                other = await house.ask("POST", path, body | {"msg_id": "m-1"})
                assert (other.status_code, other.json()["code"]) == (409, "MESSAGE_ID_TAKEN")
            assert (await house.ask("GET", "/toy-2/actions/m-1")).status_code == 404

    play(scene)


def test_an_action_waits_for_the_device_to_come(play: Play) -> None:
    """Asked for while nobody has the device, it is done when one has."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            await until(lambda: station.link.up)
            msg_id = await house.act("toy-1", START)
            await house.settled("toy-1", msg_id, "waiting")
            toy = station.meet(Toy("toy-1", "c-1"))
            assert (await house.settled("toy-1", msg_id))["state"] == "done"
            assert toy.started == [("english", "shadowing", {})]

    play(scene)


def test_what_the_device_refuses_is_told_with_its_words(play: Play) -> None:
    """A tool that answers with an error settles the action as refused."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            no = ToolResult(failure=ToolFailure.REFUSED, message="card\nfull")
            station.meet(Toy("toy-1", "c-1", CARD, answer=no))
            seen = await house.settled("toy-1", await house.act("toy-1", FOLDERS))
            assert (seen["state"], seen["code"], seen["message"]) == ("refused", 1, "card full")

    play(scene)


def test_of_two_gateways_with_one_device_the_newest_connection_wins(play: Play) -> None:
    """The older gateway is told to end its own, and actions go to the newer."""

    async def scene(house: House) -> None:
        async with house.station("g1") as one, house.station("g2") as two:
            old = one.meet(Toy("toy-1", "c-old", CARD))
            await house.wait_online("toy-1", "g1")
            new = two.meet(Toy("toy-1", "c-new", CARD))
            await until(lambda: old.closed is not None)
            assert (old.closed, new.closed) == (CloseReason.REPLACED, None)
            one.part(old)
            await house.wait_online("toy-1", "g2")
            await house.settled("toy-1", await house.act("toy-1", FOLDERS))
            assert (len(old.called), len(new.called)) == (0, 2)

    play(scene)


def test_an_older_connection_that_is_told_later_does_not_win(play: Play) -> None:
    """A gateway whose link was down while its device went elsewhere loses it when it is back."""

    async def scene(house: House) -> None:
        late = house.station("g1")
        old = late.toys["toy-1"] = Toy("toy-1", "c-old")
        late.link.connected("toy-1", "c-old")
        await asyncio.sleep(0.05)
        async with house.station("g2") as two:
            two.meet(Toy("toy-1", "c-new"))
            await house.wait_online("toy-1", "g2")
            async with late:
                await until(lambda: old.closed is CloseReason.REPLACED)
                assert await house.online("toy-1") == "g2"

    play(scene)


def test_a_gateway_that_dies_takes_its_presence_with_it(play: Play) -> None:
    """When the link ends, the gateway's devices are offline."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            station.meet(Toy("toy-1", "c-1"))
            await house.wait_online("toy-1", "g1")
            await station.die()
            await house.wait_online("toy-1", None)

    play(scene)


def test_a_web_that_comes_again_finds_the_gateway_and_what_it_was_to_do(play: Play) -> None:
    """The gateway links again by itself and tells its devices anew; it never stopped for them."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            toy = station.meet(Toy("toy-1", "c-1", CARD))
            await house.wait_online("toy-1", "g1")
            await house.stop()
            await until(lambda: not station.link.up)
            second = station.meet(Toy("toy-2", "c-2", CARD))
            station.part(toy)
            await house.start()
            await house.wait_online("toy-2", "g1")
            assert await house.online("toy-1") is None
            await house.settled("toy-2", await house.act("toy-2", FOLDERS))
            assert len(second.called) == 2

    play(scene)


def test_what_changes_goes_down_once_and_everything_at_the_beginning(play: Play) -> None:
    """A snapshot first, then each marked subject as it is by then; unknown kinds do no harm."""

    async def scene(house: House) -> None:
        async with house.station() as station:
            await until(lambda: "colour" in station.snapshots)
            assert station.snapshots["colour"] == [
                b'{"key":1,"name":"red"}',
                b'{"key":2,"name":"green"}',
            ]
            house.colours[2] = "blue"
            async with house.database.transaction() as work:
                now = SystemClock().now()
                await changes.mark_changed(work, "unheard-of", [5], now)
                await changes.mark_changed(work, "colour", [2, 2], now)
            await until(lambda: bool(station.changes))
            await asyncio.sleep(0.6)  # two more looks into the database
            assert station.changes == [("colour", b'{"key":2,"name":"blue"}')]

    play(scene)


def test_what_a_gateway_tells_is_stored_and_answered(play: Play) -> None:
    """Standing things are told at the beginning, later ones when they happen."""

    async def scene(house: House) -> None:
        station = house.station()
        station.standing = [("code", Colour(1, "123456"))]
        async with station:
            await until(lambda: len(house.told) == 1)
            station.link.report("code", Colour(2, "654321"))
            await until(lambda: len(house.told) == 2)
            assert house.told[1] == ("g1", b'{"key":2,"name":"654321"}')
            await until(lambda: ("colour", b'{"key":9,"name":"taken"}') in station.changes)

    play(scene)


def test_a_newer_link_of_the_same_gateway_ends_the_older(play: Play) -> None:
    """A half-open link does not keep the gateway that comes again from its commands."""

    async def scene(house: House) -> None:
        async with _socket(house) as socket:
            await _hello(socket, "g1")
            async with house.station("g1") as station:
                station.meet(Toy("toy-1", "c-1", CARD))
                assert await _end(socket) == 4001
                await house.wait_online("toy-1", "g1")

    play(scene)


@pytest.mark.parametrize("token", ["", "etd_0000000000000000_" + "0" * 64, "operator-less"])
def test_a_link_without_its_token_is_refused_before_it_is_one(play: Play, token: str) -> None:
    """401 as a problem document; the connection never becomes a WebSocket."""

    async def scene(house: House) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with pytest.raises(InvalidStatus) as refused:
            await connect(_url(house), additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == 401
        assert b"urn:etude:error:TOKEN_" in refused.value.response.body

    play(scene)


def test_a_token_without_the_scope_is_refused(play: Play) -> None:
    """403: a token that may upload for devices may not command them."""

    async def scene(house: House) -> None:
        token = await service_token(house.database, Scope.UPLOAD_ON_BEHALF, name="uploader")
        with pytest.raises(InvalidStatus) as refused:
            await connect(
                _url(house), additional_headers={"Authorization": f"Bearer {token}"}, proxy=None
            )
        assert refused.value.response.status_code == 403

    play(scene)


def test_nothing_else_becomes_a_websocket(play: Play) -> None:
    """Another address passes the wish over and answers as it always does."""

    async def scene(house: House) -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{house.port}/health", proxy=None)
        assert refused.value.response.status_code == 200

    play(scene)


def test_a_token_that_is_revoked_ends_the_link_it_opened(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link lasts for days, so its token is looked at again and again."""
    monkeypatch.setattr("etude.web.gateway_feed.RENEW_S", 0.1)

    async def scene(house: House) -> None:
        async with _socket(house) as socket:
            await _hello(socket, "g1")
            public_id = house.token.split("_")[1]
            async with house.database.transaction() as work:
                await revoke_token(work.connection, public_id, SystemClock().now())
            assert await _end(socket) == 1008

    play(scene)


def test_a_handler_that_fails_does_not_end_the_link_for_ever(play: Play) -> None:
    """The gateway links again, and everything is told anew."""

    async def scene(house: House) -> None:
        station = house.station()
        failures = [RuntimeError("once")]

        async def replace(items: Sequence[msgspec.Raw]) -> None:
            if failures:
                raise failures.pop()
            station.snapshots["colour"] = [bytes(item) for item in items]

        async def apply(_: Sequence[msgspec.Raw]) -> None:
            raise AssertionError

        station.link._handlers = {"colour": ChangeHandler(replace=replace, apply=apply)}
        async with station:
            await until(lambda: "colour" in station.snapshots)
            assert failures == []

    play(scene)


HOSTILE = [
    "",
    "{",
    "[]",
    "null",
    '{"type":"deliver","msg_id":"x"}',
    '{"type":"hello","gateway_id":"g9"}',
    '{"type":"devices","connected":[{"device_id":"toy-1","connection_id":"c","age_ms":-1}]}',
    '{"type":"answer","msg_id":"","outcome":"done"}',
    '{"type":"answer","msg_id":"m","outcome":"won"}',
    '{"type":"devices","gone":' + "[" * 5000 + "]" * 5000 + "}",
    b"\x00\xff",
    "x" * (wire.MAX_FRAME_BYTES + 1),
]


@pytest.mark.parametrize("frame", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_frame_ends_its_own_link_and_nothing_else(play: Play, frame: str | bytes) -> None:
    """Cut with a reason; the next link and the requests beside it are served."""

    async def scene(house: House) -> None:
        async with _socket(house) as socket:
            await _hello(socket, "g9")
            await socket.send(frame)
            assert await _end(socket) in {1008, 1009}
        async with house.station() as station:
            station.meet(Toy("toy-1", "c-1"))
            await house.wait_online("toy-1", "g1")

    play(scene)


def test_answers_nobody_waits_for_and_devices_nobody_knows_change_nothing(play: Play) -> None:
    """Well-formed nonsense is passed over."""

    async def scene(house: House) -> None:
        async with _socket(house) as socket:
            await _hello(socket, "g9")
            odd = wire.Connected(device_id="nobody's", connection_id="c", age_ms=1)
            toy = wire.Connected(device_id="toy-1", connection_id="c", age_ms=1)
            for message in (
                wire.Answer(msg_id="never-asked", outcome="done"),
                wire.Answer(msg_id="never-asked", outcome="offline"),
                wire.Devices(gone=(wire.Gone(device_id="toy-1", connection_id="c"),)),
                wire.Devices(connected=(odd, toy)),
            ):
                await socket.send(wire.encode(message))
            await house.wait_online("toy-1", "g9")
            await socket.send('{"type":"report","kind":"unheard-of","items":[{"a":1}]}')
            assert (await house.ask("GET", "/nobody's/presence")).status_code == 404

    play(scene)


def _url(house: House) -> str:
    return f"ws://127.0.0.1:{house.port}{wire.PATH}"


def _socket(house: House) -> connect:
    headers = {"Authorization": f"Bearer {house.token}"}
    return connect(_url(house), additional_headers=headers, proxy=None, compression=None)


async def _end(socket: ClientConnection) -> int | None:
    """Read to the end; return the code that the other side closed with."""
    with suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), 60)
    return socket.close_code


async def _hello(socket: ClientConnection, gateway_id: str) -> None:
    await socket.send(wire.encode(wire.Hello(gateway_id=gateway_id)))
    first = await within(socket.recv(), "the welcome")
    assert isinstance(wire.decode_from_web(first), wire.Welcome)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await socket.recv()
