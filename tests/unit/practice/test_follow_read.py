import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.ports import SkillEvent
from etude.practice.evidence import Evidence
from etude.practice.follow_read import FollowRead, Plan, Step, resolve_listen_ratio
from etude.practice.follow_read_moves import State
from etude.practice.players import ClipEnd, Outcome
from etude.practice.records import Clip, EndReason, Mode
from etude.practice.tasks import Activity, Task
from etude.practice.windows import window_ms
from etude.testing.noted import NotedRecording
from etude.testing.toy import SILENCE, VOICE
from etude.testing.virtual_time import run

TASK = Task(
    app_id="reading",
    task_id="aloud",
    mode=Mode.SHADOWING,
    activity=Activity.FOLLOW_READ,
    enter_prompt="Listen, then read it after me.",
)


class ScriptedPlayer:
    """A player whose clips end when their time is over, or when the test says so."""

    backend = "sd"

    def __init__(self, *, by_hand: bool = False) -> None:
        self.by_hand = by_hand
        self.begun: list[tuple[float, str]] = []
        self.stops = 0
        self.ended: Callable[[ClipEnd], None] = lambda _: None

    def play(self, task: Task, clip: Clip, ended: Any, repeat: int = 1) -> None:
        del task, repeat
        loop = asyncio.get_running_loop()
        self.begun.append((loop.time(), clip.name))
        self.ended = ended
        if not self.by_hand:
            duration_ms = clip.duration_ms or 0
            end = ClipEnd(Outcome.PLAYED, duration_ms)
            loop.call_later(duration_ms / 1000, ended, end)

    def stop(self) -> None:
        self.stops += 1

    def skill_event(self, event: SkillEvent) -> None:
        raise AssertionError(event)


class BrokenPlayer(ScriptedPlayer):
    """A player that cannot play at all."""

    def play(self, task: Task, clip: Clip, ended: Any, repeat: int = 1) -> None:
        super().play(task, clip, ended, repeat)
        raise OSError


def lesson(*durations_ms: int) -> tuple[Step, ...]:
    return tuple(
        Step(
            clip=Clip(
                name=f"{index:02}.mp3",
                path=f"/reading/aloud/lessons/u1/{index:02}.mp3",
                duration_ms=duration_ms,
            ),
            expected_text=f"sentence {index}",
        )
        for index, duration_ms in enumerate(durations_ms, 1)
    )


class Stage:
    """A follow-read, its player and its record."""

    def __init__(
        self,
        *durations_ms: int,
        player: ScriptedPlayer | None = None,
        first: int = 0,
        ratio: float = 1.2,
        task: Task = TASK,
        steps: tuple[Step, ...] | None = None,
        broken: bool = False,
    ) -> None:
        self.player = player or ScriptedPlayer(by_hand=False)
        self.record = NotedRecording(broken=broken)
        self.reasons: list[EndReason] = []
        self.turns_when_finished = -1
        plan = Plan(task=task, steps=steps or lesson(*durations_ms), ratio=ratio, first=first)
        evidence = Evidence(self.record, task.activity.signal)
        self.follow = FollowRead(plan, self.player, evidence, self._finished)
        self.loop = asyncio.get_running_loop()
        self.began_s = self.loop.time()

    def _finished(self, reason: EndReason) -> None:
        self.reasons.append(reason)
        self.turns_when_finished = len(self.record.turns)

    @property
    def starts_ms(self) -> list[int]:
        return [round((at_s - self.began_s) * 1000) for at_s, _ in self.player.begun]

    @property
    def clips(self) -> list[str]:
        return [name for _, name in self.player.begun]

    def say(self, text: str) -> None:
        self.follow.recognised(text, self.loop.time())

    def speak(self, packet: bytes = VOICE) -> None:
        self.follow.audio(packet, self.loop.time())


def test_clips_follow_each_other_on_the_clock_alone() -> None:
    """Clip, 1.2 times its length, next clip; then the end of the list, once."""

    async def play() -> None:
        stage = Stage(1000, 2000, 500)
        stage.follow.begin()
        await asyncio.sleep(60)
        assert stage.starts_ms == [0, 2200, 6600]
        assert stage.reasons == [EndReason.LIST_COMPLETED]
        assert [turn.window_ms for turn in stage.record.turns] == [1200, 2400, 800]
        assert [turn.duration_ms for turn in stage.record.turns] == [1000, 2000, 500]

    run(play)


