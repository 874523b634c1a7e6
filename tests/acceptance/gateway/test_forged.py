"""Forged completions, floods, huge and broken messages, while others practise at the same gateway.

They end their own connection only, with a reason in the log. What one socket does with each of them
is tested beside it (`tests/integration/gateway`).
"""

import asyncio
from collections.abc import Callable

import httpx2
import pytest

from etude.testing.playmate import PATIENCE_S, SETTLED_S, Playmate
from etude.testing.playroom import Playroom

TOYS, STEPS = 5, 3

Attack = Callable[[Playmate], None]


def forged(toy: Playmate) -> None:
    """Completions of other tasks and toys, doubled, out of range, without end."""
    for text in (
        "[skill_event]audio.completed|toy01|reading|300",
        "[skill_event]audio.completed|toy02|reading|-1",
        "[skill_event]audio.stopped|toy03|reading|999999999",
        "[skill_event]audio.completed|nobody|reading|300",
    ):
        for _ in range(50):
            toy.detect(text)


def garbled(toy: Playmate) -> None:
    """Completions that cannot be read, a hundred times."""
    for _ in range(50):
        toy.detect("[skill_event]" + "|" * 500)
        toy.detect("[skill_event]")


def flood(toy: Playmate) -> None:
    """Thousands of small messages at once."""
    for _ in range(3000):
        toy.send_raw('{"type":"listen","state":"detect","text":"read lesson 01"}')


def sound(toy: Playmate) -> None:
    """More sound than a microphone can make."""
    for _ in range(3000):
        toy.send_raw_binary(b"\x58" * 200)


def huge(toy: Playmate) -> None:
    """A text of 1 MiB."""
    toy.send_raw('{"type":"listen","state":"detect","text":"' + "x" * 2**20 + '"}')


def huge_binary(toy: Playmate) -> None:
    """1 MiB of sound in one message."""
    toy.send_raw_binary(b"\x00" * 2**20)


def broken(toy: Playmate) -> None:
    """JSON that is none, a hundred times."""
    for _ in range(100):
        toy.send_raw('{"type":"listen","text":"a "quoted" word"}')


ATTACKS = (
    (forged, None),
    (garbled, "malformed"),
    (flood, "flood"),
    (sound, "flood"),
    (huge, "too_large"),
    (huge_binary, "too_large"),
    (broken, "malformed"),
)


def closed(room: Playroom, device_id: str) -> list[str]:
    return [
        str(line["reason"])
        for line in room.gateway_log("device.closed")
        if line["device"] == device_id
    ]


async def attack(room: Playroom, villain: Playmate) -> None:
    """Do everything that a device may try, connecting again after each."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        for act, reason in ATTACKS:
            await villain.come(client, room.ota_url)
            await asyncio.sleep(SETTLED_S)
            before = len(closed(room, villain.device_id))
            act(villain)
            if reason is None:
                await asyncio.sleep(SETTLED_S)
                assert villain.connected, act.__doc__
            else:
                await until_closed(room, villain, before + 1)
                assert closed(room, villain.device_id)[before:] == [reason], act.__doc__
            villain.scrap()


async def until_closed(room: Playroom, toy: Playmate, times: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(closed(room, toy.device_id)) < times:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.05)


@pytest.fixture
def room(make_room: Callable[..., Playroom]) -> Playroom:
    made = make_room(toys=TOYS, steps=STEPS)
    made.start_web()
    made.start_gateway()
    return made


def test_whoever_attacks_ends_only_itself(room: Playroom) -> None:
    """Four lessons go on, clip by clip, each with its turns, beside all that one device tries."""

    async def play() -> list[Playmate]:
        villain, *toys = room.toys()
        async with room.practising(toys):
            try:
                await attack(room, villain)
            finally:
                villain.scrap()
            await room.until_ended(toys)
        return toys

    for toy in asyncio.run(play()):
        assert list(toy.clips_begun) == [part.name for part in toy.own.parts]
        assert set(closed(room, toy.device_id)) <= {"device_left"}
        assert toy.strangers == set()
        (head,) = room.instances(toy.device_id)
        turns = room.instance(head["id"])["turns"]
        assert [turn["step_index"] for turn in turns] == list(range(STEPS))


def test_a_toy_cannot_be_talked_past_a_clip(room: Playroom) -> None:
    """Completions said ten times in its own lesson: each clip is still played, once a step."""

    async def play() -> Playmate:
        toy = room.toys()[1]  # it has a card
        said = f"[skill_event]audio.completed|{toy.own.app_id}|reading|300"

        def doubled(seen: object) -> None:
            if getattr(seen, "what", "") == "clip_over":
                for _ in range(10):
                    toy.send_raw(f'{{"type":"listen","state":"detect","text":"{said}"}}')

        toy.watchers.append(doubled)
        async with room.practising([toy]):
            await room.until_ended([toy])
        return toy

    toy = asyncio.run(play())
    assert list(toy.clips_begun) == [part.name for part in toy.own.parts]
    (head,) = room.instances(toy.device_id)
    rows = [e for e in room.events(head["id"]) if e["event_type"] == "signal_observation"]
    assert [row["value"]["step_index"] for row in rows] == list(range(STEPS))
    assert [row["value"]["window_ms"] for row in rows] == [800] * STEPS
