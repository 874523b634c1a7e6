"""Practice with the real recorder, lessons and prompts, on a toy in the loop's own time."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from etude.clock import RandomIds
from etude.edge.journal import SyncPolicy
from etude.files import AppendFile, Files
from etude.gateway.ports import CloseReason
from etude.practice.apps import shipped_apps
from etude.practice.lessons import Lessons
from etude.practice.prompts import load_prompts
from etude.practice.recorder import Recorder
from etude.practice.runtime import practice_factory
from etude.speech.clip_cache import ClipCache
from etude.testing.practising import events_of
from etude.testing.toy import Toy
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop

CLIPS = 3


class StalledFiles(Files):
    """A disk that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        self.let_go.wait(60)
        return super().open_append(path, mode)


class House:
    """What one gateway process has: everything real but the sockets."""

    def __init__(self, root: Path, files_: Files | None = None) -> None:
        self.root = root / "journals"
        self.ended: list[str] = []
        loop = asyncio.get_running_loop()
        self.recorder = Recorder(
            self.root,
            clock=LoopClock(loop),
            ids=RandomIds(),
            files=files_,
            policy=SyncPolicy.OS,
            on_ended=self.ended.append,
        )
        self.recorder.start()
        clips = ClipCache(root / "clips")
        self.prompts = load_prompts(clips)
        with as_file(files("etude.practice").joinpath("sample_lessons")) as samples:
            self.lessons = Lessons(samples, clips)
        self.make = practice_factory(shipped_apps(), self.lessons, self.recorder, self.prompts)

    def connect(self) -> Toy:
        toy = Toy()
        toy.connect(self.make(toy))
        return toy

    def close(self) -> None:
        self.recorder.close()
        self.lessons.close()


def run(play: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play())


def kinds(events: list[Any]) -> list[str]:
    return [event.event_type for event in events]


async def practised(toy: Toy, seconds: float = 60.0) -> None:
    """Start the sample lesson and speak a little all the time."""
    await asyncio.sleep(1)
    toy.say("start reading")
    for _ in range(int(seconds * 2)):
        await asyncio.sleep(0.5)
        toy.speak(2)


def test_a_lesson_leaves_its_events(tmp_path: Path) -> None:
    """A sample lesson, played to its end: the journal holds each step asked, closed and kept."""

    async def play() -> None:
        house = House(tmp_path)
        toy = house.connect()
        await practised(toy)
        house.close()
        (session_id,) = house.ended
        events = events_of(house.root, session_id)
        found = kinds(events)
        assert found[0] == "session_start"
        assert found[-1] == "session_end"
        steps = len(toy.played()) - 1
        assert steps >= CLIPS
        for kind in ("signal_check_requested", "listen_window_closed", "signal_observation"):
            assert found.count(kind) == steps, kind
        turns = [event.value for event in events if event.event_type == "signal_observation"]
        assert [turn["step_index"] for turn in turns] == list(range(steps))
        assert all(turn["heard"] and turn["expected_text"] for turn in turns)
        assert events[-1].value["end_reason"] == "list_completed"
        assert "streak" in found
        assert "achievement" in found

    run(play)


def test_a_disk_that_hangs_does_not_hold_up_the_clock(tmp_path: Path) -> None:
    """The recorder's thread stands still for the whole lesson; it plays as if nothing were so."""

    async def play() -> None:
        healthy = House(tmp_path / "healthy")
        stalled_files = StalledFiles()
        stalled = House(tmp_path / "stalled", stalled_files)
        toys = [healthy.connect(), stalled.connect()]
        await asyncio.gather(*(practised(toy) for toy in toys))
        times = [toy.times("play") for toy in toys]
        assert len(times[0]) > CLIPS
        assert times[1] == pytest.approx(times[0], abs=0.01)
        assert stalled.ended == []
        stalled_files.let_go.set()
        for house in (healthy, stalled):
            house.close()
        (session_id,) = stalled.ended
        assert kinds(events_of(stalled.root, session_id))[-1] == "session_end"

    run(play)


@pytest.mark.parametrize("reason", [CloseReason.DEVICE_LEFT, CloseReason.REPLACED])
def test_a_reconnected_toy_goes_on_in_the_same_session(tmp_path: Path, reason: CloseReason) -> None:
    """Lost in the second clip, back a minute later: one session, every step with one turn."""

    async def play() -> None:
        house = House(tmp_path)
        toy = house.connect()
        await practised(toy, 4)
        played = len(toy.played())
        assert played >= 1
        toy.drop(reason)
        await asyncio.sleep(60)
        again = house.connect()
        await asyncio.sleep(60)
        house.close()
        (session_id,) = house.ended
        events = events_of(house.root, session_id)
        steps = [e.value["step_index"] for e in events if e.event_type == "signal_observation"]
        assert steps == list(range(len(steps)))
        assert again.played()[0] == toy.played()[-1]
        assert {"connection_lost", "connection_resumed"} <= set(kinds(events))
        assert events[-1].value["end_reason"] == "list_completed"

    run(play)


def test_a_toy_that_comes_back_late_begins_anew(tmp_path: Path) -> None:
    """After ten minutes the session is cancelled, once; the toy is in chat."""

    async def play() -> None:
        house = House(tmp_path)
        toy = house.connect()
        await practised(toy, 4)
        toy.drop()
        await asyncio.sleep(601)
        for _ in range(3):
            house.recorder.expire()
        again = house.connect()
        await asyncio.sleep(10)
        assert again.played() == []
        house.close()
        (session_id,) = house.ended
        end = events_of(house.root, session_id)[-1]
        assert (end.value["end_reason"], end.value["status"]) == ("disconnected", "cancelled")

    run(play)


def test_the_games_are_recorded_and_the_repeater_is_not(tmp_path: Path) -> None:
    """An inline task leaves question, answer and match; a repeated file leaves nothing."""

    async def play() -> None:
        house = House(tmp_path)
        toy = house.connect()
        await asyncio.sleep(1)
        toy.say("start listening")
        await asyncio.sleep(30)
        assert house.ended == []
        toy.say("开始口算")
        await asyncio.sleep(1)
        toy.say("42")
        await asyncio.sleep(60)
        house.close()
        (session_id,) = house.ended
        turns = [
            event.value
            for event in events_of(house.root, session_id)
            if event.event_type == "signal_observation"
        ]
        assert [turn["step_index"] for turn in turns] == [0, 1, 2, 3, 4]
        assert turns[0]["detail"]["exact_match_v1"] in {0, 1}
        assert turns[1]["detail"]["exact_match_v1"] is None

    run(play)
