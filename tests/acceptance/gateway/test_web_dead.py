"""Web killed, database gone: lessons go on as if nothing were, and all is uploaded once, later."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest

from etude.testing.playmate import PATIENCE_S, Playmate
from etude.testing.playroom import Playroom

TOYS, STEPS = 4, 3
MakeRoom = Callable[..., Playroom]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


def greeted(toy: Playmate) -> bool:
    return any((one.what, one.detail) == ("clip", "greeting") for one in toy.timeline)


def check_lessons(room: Playroom, toys: list[Playmate]) -> None:
    """Every clip once and in order, no connection lost; one instance, one row a step."""
    for toy in toys:
        assert list(toy.clips_begun) == [part.name for part in toy.own.parts]
        stayed = itertools.takewhile(lambda one: one.what != "left", toy.timeline)
        assert not [one for one in stayed if one.what in {"lost", "closed"}]
        (head,) = room.instances(toy.device_id)
        assert (head["status"], head["end_reason"]) == ("completed", "list_completed")
        turns = room.instance(head["id"])["turns"]
        assert [turn["step_index"] for turn in turns] == list(range(STEPS))
        events = room.events(head["id"])
        assert len({event["event_id"] for event in events}) == len(events)
        rows = [e for e in events if e["event_type"] == "signal_observation"]
        assert [row["value"]["step_index"] for row in rows] == list(range(STEPS))
        for turn in turns:
            if turn["audio_id"]:
                said_in = toy.steps_in(room.recording(head["id"], turn["audio_id"]))
                assert said_in <= {turn["step_index"]}


def test_lessons_go_on_while_web_is_dead(make_room: MakeRoom) -> None:
    """Known toys connect and practise to the end, strangers are told to come back."""
    room = make_room(toys=TOYS, steps=STEPS)

    async def play() -> list[Playmate]:
        toys = room.toys()
        early, late = toys[: TOYS // 2], toys[TOYS // 2 :]
        async with room.practising(early):
            await until(lambda: all(toy.clips_begun for toy in early))
            assert room.web is not None
            await asyncio.to_thread(room.web.kill)
            await stranger(room)
            async with room.practising(late):  # they ask for their tokens with web dead
                await until(lambda: all(map(greeted, toys)))
        # The gateway is started anew with web dead: it knows its toys from its own file.
        assert room.gateway is not None
        await asyncio.to_thread(room.gateway.kill)
        await asyncio.to_thread(room.start_gateway)
        async with httpx2.AsyncClient(trust_env=False) as client:
            again = room.toys()[0]
            await again.come(client, room.ota_url)
            again.scrap()
        await stranger(room)
        await asyncio.to_thread(room.start_web)
        await room.until_ended(toys)
        return toys

    room.start_web()
    room.start_gateway()
    check_lessons(room, asyncio.run(play()))


async def stranger(room: Playroom) -> None:
    """Nobody could type its code: it is told to come again, not that it is unwanted."""
    device = {"Device-Id": "02:99:00:00:00:00", "Client-Id": "stranger"}
    async with httpx2.AsyncClient(trust_env=False) as client, asyncio.timeout(PATIENCE_S):
        while True:  # until the gateway has noticed
            answer = await client.post(room.ota_url, headers=device)
            if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
                break
            await asyncio.sleep(0.05)
    assert int(answer.headers["Retry-After"]) > 0


@contextlib.contextmanager
def without_sqlite(room: Playroom) -> Iterator[None]:
    """Web dies with its file, cannot start without it, and finds it again."""
    assert room.web is not None
    room.web.kill()
    file = room.settings.data / "etude.db"
    parts = [file.with_name(file.name + end) for end in ("", "-wal", "-shm")]
    there = [part for part in parts if part.exists()]
    for part in there:
        part.rename(part.with_name(f"away-{part.name}"))
    with pytest.raises(TimeoutError):
        room.start_web()
    yield
    for part in parts:
        part.unlink(missing_ok=True)
    for part in there:
        part.with_name(f"away-{part.name}").rename(part)
    room.start_web()


@contextlib.contextmanager
def without_postgres(room: Playroom) -> Iterator[None]:
    """The database lets nobody in and throws everybody out; web stays."""
    url = urlsplit(room.settings.database_url)
    name = url.path.removeprefix("/")
    other = url._replace(path="/postgres").geturl()
    out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"

    async def allow(*, everybody: bool) -> None:
        admin = await asyncpg.connect(other)
        try:
            word = str(everybody).lower()
            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {word}")
            if not everybody:
                await admin.fetch(out, name)
        finally:
            await admin.close()

    asyncio.run(allow(everybody=False))
    try:
        yield
    finally:
        asyncio.run(allow(everybody=True))


def lessons_without(
    room: Playroom, database: Callable[[Playroom], AbstractContextManager[None]]
) -> None:
    """Take the database away in the middle of the lessons, give it back after them."""

    async def play() -> list[Playmate]:
        toys = room.toys()
        gone = database(room)
        async with room.practising(toys):
            await until(lambda: all(toy.clips_begun for toy in toys))
            await asyncio.to_thread(gone.__enter__)
            try:
                await until(lambda: all(map(greeted, toys)))
                assert all(not toy.answers for toy in toys)
            finally:
                await asyncio.to_thread(gone.__exit__, None, None, None)
            await room.until_ended(toys)
        return toys

    room.start_web()
    room.start_gateway()
    check_lessons(room, asyncio.run(play()))


def test_lessons_go_on_without_sqlite(make_room: MakeRoom) -> None:
    """Its file is gone, and web with it: the next clip all the same, each turn uploaded once."""
    lessons_without(make_room(toys=TOYS, steps=STEPS), without_sqlite)


def test_lessons_go_on_without_postgres(
    make_room: MakeRoom, postgres_databases: Callable[..., AbstractContextManager[str]]
) -> None:
    """It lets nobody in: the next clip all the same, each turn uploaded once."""
    with postgres_databases(migrated=True) as url:
        room = make_room(toys=TOYS, steps=STEPS, database_url=url)
        lessons_without(room, without_postgres)
