"""Toys that are really spoken to: gateway, web, worker and engines as processes, in real time.

Nothing here depends on how fast the machine is: every wait is for what must come.
"""

import asyncio
import importlib.util
import os
import re
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.assess.metrics import load_methods
from etude.assess.spoken_methods import PRONUNCIATION
from etude.practice.windows import window_ms
from etude.testing.speaking_room import ALONE, Outcome, SpeakingRoom, play
from etude.testing.waiting import run_bounded

LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts", "soundfile")
SAME_WORD = 0.6
INTO_ITS_WORK_S = 6.0


@pytest.fixture(autouse=True)
def _engines() -> None:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"SPOKEN LESSONS NOT TESTED: install etude[speech] ({missing})")


def assert_whole(outcome: Outcome, *, toys: int, steps: int) -> None:
    """Every toy had its lesson, every turn its recording, text and metrics, each once."""
    assert len(outcome.heard) == toys
    for heard in outcome.heard:
        assert heard == [f"{step + 1:02}.mp3" for step in range(steps)]
    assert len(outcome.turns) == toys * steps
    for turn in outcome.turns:
        assert turn["window_ms"] == window_ms(turn["duration_ms"], 1.2)
        assert turn["audio_id"]
        assert turn["asr_text"]
        found = {one["method"]: one["value"] for one in turn["metrics"]}
        assert set(found) == set(load_methods())
        assert None not in found.values()
        assert found["text_similarity_v0"] > SAME_WORD
    assert outcome.metrics == [1]
    assert len(outcome.reports) == toys
    for report in outcome.reports.values():
        scores = report["examiner_assessment"]["dimension_scores"]
        assert set(scores) == {"accuracy", "pronunciation", "fluency", "effort"}


def may_unshare(command: Sequence[str]) -> bool:
    return run_bounded([*command, "true"], capture_output=True, check=False).returncode == 0


def test_everything_works_with_networking_removed(tmp_path: Path) -> None:
    """In a namespace with nothing but its loopback: practised, heard, measured, reported.

    Where strace is there, it also shows that nobody tried to reach anything else.
    """
    unshare = [shutil.which("unshare") or "unshare", "-rn"]
    if shutil.which("unshare") is None or not may_unshare(unshare):
        pytest.skip("WITHOUT NETWORK NOT TESTED: `unshare -rn` is not permitted here")
    strace = shutil.which("strace")
    trace = tmp_path / "connects"
    traced = (
        [strace, "-f", "--seccomp-bpf", "-qq", "-e", "trace=connect,sendto", "-o", str(trace)]
        if strace
        else []
    )
    folder = tmp_path / "room"
    folder.mkdir()
    room = [sys.executable, "-m", "etude.testing.speaking_room", ALONE, str(folder), "1", "3"]
    ran = run_bounded([*unshare, *traced, *room], capture_output=True, limit_s=270)
    assert ran.returncode == 0, ran.stderr.decode()[-4_000:]
    assert_whole(msgspec.json.decode(ran.stdout, type=Outcome), toys=1, steps=3)
    if strace:
        assert strangers(trace.read_text("utf-8", "replace")) == set()


