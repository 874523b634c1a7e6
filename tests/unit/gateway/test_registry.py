import asyncio
from collections.abc import Awaitable, Callable

from etude.gateway.connection import DeviceConnection
from etude.gateway.playback import Ticker
from etude.gateway.ports import CloseReason
from etude.gateway.registry import Registry
from etude.testing.memory_wire import MemoryWire, NotingPractice
from etude.testing.virtual_time import VirtualTimeLoop


class House:
    """A registry and the connections in it."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.order: list[str] = []

    def open(self, device_id: str = "aa") -> DeviceConnection:
        connection = DeviceConnection(
            device_id=device_id,
            connection_id=f"c-{len(self.registry)}",
            wire=MemoryWire(asyncio.get_running_loop().time),
            make_practice=NotingPractice,
            ticker=Ticker(),
            greeted=self.registry.greeted,
        )
        self.registry.opened(connection)
        return connection

    def greet(self, device_id: str = "aa") -> DeviceConnection:
        connection = self.open(device_id)
        connection.receive('{"type":"hello"}')
        return connection


def run(test: Callable[[House], Awaitable[None]]) -> None:
    async def body() -> None:
        await test(House())

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(body())


def test_the_newest_connection_wins() -> None:
    """The old one is closed as replaced before the new practice is made, and waits for nobody."""

    async def body(house: House) -> None:
        old = house.greet()
        new = house.greet()
        assert old.close_reason is CloseReason.REPLACED
        assert house.registry.connection("aa") is new
        house.registry.left(old)
        assert house.registry.connection("aa") is new

    run(body)


def test_a_socket_without_a_hello_replaces_nobody() -> None:
    """It must not end a lesson."""

    async def body(house: House) -> None:
        talking = house.greet()
        silent = house.open()
        assert house.registry.connection("aa") is talking
        assert (len(house.registry), silent.close_reason) == (2, None)

    run(body)


def test_an_older_socket_that_greets_late_is_closed() -> None:
    """Newest means opened last, not heard last."""

    async def body(house: House) -> None:
        late = house.open()
        new = house.greet()
        late.receive('{"type":"hello"}')
        assert late.close_reason is CloseReason.REPLACED
        assert (house.registry.connection("aa"), new.close_reason) == (new, None)

    run(body)


def test_a_hello_that_is_repeated_replaces_nothing() -> None:
    """Least of all itself."""

    async def body(house: House) -> None:
        only = house.greet()
        only.receive('{"type":"hello"}')
        assert house.registry.connection("aa") is only
        assert only.close_reason is None

    run(body)


def test_devices_are_apart() -> None:
    """Each has its own."""

    async def body(house: House) -> None:
        one, two = house.greet("aa"), house.greet("bb")
        assert house.registry.connected() == [one, two]
        one.close(CloseReason.SILENT)
        assert house.registry.connection("aa") is None
        assert house.registry.connected() == [two]

    run(body)


def test_whoever_asks_is_told_who_comes_and_goes() -> None:
    """Once each; a socket that was never its device's one is none of them."""

    async def body(house: House) -> None:
        told: list[tuple[str, DeviceConnection]] = []
        house.registry.on_joined = lambda one: told.append(("joined", one))
        house.registry.on_parted = lambda one: told.append(("parted", one))
        old, silent, new = house.greet(), house.open(), house.greet()
        for one in (old, silent, new, new):
            house.registry.left(one)
        assert told == [("joined", old), ("joined", new), ("parted", new)]

    run(body)


def test_all_are_closed_at_the_end() -> None:
    """Greeted or not."""

    async def body(house: House) -> None:
        all_of_them = [house.greet("aa"), house.greet("bb"), house.open("cc")]
        house.registry.close_all(CloseReason.STOPPING)
        assert {one.close_reason for one in all_of_them} == {CloseReason.STOPPING}
        for one in all_of_them:
            house.registry.left(one)
            house.registry.left(one)
        assert len(house.registry) == 0

    run(body)
