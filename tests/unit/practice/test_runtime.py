import asyncio
import json
import random
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from etude.gateway.ports import CloseReason, Practice
from etude.practice.apps import Apps, load_apps, shipped_apps
from etude.practice.preparation import TOOLS_WAIT_S
from etude.practice.records import (
    Clip,
    EncodedPrompt,
    EndReason,
    Lesson,
    Mode,
    Prompt,
    SessionStart,
    Unfinished,
)
from etude.practice.runtime import practice_factory
from etude.practice.tasks import Task
from etude.speech.clips import EncodedClip
from etude.testing.fake_card import FakeCard
from etude.testing.noted import NotedRecording
from etude.testing.toy import Toy
from etude.testing.virtual_time import run

VERDICT = re.compile(
    r"right|wrong|correct|score|passed|grade|good|bad|threshold|对|错|分数|及格|真棒", re.IGNORECASE
)
SECONDS = (1.0, 2.0, 1.0)
APPS = shipped_apps()


def clip_of(duration_ms: int) -> EncodedClip:
    packets = (b"\x58",) * max(1, duration_ms // 60)
    return EncodedClip(packets=packets, frame_ms=60, sample_rate=24_000, duration_ms=duration_ms)


class Shelf:
    """Lessons in memory: three clips of a task, of 960, 1980 and 960 ms, unless told otherwise."""

    def __init__(self, *durations_ms: int, missing: bool = False) -> None:
        self.durations_ms = durations_ms or (960, 1980, 960)
        self.missing = missing
        self.asked: list[str | None] = []

    def first(self, task: Task) -> Lesson | None:
        return self.named(task, "unit01")

    def named(self, task: Task, lesson_id: str) -> Lesson | None:
        self.asked.append(lesson_id)
        if self.missing or not lesson_id.startswith("unit"):
            return None
        return self._lesson(task, lesson_id, file=Path("/lessons"))

    def on_card(self, task: Task, paths: Any) -> Lesson | None:
        found = sorted(one for one in paths if one.startswith(f"/{task.app_id}/{task.task_id}/"))
        if not found:
            return None
        return self._lesson(task, found[0].split("/")[4], file=None)

    def encoded(self, clip: Clip) -> EncodedClip | None:
        return clip_of(clip.duration_ms or 0) if clip.file else None

    async def prepare(self, lesson: Lesson) -> None:
        del lesson
        await asyncio.sleep(0)

    def _lesson(self, task: Task, lesson_id: str, file: Path | None) -> Lesson:
        folder = f"/{task.app_id}/{task.task_id}/lessons/{lesson_id}"
        clips = tuple(
            Clip(
                name=f"{index:02}.mp3",
                path=f"{folder}/{index:02}.mp3",
                expected_text=f"sentence {index}",
                duration_ms=duration_ms,
                file=file,
            )
            for index, duration_ms in enumerate(self.durations_ms, 1)
        )
        return Lesson(app_id=task.app_id, task_id=task.task_id, lesson_id=lesson_id, clips=clips)


class Notebook:
    """A recorder in memory."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.starts: list[SessionStart] = []
        self.recordings: list[NotedRecording] = []
        self.left: Unfinished | None = None

    def begin(self, start: SessionStart) -> NotedRecording:
        self.starts.append(start)
        self.recordings.append(NotedRecording(broken=self.broken))
        return self.recordings[-1]

    def resume(self, unfinished: Unfinished) -> NotedRecording:
        self.left = None
        self.recordings.append(NotedRecording(unfinished.session_id))
        return self.recordings[-1]

    def unfinished(self, device_id: str) -> Unfinished | None:
        if self.broken:
            raise OSError(device_id)
        return self.left


class NoNotebook(Notebook):
    """A recorder that cannot even begin."""

    def begin(self, start: SessionStart) -> NotedRecording:
        raise OSError(start)


def prompt_of(prompt: Prompt, locale: str) -> EncodedPrompt | None:
    return EncodedPrompt(prompt=prompt, text=f"<{prompt.value}.{locale}>", clip=clip_of(600))


class Bench:
    """A toy with practice on it."""

    def __init__(
        self,
        *,
        card: Mapping[str, int] | None = None,
        notebook: Notebook | None = None,
        shelf: Shelf | None = None,
        prompts: Any = prompt_of,
        apps: Apps = APPS,
        connect: bool = True,
        **card_options: bool,
    ) -> None:
        self.notebook = notebook or Notebook()
        self.shelf = shelf or Shelf()
        self.card = None if card is None else FakeCard(card, **card_options)
        self.toy = Toy(self.card)
        make: Any = practice_factory
        factory = make(apps, self.shelf, self.notebook, prompts, chance=random.Random(7))
        self.practice = factory(self.toy)
        self.loop = asyncio.get_running_loop()
        if connect:
            self.toy.connect(self.practice)

    @property
    def record(self) -> NotedRecording:
        return self.notebook.recordings[-1]

    @property
    def prompts_said(self) -> list[str]:
        return [what for what in self.toy.played() if what.startswith("<")]

    @property
    def clips(self) -> list[str]:
        return [what for what in self.toy.played() if not what.startswith("<")]

    @property
    def gaps_ms(self) -> list[int]:
        starts = [one.at_s for one in self.toy.heard if one.kind == "play" and one.what[0] != "<"]
        return [round((after - before) * 1000) for before, after in pairwise(starts)]


LESSON = {f"/english_learning/shadowing/lessons/unit01/{n:02}.mp3": ms for n, ms in
          enumerate((960, 1980, 960), 1)}  # fmt: skip
STREAMED = ["sentence 1", "sentence 2", "sentence 3"]
# stream: frames + 200 ms until `tts stop`, then 1.2 times the clip
STREAM_GAPS = [960 + 200 + 1152, 1980 + 200 + 2376]


def test_practice_is_what_the_gateway_expects() -> None:
    """It has every method of the port."""

    async def play() -> None:
        practice: Practice = Bench().practice
        for name in ("failed", "opened", "closed", "audio", "aborted", "start_task"):
            assert callable(getattr(practice, name))
        assert practice.busy is False
        await asyncio.sleep(0)

    run(play)


@pytest.mark.parametrize("starting", ["start reading", "[voice_entry]Start reading!",
                                      "[app_task]shadowing", "[app_task]english_learning|shadowing",
                                      "START_APP_TASK"])  # fmt: skip
def test_every_way_to_start_leads_through_the_lesson(starting: str) -> None:
    """A phrase, a button, a task by name, a command: three clips, one greeting, chat."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        if starting == "START_APP_TASK":
            bench.practice.start_task("english_learning", "shadowing", {})
        else:
            bench.toy.say(starting)
        await asyncio.sleep(1)
        assert (bench.practice.mode, bench.practice.busy) == (Mode.SHADOWING, True)
        await asyncio.sleep(30)
        assert (bench.clips, bench.gaps_ms) == (STREAMED, STREAM_GAPS)
        assert bench.prompts_said == ["<greeting.en>"]
        assert (bench.practice.mode, bench.practice.busy) == (Mode.CHAT, False)
        (start,) = bench.notebook.starts
        assert (start.backend, start.lesson_id, start.clip_count) == ("stream", "unit01", 3)
        assert start.assessment == {"enabled": True, "methods": []}
        assert bench.record.named("end") == [(EndReason.LIST_COMPLETED,)]

    run(play)


def test_a_card_plays_the_same_lesson() -> None:
    """With the card's tools the clips come from it, timed by the device's own events."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        assert bench.clips == sorted(LESSON)
        assert bench.notebook.starts[0].backend == "sd"
        assert bench.prompts_said == ["<greeting.en>"]
        assert [turn.duration_ms for turn in bench.record.turns] == [990, 2010, 990]
        assert [turn.window_ms for turn in bench.record.turns] == [1188, 2412, 1188]

    run(play)


def learner(bench: Bench, said: str) -> None:
    """Say it in every window."""
    if bench.practice.mode is Mode.SHADOWING:
        bench.toy.speak()
        bench.toy.say(said)


@pytest.mark.parametrize("said", ["sentence 1", "quite wrong", "", "\ud83d", "start reading", "{"])
@pytest.mark.parametrize("card", [None, LESSON])
def test_whatever_is_said_the_same_clips_come_at_the_same_time(
    said: str, card: Mapping[str, int] | None
) -> None:
    """Right, wrong, silent, unreadable or the entry phrase: next clip, never the same again."""

    async def play() -> None:
        silent, spoken = Bench(card=card), Bench(card=card)
        await asyncio.sleep(1)
        for bench in (silent, spoken):
            bench.toy.say("start reading")
        for _ in range(30):
            await asyncio.sleep(0.5)
            if said:
                learner(spoken, said)
        await asyncio.sleep(20)
        assert spoken.clips == silent.clips
        assert len(silent.clips) == len(set(silent.clips)) == 3
        assert spoken.gaps_ms == silent.gaps_ms

    run(play)


@pytest.mark.parametrize("notebook", [Notebook(broken=True), NoNotebook()])
def test_a_broken_recorder_stops_nothing(notebook: Notebook) -> None:
    """Beginning, writing and resuming may all fail; the lesson goes on to its greeting."""

    async def play() -> None:
        bench = Bench(notebook=notebook)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        assert (bench.clips, bench.gaps_ms) == (STREAMED, STREAM_GAPS)
        assert bench.prompts_said == ["<greeting.en>"]

    run(play)


def test_a_recogniser_that_fails_stops_nothing() -> None:
    """Recognition runs beside the clock: what it raises ends in itself."""

    async def play() -> None:
        bench = Bench()

        async def recognise() -> None:
            await asyncio.sleep(1.5)
            reason = "the model is gone"
            raise RuntimeError(reason)

        await asyncio.sleep(1)
        bench.toy.say("start reading")
        recogniser = asyncio.create_task(recognise())
        await asyncio.sleep(30)
        assert isinstance(recogniser.exception(), RuntimeError)
        assert (bench.clips, bench.gaps_ms) == (STREAMED, STREAM_GAPS)

    run(play)


@pytest.mark.parametrize("card", [None, LESSON])
@pytest.mark.parametrize("at_s", [0.5, 1.6, 2.6])
@pytest.mark.parametrize("phrase", ["stop reading", "退出跟读。", "[voice_entry]Stop reading"])
def test_the_exit_phrase_leaves_at_once(
    at_s: float, phrase: str, card: Mapping[str, int] | None
) -> None:
    """Mid-clip and mid-window: chat at once, no greeting, no further clip."""

    async def play() -> None:
        bench = Bench(card=card)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(at_s)
        clips = len(bench.clips)
        bench.toy.say(phrase)
        assert (bench.practice.mode, bench.practice.busy) == (Mode.CHAT, False)
        assert bench.record.notes[-1] == ("end", EndReason.EXIT_PHRASE)
        await asyncio.sleep(60)
        assert len(bench.clips) == clips
        assert bench.prompts_said == []
        assert bench.card is None or bench.card.playing is None

    run(play)


@pytest.mark.parametrize("at_s", [0.5, 1.6])
def test_a_stop_never_greets(at_s: float) -> None:
    """Abort, mid-clip or mid-window: the task ends as stopped, in silence."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(at_s)
        bench.toy.abort("wake_word_detected")
        bench.toy.say("你好小智")
        assert bench.record.named("end") == [(EndReason.PLAY_STOPPED,)]
        await asyncio.sleep(60)
        assert bench.prompts_said == []
        assert len(bench.clips) == 1

    run(play)


def test_stopping_the_card_ends_the_task_in_silence() -> None:
    """`[skill_event]audio.stopped` from the device: no greeting."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(0.5)
        bench.toy.say("[skill_event]audio.stopped|english_learning|shadowing|400")
        assert bench.record.named("end") == [(EndReason.PLAY_STOPPED,)]
        await asyncio.sleep(30)
        assert (bench.prompts_said, len(bench.clips)) == ([], 1)

    run(play)


def test_another_task_preempts_without_a_greeting() -> None:
    """The first ends as preempted; the second runs to its own greeting, undisturbed by the stop."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(0.5)
        bench.practice.start_task("english_learning", "shadowing", {})
        await asyncio.sleep(30)
        ends = [one.named("end") for one in bench.notebook.recordings]
        assert ends == [[(EndReason.PREEMPTED,)], [(EndReason.LIST_COMPLETED,)]]
        assert bench.prompts_said == ["<greeting.en>"]

    run(play)


@pytest.mark.parametrize(
    "event",
    [
        "[skill_event]audio.completed|english_learning|shadowing|1",
        "[skill_event]audio.completed|other_app|shadowing|1000",
        "[skill_event]audio.stopped|english_learning|repeater|1000",
        "[skill_event]audio.completed|english_learning|shadowing|oops",
    ],
)
def test_forged_and_repeated_events_open_no_window(event: str) -> None:
    """In a window, and from a stock device at any time, an event of a card means nothing."""

    async def play() -> None:
        honest, forged = Bench(card=LESSON), Bench(card=LESSON)
        stock = Bench()
        await asyncio.sleep(1)
        for bench in (honest, forged, stock):
            bench.toy.say("start reading")
        await asyncio.sleep(1.5)  # the first window is open, or (streamed) the clip plays
        for bench in (forged, stock):
            for _ in range(3):
                bench.toy.say(event)
        await asyncio.sleep(30)
        assert forged.gaps_ms == honest.gaps_ms
        assert stock.gaps_ms == STREAM_GAPS
        assert forged.prompts_said == ["<greeting.en>"]

    run(play)


def test_an_event_of_another_task_does_not_end_the_clip() -> None:
    """App and task must be those of the clip that plays."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(0.3)
        bench.toy.say("[skill_event]audio.completed|english_learning|repeater|300")
        bench.toy.say("[skill_event]audio.stopped|story_time|retelling|300")
        await asyncio.sleep(30)
        assert [turn.duration_ms for turn in bench.record.turns] == [990, 2010, 990]

    run(play)


def test_a_card_that_says_nothing_does_not_stop_the_lesson() -> None:
    """No event ever: the watchdog stands in, the known length opens the window."""

    async def play() -> None:
        bench = Bench(card=LESSON, mute=True)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(60)
        assert bench.gaps_ms == [960 + 5000 + 1152, 1980 + 5000 + 2376]
        assert [turn.duration_ms for turn in bench.record.turns] == [960, 1980, 960]

    run(play)


def test_a_reply_that_is_lost_does_not_matter() -> None:
    """The play call is never answered and never runs: every step still has its window."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        bench.toy.deaf_tools.add("self.mp3.play")
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(60)
        assert [turn.step_index for turn in bench.record.turns] == [0, 1, 2]
        assert bench.prompts_said == ["<greeting.en>"]

    run(play)


def test_a_card_that_refuses_does_not_stop_the_lesson() -> None:
    """Refused at once: the window opens at once, with the file's length."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        bench.toy.failing_tools.add("self.mp3.play")
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(60)
        assert [turn.window_ms for turn in bench.record.turns] == [1152, 2376, 1152]

    run(play)


@pytest.mark.parametrize("cards", ["empty", "deaf list", "refused list"])
def test_a_card_without_the_lesson_is_streamed_to(cards: str) -> None:
    """What the card does not list comes from the server."""

    async def play() -> None:
        bench = Bench(card={} if cards == "empty" else LESSON)
        if cards == "deaf list":
            bench.toy.deaf_tools.add("self.mp3.get_list")
        elif cards == "refused list":
            bench.toy.failing_tools.add("self.mp3.get_list")
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(40)
        assert bench.clips == STREAMED

    run(play)


def test_a_task_waits_for_the_tools_but_not_for_ever() -> None:
    """Started before `tools/list`, it takes the card; without any list it streams after 3 s."""

    async def play() -> None:
        early, never = Bench(card=LESSON), Bench(connect=False)
        early.toy.say("start reading")
        never.toy._practice = never.practice
        never.practice.opened()
        began_s = never.loop.time()
        never.toy.say("start reading")
        await asyncio.sleep(30)
        assert early.notebook.starts[0].backend == "sd"
        assert never.clips == STREAMED
        assert never.toy.times("play")[0] - began_s == pytest.approx(TOOLS_WAIT_S, abs=0.1)

    run(play)


def test_without_a_lesson_the_toy_says_so() -> None:
    """Nothing to play: it is said, and the connection stays in chat."""

    async def play() -> None:
        bench = Bench(shelf=Shelf(missing=True))
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(5)
        assert bench.prompts_said == ["<no_lesson.en>"]
        assert (bench.practice.busy, bench.notebook.starts) == (False, [])

    run(play)


@pytest.mark.parametrize("card", [None, LESSON])
def test_a_lost_connection_goes_on_at_its_clip(card: Mapping[str, int] | None) -> None:
    """The session is told that it was lost, and a new connection resumes it at the second clip."""

    async def play() -> None:
        bench = Bench(card=card)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(2.9)
        bench.toy.drop()
        assert bench.record.notes[-1] == ("disconnected", 1)
        assert [turn.step_index for turn in bench.record.turns] == [0]

        again = Bench(card=card, connect=False)
        again.notebook.left = Unfinished(
            session_id="session-1",
            start=bench.notebook.starts[0],
            next_step=1,
            disconnected_at_s=0.0,
        )
        again.toy.connect(again.practice)
        await asyncio.sleep(30)
        assert again.clips == (sorted(LESSON) if card else STREAMED)[1:]
        assert again.record.session_id == "session-1"
        assert [turn.step_index for turn in again.record.turns] == [1, 2]
        assert again.record.named("end") == [(EndReason.LIST_COMPLETED,)]
        assert again.notebook.starts == []

    run(play)


def test_a_lesson_that_has_changed_is_not_resumed() -> None:
    """Other clips than before: the session is left to expire, the connection chats."""

    async def play() -> None:
        bench = Bench(connect=False, shelf=Shelf(960))
        start = SessionStart(
            device_id=bench.toy.device_id,
            app_id="english_learning",
            task_id="shadowing",
            mode=Mode.SHADOWING,
            lesson_id="unit01",
            clip_count=3,
        )
        bench.notebook.left = Unfinished(
            session_id="s", start=start, next_step=1, disconnected_at_s=0.0
        )
        bench.toy.connect(bench.practice)
        await asyncio.sleep(10)
        assert (bench.clips, bench.practice.busy, bench.notebook.recordings) == ([], False, [])

    run(play)


@pytest.mark.parametrize(
    ("detected", "reason"),
    [
        ("[voice_entry]start reading", EndReason.PREEMPTED),
        ("[app_task]chat", EndReason.PREEMPTED),
        ("stop reading", EndReason.EXIT_PHRASE),
    ],
)
def test_what_comes_before_a_resume_ends_the_session_that_would_go_on(
    detected: str, reason: EndReason
) -> None:
    """Else it stays open, and the next connection resumes what somebody has already left."""

    async def play() -> None:
        bench = Bench(connect=False)
        start = SessionStart(
            device_id=bench.toy.device_id,
            app_id="english_learning",
            task_id="shadowing",
            mode=Mode.SHADOWING,
        )
        bench.notebook.left = Unfinished(
            session_id="lost", start=start, next_step=1, disconnected_at_s=0.0
        )
        bench.toy.connect(bench.practice)
        bench.toy.say(detected)
        lost = bench.notebook.recordings[0]
        assert (lost.session_id, lost.notes) == ("lost", [("end", reason)])

    run(play)


@pytest.mark.parametrize("at_s", [0.001, 0.5, 1.6, 20.0])
@pytest.mark.parametrize("reason", [CloseReason.DEVICE_LEFT, CloseReason.REPLACED])
def test_nothing_happens_after_the_connection_is_gone(at_s: float, reason: CloseReason) -> None:
    """No clip, prompt or note follows; a task that ran is told once."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(at_s)
        bench.toy.drop(reason)
        heard = len(bench.toy.heard)
        notes = [list(one.notes) for one in bench.notebook.recordings]
        await asyncio.sleep(60)
        assert len([one for one in bench.toy.heard[heard:] if one.what != "self.mp3.stop"]) == 0
        assert [one.notes for one in bench.notebook.recordings] == notes

    run(play)


@pytest.mark.parametrize("card", [None, {"/english_learning/repeater/lessons/unit01/01.mp3": 960}])
def test_the_repeater_greets_exactly_once(card: Mapping[str, int] | None) -> None:
    """A file three times, one greeting, chat; nothing of it is recorded."""

    async def play() -> None:
        bench = Bench(card=card)
        await asyncio.sleep(1)
        bench.toy.say("start listening")
        await asyncio.sleep(1)
        assert bench.practice.mode is Mode.PLAY_AUDIO
        await asyncio.sleep(30)
        assert bench.prompts_said == ["<greeting.en>"]
        assert len(bench.clips) == (1 if card else 3)
        assert bench.notebook.starts == []
        bench.toy.say("[skill_event]audio.completed|english_learning|repeater|2880")
        await asyncio.sleep(30)
        assert bench.prompts_said == ["<greeting.en>"]

    run(play)


@pytest.mark.parametrize("how", ["abort", "exit", "chat", "card"])
def test_a_stopped_repeater_never_greets(how: str) -> None:
    """Abort, exit phrase, `[app_task]chat`, or a stop on the device."""

    async def play() -> None:
        bench = Bench(card={"/english_learning/repeater/lessons/unit01/01.mp3": 960})
        await asyncio.sleep(1)
        bench.toy.say("start listening")
        await asyncio.sleep(1)
        if how == "abort":
            bench.toy.abort()
        else:
            bench.toy.say(
                {
                    "exit": "stop listening",
                    "chat": "[app_task]chat",
                    "card": "[skill_event]audio.stopped|english_learning|repeater|500",
                }[how]
            )
        assert bench.practice.busy is False
        await asyncio.sleep(30)
        assert bench.prompts_said == []

    run(play)


def test_the_repeater_finds_something_to_play() -> None:
    """The task's lessons, else what it played last, else the first file of the card; or by name."""

    async def play() -> None:
        card = {"/a.mp3": 500, "/music/b.mp3": 500, "/music/c.mp3": 500}
        bench = Bench(card=card)
        await asyncio.sleep(1)
        for starting in ("[app_task]repeater", "[app_task]repeater|c.mp3", "[app_task]repeater"):
            bench.toy.say(starting)
            await asyncio.sleep(0.5)
            bench.toy.abort()
        assert bench.clips == ["/a.mp3", "/music/c.mp3", "/music/c.mp3"]

    run(play)


def test_a_lesson_can_be_asked_for() -> None:
    """`[app_task]shadowing|unit02`, and a command with `lesson_id`; a path is no lesson."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("[app_task]shadowing|unit02")
        await asyncio.sleep(1)
        bench.practice.start_task("english_learning", "shadowing", {"lesson_id": "unit03", "x": 1})
        await asyncio.sleep(1)
        bench.practice.start_task("english_learning", "shadowing", {"lesson_id": "../etc"})
        await asyncio.sleep(1)
        assert [start.lesson_id for start in bench.notebook.starts] == ["unit02", "unit03"]
        assert bench.shelf.asked == ["unit02", "unit03"]

    run(play)


@pytest.mark.parametrize("starting", ["[app_task]dancing", "command", "[app_task]shadowing\x00"])
def test_an_unknown_task_changes_nothing(starting: str) -> None:
    """What runs goes on."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(0.5)
        if starting == "command":
            bench.practice.start_task("english_learning", "dancing", {})
        else:
            bench.toy.say(starting)
        await asyncio.sleep(30)
        assert (bench.clips, bench.gaps_ms) == (STREAMED, STREAM_GAPS)

    run(play)


def test_folders_are_made_for_every_app_in_the_background() -> None:
    """After the list of tools, one after the other; it disturbs neither list nor task."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(5)
        assert bench.card is not None
        assert bench.card.folders == {
            "/english_learning/repeater",
            "/english_learning/shadowing",
            "/chinese_reading/follow_read",
            "/story_time/retelling",
        }

    run(play)


@pytest.mark.parametrize("trouble", ["broken", "deaf"])
def test_a_card_that_cannot_be_written_changes_nothing_else(trouble: str) -> None:
    """No folder is made, and the lesson plays."""

    async def play() -> None:
        bench = Bench(card=LESSON, broken=trouble == "broken")
        if trouble == "deaf":
            bench.toy.deaf_tools.add("self.sd.ensure_app")
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        assert len(bench.clips) == 3
        assert bench.card is not None
        assert bench.card.folders == set()

    run(play)


def test_only_the_tools_of_the_task_are_called(tmp_path: Path) -> None:
    """A task whose allow-list has no player streams, though the card could play."""

    async def play() -> None:
        (tmp_path / "a.yaml").write_text(
            "app_id: english_learning\ntasks:\n"
            "  - {task_id: shadowing, mode: SHADOWING, tools: [], entry_phrases: [go]}\n"
        )
        bench = Bench(card=LESSON, apps=load_apps([tmp_path]))
        await asyncio.sleep(1)
        bench.toy.say("go")
        await asyncio.sleep(30)
        assert bench.clips == STREAMED
        assert {one.what for one in bench.toy.heard if one.kind == "tool"} == {"self.sd.ensure_app"}

    run(play)


@pytest.mark.parametrize("app_task", ["english_learning|shadowing", "chinese_reading|follow_read",
                                      "story_time|retelling", "story_time|check_in",
                                      "english_learning|repeater"])  # fmt: skip
def test_no_verdict_is_ever_sent_or_written(app_task: str) -> None:
    """In deferred modes nothing that leaves the server judges, whatever the learner says."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say(f"[app_task]{app_task}")
        for index in range(200):
            await asyncio.sleep(0.5)
            if bench.practice.busy:
                bench.toy.speak()
                bench.toy.say(f"sentence {index % 3}")
        sent = " ".join(one.what for one in bench.toy.heard)
        written = " ".join(repr(one.notes) for one in bench.notebook.recordings)
        assert not VERDICT.search(sent + written)
        assert (
            bench.prompts_said.count("<greeting.en>") + bench.prompts_said.count("<greeting.zh-CN>")
            == 1
        )

    run(play)


def test_a_path_is_never_what_was_to_be_said() -> None:
    """`expected_text` comes with the clip or is null; `prompt_text` is the path."""

    async def play() -> None:
        bench = Bench(card=LESSON)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        for turn, path in zip(bench.record.turns, sorted(LESSON), strict=True):
            assert turn.prompt_text == path
            assert turn.expected_text == f"sentence {turn.step_index + 1}"

    run(play)


def test_a_retelling_has_one_clip_and_one_window() -> None:
    """One long clip, one window of its ratio, whatever else lies in the folder."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("tell a story")
        await asyncio.sleep(30)
        assert bench.clips == ["sentence 1"]
        assert bench.record.named("asked")[0][1] == "retell"
        assert [turn.window_ms for turn in bench.record.turns] == [1440]

    run(play)


def test_the_rubric_of_a_task_goes_with_its_sessions(tmp_path: Path) -> None:
    """Declared in the app's file, it begins each session; a task without one names none."""

    async def play() -> None:
        (tmp_path / "own.yaml").write_text(
            "app_id: own\ntasks: [{task_id: diary, mode: SHADOWING, activity: check_in,"
            " rubric: {id: diary, version: v1.0}}, {task_id: free, mode: SHADOWING}]\n"
        )
        bench = Bench(apps=load_apps([tmp_path]))
        await asyncio.sleep(1)
        for task in ("diary", "free"):
            bench.practice.start_task("own", task, {})
            await asyncio.sleep(1)
        rubrics = [start.rubric for start in bench.notebook.starts]
        assert rubrics == [{"id": "diary", "version": "v1.0"}, None]

    run(play)


def test_a_check_in_records_one_window_without_a_clip() -> None:
    """The microphone is opened if it is not, and after a minute the toy says thanks."""

    async def play() -> None:
        bench = Bench()
        bench.toy.listening = None
        await asyncio.sleep(1)
        bench.toy.say("check in")
        await asyncio.sleep(30)
        bench.toy.speak(10)
        await asyncio.sleep(32)
        assert bench.toy.times("mic")
        (turn,) = bench.record.turns
        assert (turn.window_ms, turn.heard, len(turn.packets)) == (60_000, True, 10)
        assert bench.prompts_said == ["<greeting.en>"]

    run(play)


def test_chat_gives_its_short_answer() -> None:
    """Without a model: one answer to what is typed or said, and none to silence."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("tell me a joke")
        bench.toy.say("now")
        await asyncio.sleep(2)
        bench.practice.listen_stopped()
        assert bench.prompts_said == ["<fixed_answer.en>"]
        bench.toy.speak()
        bench.practice.listen_stopped()
        await asyncio.sleep(2)
        assert bench.prompts_said == ["<fixed_answer.en>"] * 2

    run(play)


def test_translation_answers_until_somebody_leaves() -> None:
    """It is a mode with an exit phrase, not assessed and not recorded."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("start translating")
        await asyncio.sleep(1)
        assert bench.practice.mode is Mode.TRANSLATE
        bench.toy.say("good morning")
        await asyncio.sleep(2)
        bench.toy.abort()
        assert bench.practice.mode is Mode.TRANSLATE
        bench.toy.say("stop translating")
        assert bench.practice.mode is Mode.CHAT
        await asyncio.sleep(2)
        assert bench.prompts_said == ["<fixed_answer.en>"]
        assert bench.notebook.starts == []

    run(play)


@pytest.mark.parametrize("prompts", [lambda *_: None, lambda *_: 1 / 0])
def test_without_a_voice_the_toy_shows_what_it_would_say(prompts: Any) -> None:
    """No clip for a prompt, or a fault in finding it: its text is shown."""

    async def play() -> None:
        bench = Bench(prompts=prompts)
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        shown = [one.what for one in bench.toy.heard if one.kind == "show"]
        assert len(shown) == 2
        assert bench.practice.busy is False

    run(play)


def test_an_error_ends_the_task_and_nothing_else() -> None:
    """What the gateway reports as failed ends as `error`; another task can start."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(0.5)
        bench.practice.failed()
        assert bench.record.named("end") == [(EndReason.ERROR,)]
        bench.toy.say("start reading")
        await asyncio.sleep(30)
        assert bench.record.named("end") == [(EndReason.LIST_COMPLETED,)]

    run(play)


def test_a_lesson_that_cannot_be_looked_up_leaves_chat() -> None:
    """A broken disk at the start of a task ends the start, not the connection."""

    async def play() -> None:
        bench = Bench()
        bench.shelf.durations_ms = None
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        await asyncio.sleep(5)
        assert (bench.practice.busy, bench.practice.mode) == (False, Mode.CHAT)

    run(play)


def test_nothing_a_child_said_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs name tasks and reasons; the words stay in the record."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("start reading")
        for _ in range(20):
            await asyncio.sleep(0.5)
            bench.toy.say("marmalade secret")
        bench.toy.say("[app_task]x|marmalade secret")
        await asyncio.sleep(20)

    run(play)
    logged = "".join(capsys.readouterr())
    assert "marmalade" not in logged
    assert json.dumps("task.begin")[1:-1] in logged


def test_a_retelling_is_resumed_though_its_folder_holds_more() -> None:
    """One step was begun, and one step is what is found again."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.toy.say("tell a story")
        await asyncio.sleep(1.5)
        bench.toy.drop()
        again = Bench(connect=False)
        again.notebook.left = Unfinished(
            session_id="session-1",
            start=bench.notebook.starts[0],
            next_step=0,
            disconnected_at_s=0.0,
        )
        again.toy.connect(again.practice)
        await asyncio.sleep(30)
        assert again.record.named("end") == [(EndReason.LIST_COMPLETED,)]

    run(play)


def test_nobody_answers_while_a_task_is_prepared() -> None:
    """A voice between the entry phrase and the first clip gets no answer of the chat."""

    async def play() -> None:
        bench = Bench(connect=False)
        bench.toy._practice = bench.practice
        bench.practice.opened()
        bench.toy.say("start reading")
        bench.toy.speak()
        bench.practice.listen_stopped()
        bench.toy.say("hello?")
        await asyncio.sleep(2)
        assert bench.toy.heard == []
        bench.toy.say("stop reading")
        await asyncio.sleep(10)
        assert (bench.practice.busy, bench.toy.heard) == (False, [])

    run(play)


@pytest.mark.parametrize(
    ("arguments", "clip", "times"),
    [
        ({"name": "02.mp3", "loop": 2}, "sentence 2", 2),
        ({"name": "03"}, "sentence 3", 3),
        ({"loop": 0}, "sentence 1", 3),
        ({"name": 7, "loop": "many"}, "sentence 1", 3),
    ],
)
def test_a_command_names_the_file_and_how_often(
    arguments: dict[str, Any], clip: str, times: int
) -> None:
    """`START_APP_TASK` with `name` and `loop`; what cannot be used is left out."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.practice.start_task("english_learning", "repeater", arguments)
        await asyncio.sleep(30)
        assert bench.clips == [clip] * times

    run(play)


def test_a_file_that_is_nowhere_is_said_to_be_missing() -> None:
    """Nothing else is played in its place."""

    async def play() -> None:
        bench = Bench()
        await asyncio.sleep(1)
        bench.practice.start_task("english_learning", "repeater", {"name": "99.mp3"})
        await asyncio.sleep(30)
        assert (bench.clips, bench.prompts_said) == ([], ["<no_lesson.en>"])

    run(play)
