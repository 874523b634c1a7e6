"""Practice by voice: what the ear hears, the toy answers, and the clock never notices."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.gateway.ports import ListenMode
from etude.practice.apps import shipped_apps
from etude.practice.conversation import Purpose, Said
from etude.practice.live_speech import LiveSpeech
from etude.practice.records import Clip, EncodedPrompt, EndReason, Lesson, Mode, Prompt
from etude.practice.runtime import practice_factory
from etude.practice.tasks import Task
from etude.speech.clips import EncodedClip
from etude.speech.engines import SpeechOptions
from etude.speech.pool import PoolLimits, SpeechPool
from etude.testing.noted import NotedRecording
from etude.testing.speech_engines import FACTORY
from etude.testing.toy import SILENCE, VOICE, Toy
from etude.testing.virtual_time import run

APPS = shipped_apps()
CLIP_MS = 960
STEP_S = (CLIP_MS + 200 + round(1.2 * CLIP_MS)) / 1000
WINDOW_AT_S = (CLIP_MS + 200) / 1000


def clip_of(duration_ms: int) -> EncodedClip:
    packets = (b"\x58",) * max(1, duration_ms // 60)
    return EncodedClip(packets=packets, frame_ms=60, sample_rate=24_000, duration_ms=duration_ms)


def prompt_of(prompt: Prompt, locale: str) -> EncodedPrompt | None:
    return EncodedPrompt(prompt=prompt, text=f"<{prompt.value}.{locale}>", clip=clip_of(600))


class Shelf:
    def first(self, task: Task) -> Lesson | None:
        clips = tuple(
            Clip(name=f"{n}.mp3", path=f"/{n}.mp3", duration_ms=CLIP_MS, file=Path("/x"))
            for n in range(3)
        )
        return Lesson(app_id=task.app_id, task_id=task.task_id, lesson_id="unit01", clips=clips)

    def named(self, task: Task, lesson_id: str) -> Lesson | None:
        del lesson_id
        return self.first(task)

    def encoded(self, clip: Clip) -> EncodedClip | None:
        return clip_of(clip.duration_ms or 0)

    async def prepare(self, lesson: Lesson) -> None:
        del lesson
        await asyncio.sleep(0)


class Notebook:
    def __init__(self) -> None:
        self.recordings: list[NotedRecording] = []

    def begin(self, start: Any) -> NotedRecording:
        del start
        self.recordings.append(NotedRecording())
        return self.recordings[-1]

    def unfinished(self, device_id: str) -> None:
        del device_id


class Mind:
    """Hears what a test says was said, speaks after a while, thinks what it is told to."""

    def __init__(self, *, takes_s: float = 0.1, says: bool = True) -> None:
        self.takes_s, self.says = takes_s, says
        self.next: list[str | None] = []
        self.utterances: list[int] = []
        self.made: list[tuple[str, str]] = []
        self.asked: list[tuple[Purpose, str, tuple[Said, ...]]] = []
        self.answer: str | Exception = "I see. Tell me more!"
        self.thinks_s = 0.5
        self.deaf = False

    def knows(self, language: str) -> bool:
        del language
        return not self.deaf

    async def hear(self, packets: Sequence[bytes], language: str) -> str | None:
        del language
        self.utterances.append(len(packets))
        text = self.next.pop(0) if self.next else ""
        await asyncio.sleep(self.takes_s)
        return text

    async def say(self, words: str, language: str) -> EncodedClip | None:
        self.made.append((words, language))
        await asyncio.sleep(0.2)
        return clip_of(1200) if self.says else None

    async def ask(self, purpose: Purpose, language: str, said: Sequence[Said]) -> str:
        self.asked.append((purpose, language, tuple(said)))
        await asyncio.sleep(self.thinks_s)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Bench:
    def __init__(self, mind: Any, *, model: bool = False) -> None:
        self.mind, self.notebook, self.toy = mind, Notebook(), Toy()
        make: Any = practice_factory
        factory = make(
            APPS,
            Shelf(),
            self.notebook,
            prompt_of,
            chance=random.Random(7),
            speech=mind,
            ask=(lambda _: mind.ask) if model else None,
        )
        self.practice = factory(self.toy)
        self.loop = asyncio.get_running_loop()
        self.toy.connect(self.practice)

    async def speak(self, text: str | None, packets: int = 5) -> None:
        """Say something, and be silent until it is understood."""
        self.mind.next.append(text)
        for _ in range(packets):
            self.toy.speak(1)
            await asyncio.sleep(0.06)
        for _ in range(14):
            self.toy.speak(1, SILENCE)
            await asyncio.sleep(0.06)

    @property
    def record(self) -> NotedRecording:
        return self.notebook.recordings[-1]


async def begun(bench: Bench) -> float:
    """Start the lesson; return when its first clip began."""
    await asyncio.sleep(1)
    bench.toy.say("start reading")
    await asyncio.sleep(0.01)
    return bench.toy.times("play")[-1]


def test_an_entry_phrase_starts_its_task_by_voice() -> None:
    """Said, recognised, begun; nothing else is answered on the way."""

    async def play() -> None:
        bench = Bench(Mind())
        await asyncio.sleep(1)
        await bench.speak("Start reading!")
        await asyncio.sleep(0.3)
        assert bench.practice.mode is Mode.SHADOWING
        assert bench.toy.played() == [""]

    run(play)


def test_what_is_said_in_a_window_is_in_its_turn() -> None:
    """The last of several; also when it is recognised after the window and before the turn."""

    async def play() -> None:
        bench = Bench(Mind(takes_s=0.2))
        start_s = await begun(bench)
        await asyncio.sleep(start_s + STEP_S - 0.5 - bench.loop.time())
        bench.mind.next = ["good morning"]
        for _ in range(7):  # until just before the window closes
            bench.toy.speak(1)
            await asyncio.sleep(0.06)
        await asyncio.sleep(0.5)
        assert [turn.asr_text for turn in bench.record.turns] == ["good morning"]
        await asyncio.sleep(10)
        assert [turn.asr_text for turn in bench.record.turns] == ["good morning", None, None]

    run(play)


def test_what_is_recognised_after_the_turn_was_written_is_left_to_the_sweep() -> None:
    """It goes into no other turn."""

    async def play() -> None:
        bench = Bench(Mind(takes_s=3))
        start_s = await begun(bench)
        await asyncio.sleep(start_s + WINDOW_AT_S + 0.1 - bench.loop.time())
        await bench.speak("too late")
        await asyncio.sleep(20)
        assert [turn.asr_text for turn in bench.record.turns] == [None] * 3
        assert bench.record.turns[0].heard

    run(play)


def test_what_was_said_over_a_clip_is_not_the_windows() -> None:
    """The echo of a clip, or a learner too early: cut off where the window opens."""

    async def play() -> None:
        bench = Bench(Mind())
        start_s = await begun(bench)
        await asyncio.sleep(start_s + WINDOW_AT_S - 0.3 - bench.loop.time())
        bench.mind.next = ["the clip itself", "my own words"]
        for _ in range(10):  # across the window's opening without a pause
            bench.toy.speak(1)
            await asyncio.sleep(0.06)
        await asyncio.sleep(1.5)
        assert len(bench.mind.utterances) == 2
        assert bench.record.turns[0].asr_text == "my own words"

    run(play)


@pytest.mark.parametrize("at_s", [0.05, WINDOW_AT_S + 0.05])
def test_an_exit_phrase_leaves_by_voice(at_s: float) -> None:
    """While a clip plays, where the microphone is open, and in a window: chat, no greeting."""

    async def play() -> None:
        bench = Bench(Mind())
        bench.toy.listening = ListenMode.REALTIME
        start_s = await begun(bench)
        await asyncio.sleep(start_s + at_s - bench.loop.time())
        await bench.speak("Stop reading.")
        await asyncio.sleep(0.3)
        assert bench.practice.mode is Mode.CHAT
        assert bench.record.notes[-1] == ("end", EndReason.EXIT_PHRASE)
        assert not [what for what in bench.toy.played() if what.startswith("<")]

    run(play)


class CountingPool(SpeechPool):
    asked = 0

    def submit(self, *request: Any, **how: Any) -> Any:
        self.asked += 1
        return super().submit(*request, **how)


FAULTS = ["please hang", "please crash", "please grow", "please raise"]


@pytest.mark.parametrize("where", ["voice", "recogniser"])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_engine_moves_the_clock(fault: str, where: str) -> None:
    """Hung, crashed, out of memory or broken, at work or at its start: every clip at its time."""

    async def lesson(speech: Any) -> list[float]:
        bench = Bench(speech)
        start_s = await begun(bench)
        for _ in range(40):
            bench.toy.speak(3)
            await asyncio.sleep(0.2)
        assert bench.practice.mode is Mode.CHAT
        assert len(bench.record.turns) == 3
        return [at_s - start_s for at_s in bench.toy.times("play")]

    limits = PoolLimits(
        waiting=4, start_s=3, request_s=3, request_s_per_s=0, memory_bytes=512 * 1024 * 1024
    )
    options = SpeechOptions(**{where: fault})
    pool = CountingPool(options, warm=(), limits=limits, factory=FACTORY)

    async def with_pool() -> list[float]:
        speech = LiveSpeech(pool)
        speech.ask = None  # type: ignore[attr-defined] # the bench's minds have one
        try:
            return await lesson(speech)
        finally:
            speech.close()

    with pool:
        times = run(with_pool)
    assert pool.asked
    assert times == pytest.approx(run(lambda: lesson(None)), abs=1e-9)


def test_a_model_answers_sentence_by_sentence() -> None:
    """The model gets what was said before, too; each sentence is told by itself."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        await asyncio.sleep(1)
        await bench.speak("I have a cat.")
        await asyncio.sleep(5)
        assert bench.toy.played() == ["I see.", "Tell me more!"]
        await bench.speak("It is grey.")
        await asyncio.sleep(5)
        (first, second) = bench.mind.asked
        assert first == (Purpose.CHAT, "en", (Said("learner", "I have a cat."),))
        assert [one.by for one in second[2]] == ["learner", "toy", "learner"]
        assert len(bench.toy.played()) == 4

    run(play)


