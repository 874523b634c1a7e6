"""`kill -9` of the gateway in the middle of lessons: devices come back, no turn is lost or doubled.

`make soak` runs the same trial with other seeds until the gateway was killed 120 times, and leaves
its figures in `dist/soak-gateway-kills.jsonl`. `ETUDE_TEST_SOAK_KILLS` changes how many.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from etude.testing.gateway_kills import Kills, kill_gateway
from etude.testing.playmate import PATIENCE_S
from etude.testing.playroom import Playroom
from etude.testing.server import ServerProcess

TOYS, STEPS, KILLS = 3, 4, 4
SOAK_KILLS = int(os.environ.get("ETUDE_TEST_SOAK_KILLS", "120"))
SOAK_FIGURES = Path(__file__).parents[3] / "dist" / "soak-gateway-kills.jsonl"


def test_a_killed_gateway_loses_and_doubles_no_turn(make_room: Callable[..., Playroom]) -> None:
    """Four kills, while clips play, in windows and at steps: each lesson ends whole, in order."""
    room = make_room(toys=TOYS, steps=STEPS)
    room.start_web()
    room.start_gateway()
    total, seed = Kills(), 1
    while total.kills < KILLS:
        total.add(kill_gateway(room, seed, KILLS - total.kills))
        seed += 1
    assert total.faults == []
    assert total.turns == total.lessons * STEPS
    assert total.recordings > 0


def test_the_supervisor_brings_a_killed_gateway_back(make_room: Callable[..., Playroom]) -> None:
    """As an operator runs it: `etude serve` starts the gateway again, and the lessons go on."""
    room = make_room(toys=2, steps=STEPS)
    server = ServerProcess(room.settings.data, command="serve", environment=room.environment)

    async def play() -> None:
        toys = room.toys()
        async with room.practising(toys):
            started = server.wait_for(
                "serve.child_started", lambda line: line.get("child") == "gateway"
            )
            async with asyncio.timeout(PATIENCE_S):
                while not all(len(toy.clips_begun) > 1 for toy in toys):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)
            os.kill(int(started["child_pid"]), signal.SIGKILL)
            await room.until_ended(toys)
        for toy in toys:
            (head,) = room.instances(toy.device_id)
            turns = room.instance(head["id"])["turns"]
            assert [turn["step_index"] for turn in turns] == list(range(STEPS))
            assert head["end_reason"] == "list_completed"
            assert any(one.what == "lost" for one in toy.timeline)

    with server:
        asyncio.run(play())
        again = server.wait_for("serve.child_ended", lambda line: line.get("child") == "gateway")
        assert again["exit_code"] == -signal.SIGKILL


@pytest.mark.soak
def test_many_kills_of_the_gateway(
    make_room: Callable[..., Playroom], capsys: pytest.CaptureFixture[str]
) -> None:
    """120 kills under eight lessons each: no turn lost, none doubled, none in another's file."""
    room = make_room(toys=8, steps=STEPS)
    room.start_web()
    room.start_gateway()
    total, seed = Kills(), 1000
    try:
        while total.kills < SOAK_KILLS:
            total.add(kill_gateway(room, seed, 4))
            seed += 1
    finally:  # a soak that is broken off has figures too
        line = msgspec.json.encode({"soak": "gateway"} | msgspec.to_builtins(total)).decode()
        SOAK_FIGURES.parent.mkdir(exist_ok=True)
        with SOAK_FIGURES.open("a") as kept, capsys.disabled():
            kept.write(f"{line}\n")
            print(f"\n{line}")  # noqa: T201 - whoever waits for the soak reads it
    assert total.faults == []
