"""The sweep: every turn of a session gets its metrics, whatever engines and processes do."""

import hashlib
import json

import pytest

from etude.assess.enqueue import sessions_abandoned
from etude.assess.metrics import load_methods
from etude.assess.spoken_methods import PRONUNCIATION
from etude.assess.sweep import is_pending
from etude.events.ndjson import decode_line
from etude.files import armed
from etude.sessions import repository as sessions
from etude.sessions.ingest import Ingest
from etude.sessions.lifecycle import close_abandoned
from etude.sessions.turns import TaskInstance
from etude.store import Blobs
from etude.testing.assessing import (
    SESSION,
    assessing_projectors,
    end,
    folded,
    keep,
    send,
    start,
    turn,
)
from etude.testing.assessing import AssessingWorker as Worker
from etude.testing.assessing import HearingEngines as Engines
from etude.testing.school import School

TEXTS = {"text_similarity_v0", "cer_v1", "wer_v1", "completeness_v1"}
EVERY = set(load_methods())
SPOKEN = EVERY - TEXTS - {"input_quality_v1"}
START = start()


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


def instance(school: School) -> TaskInstance:
    return folded(school).instance


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
    assert first[PRONUNCIATION].value is not None


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
    assert reasons[PRONUNCIATION]["reason"] == "no_engine"


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
    assert len(made) == len(set(made)) == 2 * len(EVERY | {"recognised_text"})


def test_what_calls_for_assessment_is_all_or_nothing(school: School, blobs: Blobs) -> None:
    """A kill while it is asked for leaves neither the events nor the job."""

    def crash(reached: str) -> None:
        if reached == "assess.turns.asked":
            raise CrashError

    with armed(crash), pytest.raises(CrashError):
        send(school, START, end(2))
    school.restart()
    school.ingest = Ingest(school.database, school.clock, projectors=assessing_projectors(school))
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
                found = await sessions.find(connection, SESSION)
                assert found is not None
                return await is_pending(connection, found.session_key, load_methods())

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


def texts(school: School) -> list[str | None]:
    return [each.asr_text for each in instance(school).turns]


def recognised(school: School) -> int:
    return sum(b'"speech_recognised"' in one for one in school.stored(SESSION))


def test_what_was_heard_afterwards_is_in_the_turn(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """A turn that nobody recognised in time has the text of its recording, in one event."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256), turn(3, 1), end(4))
    keep(school, blobs, sound)
    worker = Worker(school, blobs, Engines("the cat"))
    for _ in range(3):
        school.clock.advance(60)
        worker.work()
        send(school, turn(3, 1))
    assert texts(school) == ["the cat", None]
    assert recognised(school) == 1


def test_what_was_recognised_live_stands(school: School, blobs: Blobs, sound: bytes) -> None:
    """The turn's own text is not replaced by what is heard later, and nothing else is written."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256, asr_text="the bat"), end(3))
    keep(school, blobs, sound)
    school.clock.advance(2)
    Worker(school, blobs, Engines("the cat")).work()
    assert texts(school) == ["the bat"]
    assert recognised(school) == 0
    values = {one.method: one.value for one in instance(school).turns[0].metrics}
    assert values["text_similarity_v0"] == 1.0  # numbers are of the whole recording


@pytest.mark.parametrize(
    "engines", [Engines("", reads=False), Engines("quite another thing", reads=False)]
)
def test_silence_and_another_sentence_leave_no_text_and_no_number(
    school: School, blobs: Blobs, sound: bytes, engines: Engines
) -> None:
    """What was not read stays null, and so does every number about it."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256), end(3))
    keep(school, blobs, sound)
    school.clock.advance(2)
    Worker(school, blobs, engines).work()
    assert texts(school) == [None]
    metrics = {one.method: one for one in instance(school).turns[0].metrics}
    assert set(metrics) == EVERY
    reasons = {metrics[name].detail["reason"] for name in SPOKEN | TEXTS}
    assert reasons <= {"no_speech", "off_task"}
    assert all(metrics[name].value is None for name in SPOKEN | TEXTS)


def test_what_was_said_freely_is_recognised_too(school: School, blobs: Blobs, sound: bytes) -> None:
    """A check-in, where nothing was to be read, has its text, in one event."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, START, turn(2, 0, audio_id=sha256, expected_text=None), end(3))
    keep(school, blobs, sound)
    worker = Worker(school, blobs, Engines("we went to the zoo"))
    for _ in range(3):
        school.clock.advance(60)
        worker.work()
        send(school, turn(4, 1))
    assert texts(school)[0] == "we went to the zoo"
    assert recognised(school) == 1