@pytest.mark.parametrize("text", ["", "quite wrong", "sentence 1", "\ud800", "x" * 100_000, "{"])
@pytest.mark.parametrize("early_s", [0.01, 0.5, 1.1])
def test_nothing_that_is_said_moves_the_clock(text: str, early_s: float) -> None:
    """Wrong, right, silent or unreadable: the next clip begins when the window's time is over."""

    async def play() -> None:
        stage = Stage(1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(1 + early_s)
        stage.speak()
        stage.say(text)
        await asyncio.sleep(60)
        assert (stage.starts_ms, stage.clips) == ([0, 2200], ["01.mp3", "02.mp3"])
        assert stage.reasons == [EndReason.LIST_COMPLETED]

    run(play)


@given(
    durations_ms=st.lists(st.integers(1, 600_000), min_size=1, max_size=6),
    ratio=st.floats(0.1, 4),
    said=st.lists(st.tuples(st.floats(0, 4_000), st.text(max_size=10)), max_size=20),
)
def test_the_clock_is_the_same_whatever_is_said_and_when(
    durations_ms: list[int], ratio: float, said: list[tuple[float, str]]
) -> None:
    """For any lesson, ratio and speech, clips begin at the sums of lengths and windows."""

    async def play() -> None:
        stage = Stage(*durations_ms, ratio=ratio)
        stage.follow.begin()
        for at_s, text in said:
            stage.loop.call_later(at_s, stage.say, text)
            stage.loop.call_later(at_s, stage.speak)
        lasts_ms = [duration + window_ms(duration, ratio) for duration in durations_ms]
        await asyncio.sleep(sum(lasts_ms) / 1000 + 5)
        due = [sum(lasts_ms[:index]) for index in range(len(lasts_ms))]
        assert all(abs(one - other) <= 1 for one, other in zip(stage.starts_ms, due, strict=True))
        assert [turn.step_index for turn in stage.record.turns] == list(range(len(durations_ms)))

    run(play)


def test_a_record_that_fails_stops_nothing() -> None:
    """Every call of the recorder raises, and all clips play all the same."""

    async def play() -> None:
        stage = Stage(1000, 1000, 1000, broken=True)
        stage.follow.begin()
        await asyncio.sleep(60)
        assert stage.starts_ms == [0, 2200, 4400]
        assert stage.reasons == [EndReason.LIST_COMPLETED]

    run(play)


def test_a_player_that_fails_stops_nothing() -> None:
    """A clip that cannot be played has its window all the same, and the next one follows."""

    async def play() -> None:
        stage = Stage(1000, 1000, player=BrokenPlayer(by_hand=True))
        stage.follow.begin()
        await asyncio.sleep(60)
        assert stage.starts_ms == [0, 1200]
        assert stage.reasons == [EndReason.LIST_COMPLETED]

    run(play)


def test_the_last_of_several_recognitions_stays() -> None:
    """One turn a step, with what was recognised last in its window."""

    async def play() -> None:
        stage = Stage(1000)
        stage.follow.begin()
        await asyncio.sleep(1.1)
        stage.say("sentence")
        stage.say("sentence one")
        await asyncio.sleep(10)
        assert [turn.asr_text for turn in stage.record.turns] == ["sentence one"]

    run(play)


def test_what_is_said_while_a_clip_plays_is_nobodys() -> None:
    """Speech during the clip is in no turn, and silence leaves a turn with null."""

    async def play() -> None:
        stage = Stage(1000)
        stage.follow.begin()
        await asyncio.sleep(0.5)
        stage.say("too early")
        stage.speak()
        await asyncio.sleep(10)
        (turn,) = stage.record.turns
        assert (turn.asr_text, turn.heard, turn.packets) == (None, False, ())
        assert stage.record.named("window_closed") == [(0, "read_aloud", 1200, False)]

    run(play)


def test_audio_that_is_late_is_filed_into_its_own_step() -> None:
    """Packets and text until 400 ms after the window belong to it, though the next clip plays."""

    async def play() -> None:
        stage = Stage(1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(2.5)
        assert stage.clips == ["01.mp3", "02.mp3"]
        stage.speak()
        stage.say("late")
        await asyncio.sleep(0.2)
        stage.speak()
        await asyncio.sleep(10)
        first, second = stage.record.turns
        assert (first.asr_text, len(first.packets)) == ("late", 1)
        assert (second.asr_text, len(second.packets)) == (None, 0)

    run(play)


def test_the_toys_own_prompt_is_no_answer() -> None:
    """The echo of the prompt is dropped; the sentence itself, said rightly, is kept."""

    async def play() -> None:
        stage = Stage(1000)
        stage.follow.begin()
        await asyncio.sleep(1.1)
        stage.say("Sentence 1.")
        stage.say("listen then read it after me")
        await asyncio.sleep(10)
        assert stage.record.turns[0].asr_text == "Sentence 1."

    run(play)


def test_silence_packets_are_not_heard() -> None:
    """DTX packets are kept and count as silence; one voice packet is heard."""

    async def play() -> None:
        stage = Stage(1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(1.1)
        stage.speak(SILENCE)
        await asyncio.sleep(2.2)
        stage.speak()
        await asyncio.sleep(10)
        assert [turn.heard for turn in stage.record.turns] == [False, True]
        assert [len(turn.packets) for turn in stage.record.turns] == [1, 1]

    run(play)


@pytest.mark.parametrize("at_s", [0.5, 1.5, 2.3, 2.9, 3.5])
@pytest.mark.parametrize(
    "reason", [EndReason.EXIT_PHRASE, EndReason.PLAY_STOPPED, EndReason.PREEMPTED]
)
def test_leaving_ends_it_at_once(at_s: float, reason: EndReason) -> None:
    """Mid-clip, mid-window and in between: no clip, window or second end follows."""

    async def play() -> None:
        stage = Stage(1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(at_s)
        begun = len(stage.clips)
        stage.follow.leave(reason)
        assert (stage.reasons, stage.follow.state) == ([reason], State.OVER)
        notes = list(stage.record.notes)
        stage.follow.leave(EndReason.PREEMPTED)
        stage.say("still here")
        stage.speak()
        await asyncio.sleep(60)
        assert (len(stage.clips), stage.reasons) == (begun, [reason])
        assert stage.record.notes == notes
        assert notes[-1] == ("end", reason)
        assert stage.player.stops == 1

    run(play)


def test_the_last_turn_is_written_before_it_is_over() -> None:
    """A window in its grace, or with words in it, leaves its turn when somebody leaves."""

    async def play() -> None:
        grace = Stage(1000, 1000)
        grace.follow.begin()
        await asyncio.sleep(2.3)
        grace.follow.leave(EndReason.EXIT_PHRASE)
        assert grace.turns_when_finished == 1

        words = Stage(1000, 1000)
        words.follow.begin()
        await asyncio.sleep(1.5)
        words.say("half of it")
        words.follow.leave(EndReason.EXIT_PHRASE)
        assert words.turns_when_finished == 1
        assert (words.record.turns[0].asr_text, words.record.turns[0].window_ms) == (
            "half of it",
            500,
        )

    run(play)


@pytest.mark.parametrize(
    ("reason", "turns"), [(EndReason.EXIT_PHRASE, 0), (EndReason.PLAY_STOPPED, 1)]
)
def test_the_exit_phrase_itself_is_no_turn(reason: EndReason, turns: int) -> None:
    """A voice without words in a window that is cut short is kept, unless it was the goodbye."""

    async def play() -> None:
        stage = Stage(1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(1.5)
        stage.speak()
        stage.follow.leave(reason)
        assert len(stage.record.turns) == turns

    run(play)


def test_a_lost_connection_leaves_the_step_to_be_resumed() -> None:
    """Closed windows have their turns, the open one none; nothing ends, nobody is greeted."""

    async def play() -> None:
        stage = Stage(1000, 1000, 1000)
        stage.follow.begin()
        await asyncio.sleep(3.5)
        stage.speak()
        stage.follow.disconnect()
        assert stage.record.named("disconnected") == [(1,)]
        assert [turn.step_index for turn in stage.record.turns] == [0]
        assert (stage.reasons, stage.record.named("end")) == ([], [])
        await asyncio.sleep(60)
        assert stage.clips == ["01.mp3", "02.mp3"]

    run(play)


def test_it_goes_on_at_the_clip_where_it_was() -> None:
    """From the second step of three, the first is not played again."""

    async def play() -> None:
        stage = Stage(1000, 1000, 1000, first=1)
        stage.follow.begin()
        await asyncio.sleep(60)
        assert stage.clips == ["02.mp3", "03.mp3"]
        assert [turn.step_index for turn in stage.record.turns] == [1, 2]

    run(play)


def test_what_was_lost_after_its_last_step_is_complete() -> None:
    """Nothing is left to play: the list is completed at once."""

    async def play() -> None:
        stage = Stage(1000, first=1)
        stage.follow.begin()
        assert stage.reasons == [EndReason.LIST_COMPLETED]

    run(play)


def test_an_end_that_comes_twice_opens_one_window() -> None:
    """A second end of the same clip, and one after the end, are nothing."""

    async def play() -> None:
        stage = Stage(1000, 1000, player=ScriptedPlayer(by_hand=True))
        stage.follow.begin()
        end = ClipEnd(Outcome.PLAYED, 1000)
        stage.player.ended(end)
        await asyncio.sleep(0.6)
        stage.player.ended(end)
        await asyncio.sleep(0.61)
        assert stage.clips == ["01.mp3", "02.mp3"]
        stage.follow.leave(EndReason.PREEMPTED)
        stage.player.ended(end)
        assert stage.reasons == [EndReason.PREEMPTED]

    run(play)


def test_a_learner_who_stops_the_sound_ends_it() -> None:
    """`audio.stopped` ends the task; it was no list that was completed."""

    async def play() -> None:
        stage = Stage(1000, player=ScriptedPlayer(by_hand=True))
        stage.follow.begin()
        stage.player.ended(ClipEnd(Outcome.STOPPED, 0))
        assert stage.reasons == [EndReason.PLAY_STOPPED]

    run(play)


def test_what_is_written_is_about_effort() -> None:
    """Phases around the clips, each step asked, closed and kept, streaks at 3, 5, 8 and 13."""

    async def play() -> None:
        stage = Stage(*[100] * 14)
        stage.follow.begin()
        for index in range(14):
            stage.loop.call_later(index * 0.9 + 0.5, stage.speak)
        await asyncio.sleep(60)
        kinds = [note[0] for note in stage.record.notes]
        assert kinds[:3] == ["phase", "asked", "window_closed"]
        assert kinds[-3:] == ["phase", "positive", "end"]
        assert stage.record.named("phase") == [("operation",), ("cleanup",)]
        assert [name for _, name, _ in stage.record.named("positive")] == [
            *(f"heard_turns_streak_{count}" for count in (3, 5, 8, 13)),
            "lesson_completed",
        ]
        path = "/reading/aloud/lessons/u1/01.mp3"
        assert stage.record.named("asked")[0] == (0, "read_aloud", path, "sentence 1")
        assert stage.record.turns[0].prompt_text == path

    run(play)


def test_a_silent_turn_ends_a_streak() -> None:
    """Two heard, one silent, three heard: one streak of three."""

    async def play() -> None:
        stage = Stage(*[100] * 6)
        stage.follow.begin()
        for index in (0, 1, 3, 4, 5):
            stage.loop.call_later(index * 0.9 + 0.5, stage.speak)
        await asyncio.sleep(60)
        streaks = [one for one in stage.record.named("positive") if one[0] == "streak"]
        assert streaks == [("streak", "heard_turns_streak_3", {"streak_length": 3})]

    run(play)


def test_a_recording_without_a_clip_has_one_window_of_its_own() -> None:
    """The check-in opens its window at once and closes it by the same clock."""

    async def play() -> None:
        task = Task(
            app_id="day",
            task_id="check_in",
            mode=Mode.SHADOWING,
            activity=Activity.CHECK_IN,
            window_ms=60_000,
        )
        stage = Stage(task=task, steps=(Step(clip=None, expected_text=None),))
        stage.follow.begin()
        await asyncio.sleep(30)
        stage.speak()
        await asyncio.sleep(30.1)
        stage.speak()
        assert stage.record.named("window_closed") == [(0, "check_in", 60_000, True)]
        await asyncio.sleep(1)
        assert stage.reasons == [EndReason.LIST_COMPLETED]
        assert len(stage.record.turns[0].packets) == 2
        assert stage.clips == []

    run(play)


def test_the_ratio_is_the_tasks_for_every_learner() -> None:
    """The seam for a learner's level gives the task's own ratio."""
    assert resolve_listen_ratio(7, TASK) == resolve_listen_ratio(None, TASK) == 1.2
