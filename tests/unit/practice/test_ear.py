import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from etude.practice.ear import BEFORE, LEAST_VOICED, LONGEST_MS, MOST_PENDING, PAUSE_S, Ear
from etude.testing.toy import SILENCE, VOICE
from etude.testing.virtual_time import run

FRAME_S = 0.06


class Listening:
    """An ear, what it asked to have recognised, and what came of it."""

    def __init__(self, answer: Any = "hello", takes_s: float = 0.1) -> None:
        self.answer, self.takes_s = answer, takes_s
        self.asked: list[tuple[bytes, ...]] = []
        self.languages: list[str] = []
        self.understood: list[tuple[str, float]] = []
        self.missed = 0
        self.loop = asyncio.get_running_loop()
        self.ear = Ear(
            self.hear,
            lambda: "en",
            lambda text, at_s: self.understood.append((text, at_s)),
            self.miss,
        )

    async def hear(self, packets: Sequence[bytes], language: str) -> str | None:
        self.asked.append(tuple(packets))
        self.languages.append(language)
        await asyncio.sleep(self.takes_s)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def miss(self) -> None:
        self.missed += 1

    async def stream(self, *packets: bytes) -> None:
        for packet in packets:
            self.ear.audio(packet, self.loop.time())
            await asyncio.sleep(FRAME_S)


def test_a_pause_ends_an_utterance() -> None:
    """It begins a little before the first voice; its time is that of the last voice."""

    async def play() -> None:
        listening = Listening()
        await listening.stream(*[SILENCE] * 20, *[VOICE] * 10)
        last_voice_s = listening.loop.time() - FRAME_S
        await listening.stream(*[SILENCE] * 30)
        assert listening.understood == [("hello", pytest.approx(last_voice_s))]
        (packets,) = listening.asked
        assert packets[: BEFORE + 10] == (*[SILENCE] * BEFORE, *[VOICE] * 10)
        assert len(packets) <= BEFORE + 10 + PAUSE_S / FRAME_S + 1
        assert listening.languages == ["en"]

    run(play)


def test_a_microphone_that_stops_ends_it_too() -> None:
    """No packet comes after the last word, as when the device begins to speak."""

    async def play() -> None:
        listening = Listening()
        await listening.stream(*[VOICE] * 5)
        await asyncio.sleep(PAUSE_S + 0.2)
        assert [text for text, _ in listening.understood] == ["hello"]

    run(play)


def test_a_click_and_what_is_no_opus_are_nothing() -> None:
    """Silence, single packets and garbage are never given to an engine."""

    async def play() -> None:
        listening = Listening()
        await listening.stream(*[SILENCE] * 40, *[VOICE] * (LEAST_VOICED - 1), *[SILENCE] * 40)
        await listening.stream(*[b"\xff" * 40] * 20, *[b""] * 5)
        await asyncio.sleep(3)
        assert listening.asked == []

    run(play)


def test_who_never_pauses_is_cut() -> None:
    """A room that is never silent: every fifteen seconds."""

    async def play() -> None:
        listening = Listening()
        await listening.stream(*[VOICE] * (2 * LONGEST_MS // 60 + 5))
        assert [len(packets) for packets in listening.asked] == [LONGEST_MS // 60] * 2

    run(play)


def test_a_bound_cuts_at_once() -> None:
    """`cut` gives what was said so far to the engine; `forget` drops it."""

    async def play() -> None:
        listening = Listening()
        await listening.stream(*[VOICE] * 4)
        listening.ear.cut()
        await listening.stream(*[VOICE] * 3)
        listening.ear.forget()
        listening.ear.cut()
        await asyncio.sleep(2)
        assert [len(packets) for packets in listening.asked] == [4]

    run(play)


def test_a_slow_engine_piles_nothing_up() -> None:
    """More utterances than are heard are dropped; the ear goes on when the engine does."""

    async def play() -> None:
        listening = Listening(takes_s=10)
        for _ in range(5):
            await listening.stream(*[VOICE] * 4)
            listening.ear.cut()
        assert len(listening.asked) == MOST_PENDING
        await asyncio.sleep(10)
        await listening.stream(*[VOICE] * 4)
        listening.ear.cut()
        await asyncio.sleep(0)
        assert len(listening.asked) == MOST_PENDING + 1

    run(play)


@pytest.mark.parametrize("answer", [None, RuntimeError("gone")])
def test_an_engine_that_cannot_tell_is_a_miss(answer: Any) -> None:
    """None and an error alike; an empty text is neither understood nor missed."""

    async def play() -> None:
        for told, missed in ((answer, 1), ("", 0)):
            listening = Listening(told)
            await listening.stream(*[VOICE] * 4)
            await asyncio.sleep(2)
            assert (listening.understood, listening.missed) == ([], missed)

    run(play)


def test_a_closed_ear_tells_nobody() -> None:
    """What is still being recognised when the connection ends goes nowhere."""

    async def play() -> None:
        listening = Listening(takes_s=5)
        await listening.stream(*[VOICE] * 4)
        listening.ear.cut()
        await asyncio.sleep(0.1)
        listening.ear.close()
        await listening.stream(*[VOICE] * 4)
        await asyncio.sleep(9)
        assert (listening.understood, listening.missed, len(listening.asked)) == ([], 0, 1)

    run(play)


def test_without_an_engine_nothing_is_kept() -> None:
    """No packet is held and no timer runs."""

    async def play() -> None:
        ear = Ear(None, lambda: "en", lambda *_: None, lambda: None)
        ear.audio(VOICE, 0.0)
        ear.cut()
        assert not ear.works
        assert ear._packets == []
        await asyncio.sleep(0)

    run(play)