def test_an_abort_drops_the_answer_wherever_it_is() -> None:
    """While the model thinks, while speech is made, while it is told: nothing stale follows."""

    async def play() -> None:
        for after_s in (0.2, 0.7, 1.5):
            bench = Bench(Mind(), model=True)
            await asyncio.sleep(1)
            bench.toy.say("I have a cat.")
            await asyncio.sleep(after_s)
            before = bench.toy.played()
            bench.toy.abort()
            await asyncio.sleep(10)
            assert bench.toy.played() == before
            bench.toy.say("And a dog.")
            await asyncio.sleep(5)
            assert bench.toy.played()[len(before) :] == ["I see.", "Tell me more!"]

    run(play)


def test_a_task_ends_the_answer() -> None:
    """Whoever starts a task hears the task."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        await asyncio.sleep(1)
        bench.toy.say("I have a cat.")
        await asyncio.sleep(0.8)
        bench.toy.press("start reading")
        await asyncio.sleep(20)
        assert bench.toy.played() == ["I see.", "", "", "", "<greeting.en>"] or (
            bench.toy.played() == ["", "", "", "<greeting.en>"]
        )

    run(play)


@pytest.mark.parametrize("answer", [RuntimeError("?"), "", "😀 **"])
def test_a_model_without_an_answer_leaves_the_fixed_one(answer: Any) -> None:
    """An error, nothing, or nothing that can be said; and a model that never answers."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        bench.mind.answer = answer
        await asyncio.sleep(1)
        bench.toy.say("hello")
        await asyncio.sleep(3)
        assert bench.toy.played() == ["<fixed_answer.en>"]
        bench.mind.thinks_s = 1000
        bench.toy.say("hello")
        await asyncio.sleep(30)
        assert bench.toy.played() == ["<fixed_answer.en>"] * 2

    run(play)


