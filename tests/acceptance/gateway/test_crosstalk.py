"""Fifty devices speak at once: nobody hears another, nobody is filed with another's voice."""

import asyncio
from collections.abc import Callable

from etude.testing.playmate import Playmate
from etude.testing.playroom import Playroom

TOYS, STEPS = 50, 3


async def play(room: Playroom) -> list[Playmate]:
    async with room.practising(toys := room.toys()):
        await room.until_ended(toys)
    return toys


def test_fifty_toys_that_speak_at_once_are_told_apart(make_room: Callable[..., Playroom]) -> None:
    """Half streamed, half from cards: every packet and path sent, every recording is its own."""
    room = make_room(toys=TOYS, steps=STEPS)
    room.start_web()
    room.start_gateway()
    toys = asyncio.run(play(room))
    recorded = 0
    for toy in toys:
        assert toy.strangers == set()
        assert list(toy.clips_begun) == [part.name for part in toy.own.parts]
        asked = [given["path"] for name, given in toy.tools.calls if name == "self.mp3.play"]
        assert asked == list(toy.card.files if toy.card else ())
        (head,) = room.instances(toy.device_id)
        instance = room.instance(head["id"])
        assert (instance["device_id"], instance["app_id"]) == (toy.device_id, toy.own.app_id)
        assert [turn["step_index"] for turn in instance["turns"]] == list(range(STEPS))
        for step, turn in enumerate(instance["turns"]):
            assert turn["expected_text"] == toy.own.parts[step].text
            if turn["audio_id"]:
                said_in = toy.steps_in(room.recording(head["id"], turn["audio_id"]))
                assert said_in <= {step}
                recorded += bool(said_in)
    assert recorded > TOYS * STEPS / 2
    assert {toy.card is None for toy in toys} == {True, False}
