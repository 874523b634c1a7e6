"""The sweep: every turn of a session gets its metrics, whatever engines and processes do."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from etude.assess.enqueue import ASSESS, AssessProjector, recording_arrived, sessions_abandoned
from etude.assess.listening import Heard
from etude.assess.metrics import load_methods
from etude.assess.sweep import AssessTurns, is_pending
from etude.clock import RandomIds
from etude.events.ndjson import decode_line
from etude.examiner.enqueue import projectors
from etude.files import armed
from etude.jobs.claims import Claims
from etude.jobs.records import RetryPolicy
from etude.sessions import instances, media
from etude.sessions import repository as sessions
from etude.sessions.ingest import Ingest
from etude.sessions.lifecycle import close_abandoned
from etude.sessions.turns import TaskInstance
from etude.speech.audio import Pcm, floats
from etude.speech.errors import SpeechWorkerError
from etude.speech.recognise import Recognised
from etude.store import Blobs, Database
from etude.testing.school import School, body

RATE = 16_000
SESSION = "task-1"
SPOKEN = {"speech_rate_v1", "pause_ratio_v1", "pronunciation_v1"}
TEXTS = {"text_similarity_v0", "cer_v1", "wer_v1", "completeness_v1"}
EVERY = SPOKEN | TEXTS | {"input_quality_v1"}


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


class Engines:
    """Hears `the cat` and aligns nothing; fails as often as it is told to."""

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.asked = 0

    async def hear(self, expected_text: str | None, sound: Pcm) -> Heard:
        self.asked += 1
        if self.failures:
            self.failures -= 1
            raise SpeechWorkerError(reason="hung")
        recognised = Recognised(
            text="the cat", language="en", engine="e/1", model="m/1", no_speech_probability=0.1
        )
        assert expected_text is not None
        return Heard(samples=floats(sound), recognised=recognised, alignment=None, aligned=True)


class Worker:
    """Carries out what is due, as the runner does, but when the test says so."""

    def __init__(self, school: School, blobs: Blobs, engines: Any) -> None:
        self.school = school
        self.claims = Claims(
            school.database,
            school.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={ASSESS: 20},
            periods_s={},
        )
        ingest = Ingest(school.database, school.clock, projectors=_projectors(school))
        self.assess = AssessTurns(
            school.database, blobs, ingest, school.clock, load_methods(), engines
        )

    def work(self) -> int:
        """Carry out every job that is due; return how many ended well."""

        async def carry_out() -> int:
            done = 0
            for job in await self.claims.claim(100):
                try:
                    await self.assess(job)
                except SpeechWorkerError as error:
                    await self.claims.fail(job, RetryPolicy(), error.code, final=False)
                    continue
                await self.claims.finish_rest(job)
                done += 1
            return done

        done: int = self.school.run(carry_out())
        return done


def _projectors(school: School) -> tuple[Any, ...]:
    return (*projectors(school.clock), AssessProjector(school.clock))


@pytest.fixture
def school(database: Database, run: Any) -> School:
    made = School(database, run)
    run(made.furnish())
    made.ingest = Ingest(database, made.clock, projectors=_projectors(made))
    return made


@pytest.fixture
def blobs(school: School, tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", school.clock)


@pytest.fixture
def sound(tmp_path: Path) -> bytes:
    times = np.arange(RATE) / RATE
    path = tmp_path / "sound.ogg"
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * 220 * times), RATE, format="OGG", subtype="OPUS")
    return path.read_bytes()


def line(number: int, event_type: str, signal: str, value: Any) -> dict[str, Any]:
    return {
        "event_id": f"e{number}",
        "session_id": SESSION,
        "ts": float(number),
        "event_type": event_type,
        "signal": signal,
        "value": value,
        "confidence": 1.0,
        "seq": number,
    }


def turn(number: int, step: int, **fields: Any) -> dict[str, Any]:
    value = {"step_index": step, "expected_text": "The cat.", "asr_text": None, "audio_id": None}
    return line(number, "signal_observation", "read_aloud", value | fields)


START = line(1, "session_start", "session_begin", {"app_id": "a", "task_id": "t", "mode": "FOLLOW"})


def end(number: int) -> dict[str, Any]:
    return line(number, "session_end", "session_end", {"end_reason": "list_completed"})


def send(school: School, *events: dict[str, Any]) -> None:
    school.upload(school.device("toy-1"), SESSION, body(*events))


def keep(school: School, blobs: Blobs, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    async def put() -> None:
        await media.put(
            school.database,
            blobs,
            school.clock,
            await _row(school),
            sha256=sha256,
            content_type="audio/ogg",
            chunks=chunks(),
            on_new=recording_arrived,
        )

    school.run(put())
    return sha256


async def _row(school: School) -> Any:
    async with school.database.read() as connection:
        return await sessions.find(connection, SESSION)


def instance(school: School) -> TaskInstance:
    async def load() -> Any:
        async with school.database.read() as connection:
            return await instances.load(connection, await sessions.find(connection, SESSION))

    found: TaskInstance = school.run(load()).instance
    return found


def said(school: School) -> list[set[str]]:
    return [{one.method for one in each.metrics} for each in instance(school).turns]


def test_every_turn_of_a_session_is_assessed(school: School, blobs: Blobs, sound: bytes) -> None:
    """Each turn with a recording has a metric of every method; once, however often it is asked."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, *(turn(2 + step, step, audio_id=sha256) for step in range(3)), end(5))
    keep(school, blobs, sound)
    engines = Engines()
    worker = Worker(school, blobs, engines)
    school.clock.advance(2)
    assert worker.work() == 1
    assert said(school) == [EVERY] * 3
    stored = len(school.stored(SESSION))
    school.clock.advance(60)
    worker.work()
    assert (len(school.stored(SESSION)), engines.asked) == (stored, 3)
    first = {one.method: one for one in instance(school).turns[0].metrics}
    assert first["text_similarity_v0"].value == 1.0
    assert first["pronunciation_v1"].value is None
    assert first["pronunciation_v1"].detail["reason"] == "off_task"


