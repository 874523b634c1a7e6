import asyncio

import pytest

from etude.gateway.ports import SkillEnd, SkillEvent
from etude.practice.apps import shipped_apps
from etude.practice.players import (
    WATCHDOG_UNKNOWN_S,
    CardPlayer,
    ClipEnd,
    Outcome,
    StreamPlayer,
    plays_card,
)
from etude.practice.records import Clip
from etude.testing.fake_card import FakeCard
from etude.testing.toy import Toy
from etude.testing.virtual_time import run

TASK = shipped_apps().task("english_learning", "shadowing")
PATH = "/english_learning/shadowing/lessons/u/01.mp3"
KNOWN = Clip(name="01.mp3", path=PATH, duration_ms=2000)
UNKNOWN = Clip(name="01.mp3", path=PATH)


def event(end: SkillEnd = SkillEnd.COMPLETED, duration_ms: int | None = 2000) -> SkillEvent:
    return SkillEvent(
        end=end, app_id="english_learning", task_id="shadowing", duration_ms=duration_ms
    )


class Hand:
    """A card player whose device's events a test sends."""

    def __init__(self) -> None:
        self.toy = Toy(FakeCard({PATH: 2000}, mute=True))
        self.toy.list_tools = lambda: None
        self.ends: list[ClipEnd] = []
        self.player = CardPlayer(self.toy, asyncio.get_running_loop())

    def play(self, clip: Clip = KNOWN) -> None:
        self.player.play(TASK, clip, self.ends.append)


@pytest.mark.parametrize(
    ("reported_ms", "clip", "played_s", "expected_ms"),
    [
        (2350, KNOWN, 2.4, 2350),
        (None, KNOWN, 2.4, 2000),
        (None, UNKNOWN, 2.4, 2400),
    ],
)
def test_a_duration_is_what_was_reported_else_known_else_measured(
    reported_ms: int | None, clip: Clip, played_s: float, expected_ms: int
) -> None:
    """In this order (`docs/rules.md 15`)."""

    async def play() -> None:
        hand = Hand()
        hand.play(clip)
        await asyncio.sleep(played_s)
        hand.player.skill_event(event(duration_ms=reported_ms))
        assert hand.ends == [ClipEnd(Outcome.PLAYED, expected_ms)]

    run(play)


def test_one_event_ends_one_clip() -> None:
    """The second of two equal events finds nothing that plays."""

    async def play() -> None:
        hand = Hand()
        hand.player.skill_event(event())
        hand.play()
        await asyncio.sleep(2)
        hand.player.skill_event(event())
        hand.player.skill_event(event())
        hand.player.skill_event(event(SkillEnd.STOPPED))
        assert len(hand.ends) == 1
        await asyncio.sleep(200)
        assert len(hand.ends) == 1

    run(play)


def test_a_clip_of_unknown_length_is_given_up_in_the_end() -> None:
    """After two minutes without any event: failed, length unknown."""

    async def play() -> None:
        hand = Hand()
        hand.play(UNKNOWN)
        await asyncio.sleep(WATCHDOG_UNKNOWN_S - 1)
        assert hand.ends == []
        await asyncio.sleep(2)
        assert hand.ends == [ClipEnd(Outcome.FAILED, 0)]

    run(play)


def test_the_late_event_of_a_clip_does_not_end_the_next_one() -> None:
    """After the watchdog, an event that cannot be the new clip's (it has not played so long)."""

    async def play() -> None:
        hand = Hand()
        hand.play()
        await asyncio.sleep(7.1)
        assert hand.ends == [ClipEnd(Outcome.PLAYED, 2000)]
        hand.play()
        await asyncio.sleep(0.2)
        hand.player.skill_event(event(duration_ms=2350))
        assert len(hand.ends) == 1
        await asyncio.sleep(2)
        hand.player.skill_event(event(duration_ms=2100))
        assert hand.ends[1] == ClipEnd(Outcome.PLAYED, 2100)

    run(play)


@pytest.mark.parametrize("end", list(SkillEnd))
def test_the_event_about_a_stop_does_not_end_what_follows(end: SkillEnd) -> None:
    """Stopped from here, then another clip: the device's word about the first is passed over."""

    async def play() -> None:
        hand = Hand()
        hand.play()
        await asyncio.sleep(1.5)
        hand.player.stop()
        hand.play()
        hand.player.skill_event(event(end, duration_ms=1500))
        assert hand.ends == []
        await asyncio.sleep(2)
        hand.player.skill_event(event())
        assert hand.ends == [ClipEnd(Outcome.PLAYED, 2000)]

    run(play)


def test_a_stop_without_a_clip_asks_nothing_of_the_device() -> None:
    """No tool call, and nothing that would swallow the next event."""

    async def play() -> None:
        hand = Hand()
        hand.player.stop()
        assert hand.toy.heard == []
        await asyncio.sleep(0)

    run(play)


def test_a_clip_that_was_not_encoded_fails_later_not_at_once() -> None:
    """`ended` is never called from within `play`."""

    async def play() -> None:
        ends: list[ClipEnd] = []
        player = StreamPlayer(Toy(), asyncio.get_running_loop(), lambda _: None)
        player.play(TASK, KNOWN, ends.append)
        assert ends == []
        await asyncio.sleep(0.01)
        assert ends == [ClipEnd(Outcome.FAILED, 2000)]

    run(play)


@pytest.mark.parametrize(
    ("tools", "card"),
    [
        (None, False),
        ((), False),
        (("self.mp3.play",), False),
        (("self.mp3.play", "self.mp3.stop", "self.mp3.get_list"), True),
    ],
)
def test_the_card_is_used_if_the_device_has_its_tools(
    *, tools: tuple[str, ...] | None, card: bool
) -> None:
    """List, play and stop are all needed."""
    listed = None if tools is None else dict.fromkeys(tools)
    assert plays_card(TASK, listed) is card