def strangers(trace: str) -> set[str]:
    """Return the addresses off this machine that anybody tried to reach."""
    inet = re.findall(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', trace)
    return {one or other for one, other in inet} - {"127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - looked for


def test_what_was_recorded_without_engines_is_assessed_when_there_are(tmp_path: Path) -> None:
    """`etude assess again`, once the engines are installed: numbers, texts and another report."""
    toys, steps = 1, 2
    room = SpeakingRoom(tmp_path, toys=toys, steps=steps)
    room.environment["ETUDE_SPEECH_PROCESSES"] = "0"
    room.server = room.process("serve")
    with room:
        heard = asyncio.run(play(room))
        room.wait(lambda: room.all_assessed(toys * steps), "no engine is said of every turn")
        before = room.outcome(heard)
    assert {turn["asr_text"] for turn in before.turns} == {None}
    assert {reason(turn) for turn in before.turns} == {"no_engine"}
    unsaid = sum(one["value"] is None for turn in before.turns for one in turn["metrics"])
    room.environment["ETUDE_SPEECH_PROCESSES"] = "1"
    room.server = room.process("serve")
    with room:
        told = [again(room), again(room)]
        after = room.outcome(heard)
        events = [room.get(f"/api/v1/sessions/{one}/events").text for one in after.reports]
        room.wait(lambda: revision(room) > 1, "no other revision of the report")
    asked = {"asked": toys, "left": 0, "given_up": 0}
    assert told == [asked | {"without_engine": toys}, asked | {"without_engine": 0}]
    for turn in after.turns:
        assert turn["asr_text"]
        assert None not in {one["value"] for one in turn["metrics"]}
    for each in before.reports:
        assert each in after.reports
    assert sum(one.count('"no_engine"') for one in events) == unsaid
    assert after.metrics == [1, 2]  # without an engine, then with one


def again(room: SpeakingRoom) -> dict[str, int]:
    command = [sys.executable, "-m", "etude", "assess", "again", "--wait", "--json"]
    environment = {**os.environ, "ETUDE_DATA": str(room.settings.data)}
    ran = run_bounded(command, env=environment, capture_output=True, check=True)
    told: dict[str, int] = msgspec.json.decode(ran.stdout)
    return told


def reason(turn: Mapping[str, Any]) -> str:
    found = next(one for one in turn["metrics"] if one["method"] == PRONUNCIATION)
    told: str = found["detail"]["reason"]
    return told


def revision(room: SpeakingRoom) -> int:
    (instance,) = room.instances()
    found: int = room.get(f"/api/v1/sessions/{instance['id']}/report").json()["revision"]
    return found


def kill(engine: int) -> None:
    os.kill(engine, signal.SIGKILL)


def hang(engine: int) -> None:
    os.kill(engine, signal.SIGSTOP)


def run_out_of_memory(engine: int) -> None:
    resource.prlimit(engine, resource.RLIMIT_DATA, (1 << 20, 1 << 20))


Harm = Callable[[int], None]


@pytest.mark.parametrize(
    "of_worker",
    [
        (kill, run_out_of_memory),
        pytest.param((kill, hang, run_out_of_memory), marks=pytest.mark.soak),  # hangs for 70 s
    ],
)
def test_engines_that_fail_move_no_clock_and_lose_no_turn(
    tmp_path: Path, of_worker: Sequence[Harm]
) -> None:
    """Four toys practise while engines are killed, hang and run out of memory.

    Every window is as long as ever, every clip is played, and in the end every turn is assessed.
    """
    toys, steps = 4, 3
    harms = {"gateway": (kill, hang, run_out_of_memory), "worker": of_worker}
    with SpeakingRoom(tmp_path, toys=toys, steps=steps) as room:
        over = threading.Event()
        with ThreadPoolExecutor() as threads:
            hurt = {
                name: threads.submit(injure, room, name, each, over) for name, each in harms.items()
            }
            try:
                heard = asyncio.run(play(room))
                room.wait(lambda: room.all_assessed(toys * steps), "not everything is assessed")
            finally:
                over.set()
        assert_whole(room.outcome(heard), toys=toys, steps=steps)
    assert hurt["gateway"].result() >= 1
    assert hurt["worker"].result() >= 2  # nothing was assessed before


def injure(room: SpeakingRoom, process: str, harms: Sequence[Harm], over: threading.Event) -> int:
    """Harm one engine after the other, as they come; return how many.

    An engine that is gone is replaced when there is something to hear.
    """
    hurt: set[int] = set()
    for harm in harms:
        while not over.wait(0.1):
            fresh = [one for one in room.engines(process) if one not in hurt]
            if fresh and not over.wait(INTO_ITS_WORK_S if hurt else 0.0):
                harm(fresh[0])
                hurt.add(fresh[0])
                break
    return len(hurt)