def test_a_recording_that_comes_late_is_heard_then(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """At the end of the session nothing was there to hear; with the recording there is."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256), end(3))
    worker = Worker(school, blobs, Engines())
    worker.work()
    assert said(school) == [set()]
    keep(school, blobs, sound)
    school.clock.advance(2)
    assert worker.work() == 1
    assert said(school) == [EVERY]


def test_a_turn_is_assessed_while_the_lesson_goes_on(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """The live lane: the recording's arrival asks, not the end of the session."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256))
    keep(school, blobs, sound)
    school.clock.advance(2)
    assert Worker(school, blobs, Engines()).work() == 1
    assert said(school) == [EVERY]


def test_live_or_swept_the_metrics_are_the_same_events(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """What was found live is not found again: the sweep adds nothing."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256))
    keep(school, blobs, sound)
    school.clock.advance(2)
    worker = Worker(school, blobs, Engines())
    worker.work()
    live = {one for one in school.stored(SESSION) if b'"producer":"server"' in one}
    send(school, end(3))
    worker.work()
    assert {one for one in school.stored(SESSION) if b'"producer":"server"' in one} == live


def test_without_engines_texts_are_compared(school: School, blobs: Blobs, sound: bytes) -> None:
    """Without `etude[speech]` the text methods run, the others say `no_engine`."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256, asr_text="a cat"), turn(3, 1), end(4))
    keep(school, blobs, sound)
    school.clock.advance(2)
    worker = Worker(school, blobs, None)
    worker.work()
    turns = instance(school).turns
    values = {one.method: one.value for one in turns[0].metrics}
    assert {name for name, value in values.items() if value is None} == SPOKEN
    assert turns[1].metrics == ()
    stored = school.stored(SESSION)
    send(school, turn(5, 2))
    school.clock.advance(5)
    worker.work()
    assert len(school.stored(SESSION)) == len(stored) + 1  # the same absence is the same event


def test_an_engine_that_fails_costs_no_turn(school: School, blobs: Blobs, sound: bytes) -> None:
    """The other turns are written at once, the one that failed with the next attempt."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, *(turn(2 + step, step, audio_id=sha256) for step in range(2)), end(4))
    keep(school, blobs, sound)
    school.clock.advance(2)
    worker = Worker(school, blobs, Engines(failures=1))
    assert worker.work() == 0
    assert said(school) == [set(), EVERY]
    school.clock.advance(30)
    assert worker.work() == 1
    assert said(school) == [EVERY, EVERY]


def test_a_recording_that_fells_every_engine_ends_too(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """After five attempts it is done without engines, and the job ends."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256), end(3))
    keep(school, blobs, sound)
    worker = Worker(school, blobs, Engines(failures=1_000))
    done = 0
    for _ in range(6):
        school.clock.advance(120)
        done += worker.work()
    assert done == 1
    reasons = {one.method: one.detail for one in instance(school).turns[0].metrics}
    assert reasons["pronunciation_v1"]["reason"] == "no_engine"


@pytest.mark.parametrize(
    "point",
    [
        "assess.turns.found",
        "sessions.ingest.before_commit",
        "sessions.ingest.after_commit",
        "assess.turns.written",
        "assess.turns.before_commit",
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    school: School, blobs: Blobs, sound: bytes, point: str
) -> None:
    """Another worker takes the job over; each turn has each metric once."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, *(turn(2 + step, step, audio_id=sha256) for step in range(2)), end(4))
    keep(school, blobs, sound)
    school.clock.advance(2)

    def crash(reached: str) -> None:
        if reached == point:
            raise CrashError

    with armed(crash), pytest.raises(CrashError):
        Worker(school, blobs, Engines()).work()
    school.clock.advance(31)
    Worker(school, blobs, Engines()).work()
    assert said(school) == [EVERY, EVERY]
    events = [decode_line(one) for one in school.stored(SESSION)]
    made = [(one.correlation_id, one.signal) for one in events if one.is_server_made]
    assert len(made) == len(set(made)) == 2 * len(EVERY)


def test_what_calls_for_assessment_is_all_or_nothing(school: School, blobs: Blobs) -> None:
    """A kill while it is asked for leaves neither the events nor the job."""

    def crash(reached: str) -> None:
        if reached == "assess.turns.asked":
            raise CrashError

    with armed(crash), pytest.raises(CrashError):
        send(school, START, end(2))
    school.restart()
    school.ingest = Ingest(school.database, school.clock, projectors=_projectors(school))
    send(school, START, turn(2, 0, asr_text="the cat"), end(3))
    school.clock.advance(2)
    Worker(school, blobs, None).work()
    assert said(school) == [TEXTS]


def test_a_session_that_is_given_up_is_swept(school: School, blobs: Blobs) -> None:
    """Without `session_end`, its turns are assessed when it counts as abandoned."""
    send(school, START, turn(2, 0, asr_text="the cat"))
    school.clock.advance(25 * 3600)
    school.run(close_abandoned(school.database, school.clock, sessions_abandoned))
    assert Worker(school, blobs, None).work() == 1
    assert said(school) == [TEXTS]


def test_a_damaged_recording_leaves_the_texts(school: School, blobs: Blobs) -> None:
    """What is no audio is not heard; what can be said without it, is."""
    data = b"OggS, but no more"
    sha256 = hashlib.sha256(data).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256, asr_text="the cat"), end(3))
    keep(school, blobs, data)
    school.clock.advance(2)
    Worker(school, blobs, Engines()).work()
    assert said(school) == [TEXTS]


def test_metrics_are_pending_until_they_are_there(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """The examiner's first report waits for turns that have a recording and no metric."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256), end(3))

    def pending() -> bool:
        async def ask() -> bool:
            async with school.database.read() as connection:
                key = (await sessions.find(connection, SESSION)).session_key
                return await is_pending(connection, key, load_methods())

        answer: bool = school.run(ask())
        return answer

    assert not pending()
    keep(school, blobs, sound)
    assert pending()
    school.clock.advance(2)
    Worker(school, blobs, Engines()).work()
    assert not pending()


def test_nothing_of_a_metric_is_a_verdict(school: School, blobs: Blobs) -> None:
    """What the server adds holds none of the words that would judge a learner."""
    send(school, START, turn(2, 0, asr_text="a dog"), end(3))
    school.clock.advance(2)
    Worker(school, blobs, None).work()
    made = [json.loads(one) for one in school.stored(SESSION) if b'"server"' in one]
    assert made
    for word in ("passed", "grade", "good", "bad", "score", "verdict", "level"):
        assert not any(f'"{word}"' in json.dumps(one) for one in made)
