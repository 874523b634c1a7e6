"""Actions over a real broker (`docs/gateway-link.md §Ways`, `docs/rules.md 23`)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from etude.gateway.actions import Action, EnsureAppDirs, Payload, SetAlarm, StartAppTask
from etude.gateway.control import Ack, Control, Offline, Outcome, Timeout
from etude.gateway.mqtt import MqttBroker, read_address, read_fields, read_topics
from etude.testing.brokers import Board, Mosquitto
from etude.testing.linked import Toy, until

Run = Callable[[Coroutine[Any, Any, Any]], Any]
ALARM = SetAlarm(time="07:30", app="english", task="shadowing")
DIRS = EnsureAppDirs(app_id="english", tasks=("a",))
START = StartAppTask(app="english", task="shadowing")


@asynccontextmanager
async def _up(mosquitto: Mosquitto, **kwargs: Any) -> AsyncIterator[MqttBroker]:
    broker = MqttBroker(read_address(mosquitto.url), **kwargs)
    task = asyncio.create_task(broker.run())
    try:
        await until(lambda: broker.up)
        yield broker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _send(broker: MqttBroker, payload: Payload, msg_id: str = "m-1") -> Outcome:
    action = {SetAlarm: Action.SET_ALARM, EnsureAppDirs: Action.ENSURE_APP_DIRS}
    return await broker.send_action(
        "toy-1", action.get(type(payload), Action.START_APP_TASK), payload, msg_id
    )


def test_an_action_reaches_the_board_in_its_envelope_and_is_acknowledged(
    mosquitto: Mosquitto, run: Run
) -> None:
    """`{action, msg_id, ts, payload}` out, `{msg_id, action, code, msg}` back."""

    async def scene() -> None:
        async with _up(mosquitto) as broker, Board(mosquitto.port, "toy-1") as board:
            assert await _send(broker, ALARM) == Ack(code=0, message="ok")
            (heard,) = board.done
            assert heard.pop("ts") > 1_700_000_000_000
            assert heard == {
                "action": "SET_ALARM",
                "msg_id": "m-1",
                "payload": {"time": "07:30", "app": "english", "task": "shadowing"},
            }

    run(scene())


def test_topics_and_names_are_those_of_the_board(mosquitto: Mosquitto, run: Run) -> None:
    """What the settings say is what is on the wire."""

    async def scene() -> None:
        topics = read_topics("board/{device_id}/in", "board/{device_id}/out")
        fields = read_fields("action=cmd,msg_id=id,code=rc")
        board = Board(
            mosquitto.port,
            "toy-1",
            topic="board/{device_id}/in",
            ack_topic="board/{device_id}/out",
            ack={"id": "m-1", "rc": 7, "msg": "busy"},
        )
        async with _up(mosquitto, topics=topics, fields=fields) as broker, board:
            assert await _send(broker, ALARM) == Ack(code=7, message="busy")
            assert (board.done[0]["cmd"], board.done[0]["id"]) == ("SET_ALARM", "m-1")

    run(scene())


def test_a_board_that_does_not_answer_is_a_timeout_and_asked_again_does_it_once(
    mosquitto: Mosquitto, run: Run
) -> None:
    """The same `msg_id` is published again; the board knows it."""

    async def scene() -> None:
        async with _up(mosquitto, ack_s=0.3) as broker, Board(mosquitto.port, "toy-1") as board:
            board.silent = True
            assert await _send(broker, ALARM) == Timeout()
            board.silent = False
            await until(lambda: bool(board.heard))
            outcome: Outcome = Timeout()
            for _ in range(50):  # a slow machine may need longer than 0.3 s
                outcome = await _send(broker, ALARM)
                if outcome != Timeout():
                    break
            assert outcome == Ack(code=0, message="ok")
            assert len(board.done) == 1

    run(scene())


def test_only_the_device_itself_acknowledges(mosquitto: Mosquitto, run: Run) -> None:
    """An acknowledgement from another board's topic, or one that is none, counts for nothing."""

    async def scene() -> None:
        async with (
            _up(mosquitto, ack_s=2.0) as broker,
            Board(mosquitto.port, "toy-1") as board,
            Board(mosquitto.port, "toy-2") as other,
        ):
            board.silent = True
            asked = asyncio.create_task(_send(broker, ALARM))
            await until(lambda: bool(board.done))
            await other.say('{"msg_id":"m-1","code":0}')
            for nonsense in (b"\xff", "[" * 3000, "{}", "3", '{"msg_id":["m-1"]}', "x" * 9000):
                await board.say(nonsense)
            await board.say('{"msg_id":"m-1","code":"0"}')
            await board.say('{"msg_id":"other","code":0}')
            assert await asked == Timeout()

    run(scene())


def test_a_broker_that_is_away_is_offline_at_once_and_found_again(
    mosquitto: Mosquitto, run: Run
) -> None:
    """Nothing waits for it, and when it is back actions go over it."""

    async def scene() -> None:
        async with _up(mosquitto) as broker:
            mosquitto.stop()
            await until(lambda: not broker.up)
            assert await _send(broker, ALARM) == Offline()
            mosquitto.start()
            await until(lambda: broker.up)
            async with Board(mosquitto.port, "toy-1"):
                assert await _send(broker, ALARM, "m-2") == Ack(code=0, message="ok")

    run(scene())


@pytest.mark.parametrize(
    ("tools", "payload", "over_broker", "called", "started"),
    [
        (None, START, 1, 0, 0),  # not connected
        ((), START, 0, 0, 1),  # a stock toy: this server starts it
        (("self.mp3.play",), START, 1, 0, 0),  # a board with a card: its own program starts it
        (("self.app.start_task",), START, 0, 1, 0),
        (("self.sd.ensure_app",), DIRS, 0, 1, 0),
        (("self.sd.ensure_app",), ALARM, 1, 0, 0),
        (("self.alarm.set",), ALARM, 0, 1, 0),
    ],
)
def test_the_way_depends_on_what_the_device_can_do(
    mosquitto: Mosquitto,
    run: Run,
    tools: tuple[str, ...] | None,
    payload: Payload,
    over_broker: int,
    called: int,
    started: int,
) -> None:
    """Its own connection first, then the broker (`docs/gateway-link.md §Ways`)."""

    async def scene() -> None:
        toy = None if tools is None else Toy("toy-1", "c-1", *tools)
        async with _up(mosquitto) as broker, Board(mosquitto.port, "toy-1") as board:
            control = Control(lambda _: toy, broker)
            action = {SetAlarm: Action.SET_ALARM, EnsureAppDirs: Action.ENSURE_APP_DIRS}.get(
                type(payload), Action.START_APP_TASK
            )
            outcome = await control.send_action("toy-1", action, payload, "m-1")
            assert isinstance(outcome, Ack)
            assert outcome.code == 0
            assert len(board.done) == over_broker
            if toy is not None:
                assert (len(toy.called), len(toy.started)) == (called, started)

    run(scene())


def test_a_card_without_a_broker_is_started_from_here(mosquitto: Mosquitto, run: Run) -> None:
    """Where the broker is away, this server lists and plays over the device's connection."""

    async def scene() -> None:
        toy = Toy("toy-1", "c-1", "self.mp3.play")
        async with _up(mosquitto) as broker:
            mosquitto.stop()
            await until(lambda: not broker.up)
            control = Control(lambda _: toy, broker)
            outcome = await control.send_action("toy-1", Action.START_APP_TASK, START, "m-1")
            assert (outcome, len(toy.started)) == (Ack(), 1)

    run(scene())
