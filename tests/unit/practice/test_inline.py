import asyncio
import random
from typing import Any

import pytest

from etude.practice.apps import shipped_apps
from etude.practice.evidence import Evidence
from etude.practice.inline import PAUSE_S, Inline
from etude.practice.records import EncodedPrompt, EndReason, Prompt
from etude.practice.speaking import Speaker
from etude.speech.clips import EncodedClip
from etude.testing.noted import NotedRecording
from etude.testing.toy import VOICE, Toy
from etude.testing.virtual_time import run

TASK = shipped_apps().task("mind_games", "mental_arithmetic")
CLIP = EncodedClip(packets=(b"\x58",) * 10, frame_ms=60, sample_rate=24_000, duration_ms=600)


def prompt_of(prompt: Prompt, locale: str) -> EncodedPrompt | None:
    return EncodedPrompt(prompt=prompt, text=f"<{prompt.value}.{locale}>", clip=CLIP)


class Stage:
    """A game on a toy."""

    def __init__(self, *, broken: bool = False, first: int = 0, prompts: Any = prompt_of) -> None:
        self.toy = Toy()
        self.record = NotedRecording(broken=broken)
        self.reasons: list[EndReason] = []
        self.game = Inline(
            TASK,
            self.toy,
            Speaker(self.toy, prompts),
            Evidence(self.record, TASK.activity.signal),
            random.Random(5),
            self.reasons.append,
            first=first,
        )
        self.loop = asyncio.get_running_loop()

    def answer(self, text: str) -> None:
        self.game.audio(VOICE, self.loop.time())
        self.game.recognised(text, self.loop.time())

    @property
    def right(self) -> str:
        return str(self.record.named("asked")[-1][3])

    @property
    def said(self) -> list[str]:
        return self.toy.played()


def test_an_answer_is_judged_at_once_and_told() -> None:
    """Right, other and silent: 1, 0 and null; the first two are told, and all go on."""

    async def play() -> None:
        stage = Stage()
        stage.game.begin()
        await asyncio.sleep(1)
        stage.answer(stage.right)
        await asyncio.sleep(8 + 0.8 + PAUSE_S)
        stage.answer("1000")
        await asyncio.sleep(8 + 0.8 + PAUSE_S)
        await asyncio.sleep(8 + PAUSE_S)
        first, second, third = stage.record.turns
        matches = [turn.detail["exact_match_v1"] for turn in (first, second, third) if turn.detail]
        assert matches == [1, 0, None]
        assert third.detail is not None
        assert third.detail["reason"] == "no_speech"
        assert stage.said == ["<right_answer.zh-CN>", "<other_answer.zh-CN>"]
        assert (first.expected_text, first.heard, first.window_ms) == (first.asr_text, True, 8000)
        assert not any("passed" in str(turn.detail) for turn in stage.record.turns)

    run(play)


@pytest.mark.parametrize("broken", [False, True])
def test_it_ends_after_its_rounds(*, broken: bool) -> None:
    """Five questions, then the end, once; whether or not anything can be recorded."""

    async def play() -> None:
        stage = Stage(broken=broken)
        stage.game.begin()
        await asyncio.sleep(5 * (8 + PAUSE_S) + 1)
        assert stage.reasons == [EndReason.LIST_COMPLETED]
        assert [turn.step_index for turn in stage.record.turns] == [0, 1, 2, 3, 4]
        stage.game.leave(EndReason.PREEMPTED)
        assert stage.reasons == [EndReason.LIST_COMPLETED]

    run(play)


def test_the_last_answer_counts_and_the_window_stays_open() -> None:
    """Somebody who corrects themselves is judged by what they said last, when the time is over."""

    async def play() -> None:
        stage = Stage()
        stage.game.begin()
        stage.answer("1000")
        await asyncio.sleep(7)
        stage.answer(stage.right)
        assert stage.said == []
        await asyncio.sleep(1.1)
        assert stage.said == ["<right_answer.zh-CN>"]

    run(play)


@pytest.mark.parametrize("at_s", [3.0, 8.3, 9.0])
def test_leaving_ends_it_at_once(at_s: float) -> None:
    """While a question is open, while feedback is spoken, and in the pause after it."""

    async def play() -> None:
        stage = Stage()
        stage.game.begin()
        stage.answer(stage.right)
        await asyncio.sleep(at_s)
        stage.game.leave(EndReason.EXIT_PHRASE)
        shown = len(stage.toy.times("show"))
        assert [turn.step_index for turn in stage.record.turns] == [0]
        await asyncio.sleep(60)
        assert (stage.reasons, len(stage.toy.times("show"))) == ([EndReason.EXIT_PHRASE], shown)

    run(play)


def test_an_interrupted_feedback_stops_it() -> None:
    """The button during feedback ends the task as stopped."""

    async def play() -> None:
        stage = Stage()
        stage.game.begin()
        stage.answer(stage.right)
        await asyncio.sleep(8.3)
        stage.toy.stop_playing()
        stage.game.aborted()
        assert stage.reasons == [EndReason.PLAY_STOPPED]

    run(play)


def test_a_lost_connection_asks_the_open_question_anew() -> None:
    """The step is told to the record; a new task begins there."""

    async def play() -> None:
        stage = Stage()
        stage.game.begin()
        await asyncio.sleep(8 + PAUSE_S + 1)
        stage.game.disconnect()
        assert stage.record.named("disconnected") == [(1,)]
        again = Stage(first=1)
        again.game.begin()
        await asyncio.sleep(60)
        assert [turn.step_index for turn in again.record.turns] == [1, 2, 3, 4]
        assert stage.reasons == []

    run(play)


def test_without_a_voice_feedback_is_shown() -> None:
    """No clip: the words and the answer are on the display, and it goes on."""

    async def play() -> None:
        stage = Stage(prompts=lambda *_: None)
        stage.game.begin()
        stage.answer("1000")
        await asyncio.sleep(8 + PAUSE_S + 0.5)
        shown = [one.what for one in stage.toy.heard if one.kind == "show"]
        assert len(shown) == 4  # question, words, answer, next question
        assert str(stage.record.turns[0].expected_text) in shown[2]

    run(play)