def test_without_a_voice_answers_are_shown() -> None:
    """A synthesiser that cannot speak leaves the display."""

    async def play() -> None:
        bench = Bench(Mind(says=False), model=True)
        await asyncio.sleep(1)
        bench.toy.say("hello")
        await asyncio.sleep(3)
        shown = [one.what for one in bench.toy.heard if one.kind == "show"]
        assert shown == ["hello", "I see.", "Tell me more!"]

    run(play)


def test_the_toy_does_not_answer_itself() -> None:
    """Its own last words, from the device's queue, are an echo; other words are not."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        bench.mind.answer = "Do you like apples?"
        await asyncio.sleep(1)
        bench.toy.say("hello")
        await asyncio.sleep(2.2)
        assert not bench.practice._speaker.speaking
        await bench.speak("do you like apples")
        await asyncio.sleep(1)
        assert len(bench.mind.asked) == 1
        await bench.speak("I like apples")
        await asyncio.sleep(1)
        assert len(bench.mind.asked) == 2

    run(play)


def test_translation_is_spoken_in_the_other_language() -> None:
    """Chinese words by a Chinese voice; no history; the exit phrase leaves."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        bench.mind.answer = "早上好。"
        await asyncio.sleep(1)
        bench.toy.say("start translating")
        await asyncio.sleep(0.5)
        for _ in range(2):
            await bench.speak("Good morning.")
            await asyncio.sleep(4)
        assert [asked[0] for asked in bench.mind.asked] == [Purpose.TRANSLATE] * 2
        assert [len(asked[2]) for asked in bench.mind.asked] == [1, 1]
        assert bench.mind.made == [("早上好。", "zh-CN")] * 2
        await bench.speak("stop translating")
        await asyncio.sleep(0.5)
        assert bench.practice.mode is Mode.CHAT
        assert bench.toy.played() == ["早上好。"] * 2

    run(play)


