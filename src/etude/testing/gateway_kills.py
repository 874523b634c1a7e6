"""Trials with `kill -9` of a gateway whose toys are in the middle of their lessons."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from etude.practice.records import Prompt
from etude.testing.fake_device import Seen
from etude.testing.playmate import PATIENCE_S, Playmate
from etude.testing.playroom import Playroom

MOMENTS: Final = (("clip", 0.0, 0.3), ("clip_over", 0.05, 0.7), ("clip_over", 0.75, 0.95))
"""When a kill comes: after what, and the shortest and longest time since: while a clip plays, in
its window, and around the step to the next one."""


class Kills(msgspec.Struct, kw_only=True):
    """What came of one trial or of many."""

    kills: int = 0
    lessons: int = 0
    turns: int = 0
    recordings: int = 0
    faults: list[str] = []
    """A turn lost or doubled, a step played in the wrong place, a voice in the wrong file."""

    def add(self, other: "Kills") -> None:
        """Take the figures of another trial in."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def kill_gateway(room: Playroom, seed: int, kills: int) -> Kills:
    """Let every toy of a running room follow its lesson; kill the gateway, at most `kills` times.

    Raises:
        TimeoutError: a lesson did not come to its end.
    """
    return asyncio.run(_kill_gateway(room, random.Random(seed), seed, kills))  # noqa: S311 - seeded, so that a failure repeats


async def _kill_gateway(room: Playroom, chance: random.Random, seed: int, kills: int) -> Kills:
    toys = room.toys()
    before = {toy.device_id: {head["id"] for head in room.instances(toy.device_id)} for toy in toys}
    figures = Kills()
    async with room.practising(toys):
        for number in range(kills):
            what, least_s, most_s = MOMENTS[(seed + number) % len(MOMENTS)]
            playing = [toy for toy in toys if not _over(toy)]
            if not playing or room.gateway is None:
                break
            await _seen(chance.choice(playing), what, chance.randint(1, 3))
            await asyncio.sleep(chance.uniform(least_s, most_s))
            await asyncio.to_thread(room.gateway.kill)
            figures.kills += 1
            await asyncio.to_thread(room.start_gateway)
        await room.until_ended(toys, 1 + max(map(len, before.values())))
    for toy in toys:
        figures.lessons += 1
        faults = _faults(room, toy, before[toy.device_id], figures)
        figures.faults += [f"seed {seed}, {toy.device_id}: {fault}" for fault in faults]
    return figures


def _over(toy: Playmate) -> bool:
    return any(one.what == "clip" and one.detail == Prompt.GREETING for one in toy.timeline)


async def _seen(toy: Playmate, what: str, times: int) -> None:
    """Return once this was seen so often on the toy, or its lesson is over."""
    seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left, names = times, {part.name for part in toy.own.parts}

    def notice(one: Seen) -> None:
        nonlocal left
        left -= one.what == what and one.detail in names
        if (left <= 0 or one.detail == Prompt.GREETING) and not seen.done():
            seen.set_result(None)

    toy.watchers.append(notice)
    try:
        async with asyncio.timeout(PATIENCE_S / 10):
            await seen
    except TimeoutError:
        return
    finally:
        toy.watchers.remove(notice)


def _faults(room: Playroom, toy: Playmate, before: set[str], figures: Kills) -> Iterator[str]:
    heads = [head for head in room.instances(toy.device_id) if head["id"] not in before]
    if len(heads) != 1:
        yield f"{len(heads)} instances"
        return
    instance = room.instance(heads[0]["id"])
    wanted = list(range(len(toy.own.parts)))
    if (instance["status"], instance["end_reason"]) != ("completed", "list_completed"):
        yield f"ended {instance['status']}, {instance['end_reason']}"
    if [turn["step_index"] for turn in instance["turns"]] != wanted:
        yield f"steps {[turn['step_index'] for turn in instance['turns']]}"
    seen = [one for one in room.events(heads[0]["id"]) if one["event_type"] == "signal_observation"]
    if [one["value"]["step_index"] for one in seen] != wanted:
        yield f"rows of steps {[one['value']['step_index'] for one in seen]}"
    yield from _order(toy)
    for turn in instance["turns"]:
        figures.turns += 1
        yield from _voice(room, toy, heads[0]["id"], turn, figures)


def _voice(
    room: Playroom, toy: Playmate, session_id: str, turn: dict[str, Any], figures: Kills
) -> Iterator[str]:
    if turn["audio_id"] is None:
        return
    figures.recordings += 1
    said_in = toy.steps_in(room.recording(session_id, turn["audio_id"]))
    if not said_in <= {turn["step_index"]}:
        yield f"what was said in {said_in} is filed with step {turn['step_index']}"


def _order(toy: Playmate) -> Iterator[str]:
    """Each clip follows the one before; after a lost connection the one that was on comes again.

    So does the one before it, if the kill came before its turn was written: late packets are waited
    for, and what is in memory only is said again.
    """
    numbers = {part.name: number for number, part in enumerate(toy.own.parts)}
    last, cut = -1, False
    for one in toy.timeline:
        if one.what in {"lost", "closed"}:
            cut = True
        elif one.what == "clip" and one.detail in numbers:
            number = numbers[one.detail]
            if number != last + 1 and not (cut and last - 1 <= number <= last):
                yield f"{one.detail} after step {last}"
            last, cut = number, False