def test_push_to_talk_that_nobody_understood_gets_the_fixed_answer() -> None:
    """With the button, whoever spoke waits for an answer; without it, noise gets none."""

    async def play() -> None:
        bench = Bench(Mind())
        await asyncio.sleep(1)
        await bench.speak(None)
        await asyncio.sleep(1)
        assert bench.toy.played() == []
        bench.mind.next = [None]
        bench.toy.speak(5)
        bench.practice.listen_stopped()
        await asyncio.sleep(1)
        assert bench.toy.played() == ["<fixed_answer.en>"]

    run(play)


def test_who_speaks_a_language_that_no_engine_knows_is_told_once() -> None:
    """The short fixed answer, the first time only: in a noisy room a toy would never be silent."""

    async def play() -> None:
        bench = Bench(Mind())
        bench.mind.deaf = True
        await asyncio.sleep(1)
        for _ in range(3):
            await bench.speak(None)
            await asyncio.sleep(2)
        assert bench.toy.played() == ["<fixed_answer.en>"]

    run(play)


def test_questions_are_spoken_before_their_window_opens() -> None:
    """The answer's time begins when the question was said; what was said over it is no answer."""

    async def play() -> None:
        bench = Bench(Mind())
        await asyncio.sleep(1)
        bench.practice.start_task("mind_games", "mental_arithmetic", {})
        await asyncio.sleep(0.5)
        (question,) = bench.toy.played()
        assert "等于几" in question
        task = APPS.task("mind_games", "mental_arithmetic")
        assert bench.record.turns == []
        await asyncio.sleep(1.2)
        await bench.speak("42")
        await asyncio.sleep((task.window_ms or 0) / 1000)
        (turn,) = bench.record.turns
        assert (turn.asr_text, turn.heard) == ("42", True)
        bench.practice.aborted("")
        await asyncio.sleep(20)
        assert len(bench.record.turns) == 1
        assert bench.practice.mode is Mode.CHAT

    run(play)


def test_voice_while_the_toy_speaks_is_nobodys() -> None:
    """In chat: no engine is asked while an answer is told."""

    async def play() -> None:
        bench = Bench(Mind(), model=True)
        await asyncio.sleep(1)
        bench.toy.say("hello")
        await asyncio.sleep(0.9)
        bench.toy.speak(30, VOICE)
        await asyncio.sleep(1)
        assert bench.mind.utterances == []

    run(play)
