"""Sessions with recordings, engines that hear as told, a worker that works when it is told."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from etude.assess.again import ASSESS_AGAIN, AssessAgain
from etude.assess.assessing import TurnAssessor
from etude.assess.enqueue import ASSESS, AssessProjector, recording_arrived
from etude.assess.listening import Heard
from etude.assess.metrics import load_methods
from etude.assess.sweep import AssessTurns
from etude.clock import RandomIds
from etude.errors import EtudeError
from etude.examiner.enqueue import projectors
from etude.jobs.claims import Claims
from etude.jobs.records import Handler, RetryPolicy
from etude.sessions import instances, media
from etude.sessions import repository as sessions
from etude.sessions.ingest import Ingest
from etude.sessions.projectors import Projector
from etude.sessions.turns import Folded
from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.audio import Pcm, floats
from etude.speech.errors import SpeechWorkerError
from etude.speech.recognise import Encoding, Recognised, TokenScore
from etude.speech.voice_activity import Span, Spoken
from etude.store import Blobs
from etude.testing.school import School, body

SESSION: Final = "task-1"
TEXT: Final = "The cat."
MODEL: Final = "whisper-tiny.en/e3a0b1a3fb99"
ACOUSTIC: Final = "pocketsphinx-en-us/c8ee076bb5ae"
_NAMED: Final = (ASSESS, ASSESS_AGAIN)


class HearingEngines:
    """In the place of `PooledEngines`: hears a text, and finds `The cat.` in the sound or not.

    Args:
        text: what is heard.
        failures: how often it fails first.
        engine: the recogniser's name and version.
        model: its model's.
        reads: whether the text is found in the sound.
    """

    def __init__(
        self,
        text: str = "the cat",
        *,
        failures: int = 0,
        engine: str = "ctranslate2/4.8.5",
        model: str = MODEL,
        reads: bool = True,
    ) -> None:
        """Hear nothing yet."""
        self.text, self.failures = text, failures
        self.engine, self.model, self.reads = engine, model, reads
        self.asked = 0

    async def hear(self, expected_text: str | None, sound: Pcm) -> Heard:
        """See `PooledEngines.hear`."""
        self.asked += 1
        if self.failures:
            self.failures -= 1
            raise SpeechWorkerError(reason="hung")
        tokens = tuple(TokenScore(f" {word}", 0.9) for word in self.text.split())
        frames = np.random.default_rng(3).normal(size=(100, 384)).astype("<f2")
        recognised = Recognised(
            text=self.text,
            language="en",
            engine=self.engine,
            model=self.model,
            no_speech_probability=0.1,
            tokens=tokens,
            expected_tokens=tokens,
            encoding=Encoding(frame_ms=20, width=384, values=frames.tobytes()),
        )
        return Heard(
            samples=floats(sound),
            recognised=recognised,
            alignment=aligned() if self.reads and expected_text else None,
            aligned=bool(expected_text),
            spoken=Spoken(spans=(Span(300, 500), Span(900, 1200)), engine="d/1", model="d-model/1"),
        )


def aligned() -> Alignment:
    """Return where `the cat` is in two seconds of sound."""

    def word(text: str, index: int, start_ms: int, *names: str) -> AlignedWord:
        phones = tuple(
            AlignedPhone(name, start_ms + 100 * place, 100, -8.0)
            for place, name in enumerate(names)
        )
        return AlignedWord(
            text=text,
            index=index,
            start_ms=start_ms,
            duration_ms=100 * len(names),
            score=-8.0 * len(names),
            phones=phones,
            guessed=False,
        )

    words = (word("the", 0, 300, "DH", "AH"), word("cat", 1, 900, "K", "AE", "T"))
    return Alignment(words=words, duration_ms=2000, engine="pocketsphinx/5.1.1", model=ACOUSTIC)


class AssessingWorker:
    """Carries out what is due, as the runners do, but when the test says so."""

    def __init__(self, school: School, blobs: Blobs, engines: Any) -> None:  # noqa: ANN401 - or none
        """Work with engines of a test."""
        self._school = school
        self._claims = Claims(
            school.database,
            school.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts=dict.fromkeys(_NAMED, 20),
            periods_s={},
        )
        ingest = Ingest(school.database, school.clock, projectors=assessing_projectors(school))
        assessor = TurnAssessor(school.database, blobs, ingest, load_methods(), engines)
        self._handlers: dict[str, Handler] = {
            ASSESS: AssessTurns(assessor, school.clock),
            ASSESS_AGAIN: AssessAgain(assessor),
        }
        self.order: list[int] = []

    def work(self) -> int:
        """Carry out every job that is due; return how many ended well."""

        async def carry_out() -> int:
            done = 0
            for job in await self._claims.claim(100):
                self.order.append(job.args["session_key"])
                try:
                    await self._handlers[job.kind](job)
                except EtudeError as error:
                    await self._claims.fail(job, RetryPolicy(), error.code, final=False)
                    continue
                await self._claims.finish_rest(job)
                done += 1
            return done

        done: int = self._school.run(carry_out())
        return done


def assessing_projectors(school: School) -> Sequence[Projector]:
    """Return what ingest is to ask, so that turns are assessed and reports made."""
    return (*projectors(school.clock), AssessProjector(school.clock))


def line(number: int, event_type: str, signal: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return an event."""
    return {
        "event_id": f"e{number}",
        "ts": float(number),
        "event_type": event_type,
        "signal": signal,
        "value": value,
        "confidence": 1.0,
        "seq": number,
    }


def start(mode: str = "FOLLOW", assessment: object = None) -> dict[str, Any]:
    """Return the event that a task begins with; `assessment` is what its `meta` says of it."""
    value = {"app_id": "a", "task_id": "t", "mode": mode, "instrument": "shadowing"}
    begun = line(1, "session_start", "session_begin", value)
    return begun if assessment is None else begun | {"meta": {"assessment": assessment}}


def turn(number: int, step: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the event that a turn leaves."""
    value = {"step_index": step, "expected_text": TEXT, "asr_text": None, "audio_id": None}
    return line(number, "signal_observation", "read_aloud", value | fields)


def end(number: int) -> dict[str, Any]:
    """Return the event that a task ends with."""
    return line(number, "session_end", "session_complete", {"end_reason": "list_completed"})


def send(school: School, *events: Mapping[str, Any], session: str = SESSION) -> None:
    """Upload events of a session, as the toy `toy-1`."""
    named = ({**event, "session_id": session} for event in events)
    school.upload(school.device("toy-1"), session, body(*named))


def keep(school: School, blobs: Blobs, data: bytes, session: str = SESSION) -> str:
    """Store a recording of a session; return its name."""
    sha256 = hashlib.sha256(data).hexdigest()

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    async def put() -> None:
        async with school.database.read() as connection:
            record = await sessions.find(connection, session)
        assert record is not None, "not begun"  # noqa: S101 - a mistake in a test
        await media.put(
            school.database,
            blobs,
            school.clock,
            record,
            sha256=sha256,
            content_type="audio/ogg",
            chunks=chunks(),
            on_new=recording_arrived,
        )

    school.run(put())
    return sha256


def folded(school: School, session: str = SESSION) -> Folded:
    """Return a session as it is folded now."""

    async def load() -> Folded | None:
        async with school.database.read() as connection:
            record = await sessions.find(connection, session)
            assert record is not None, "not begun"  # noqa: S101 - a mistake in a test
            return await instances.load(connection, record)

    found: Folded | None = school.run(load())
    assert found is not None, "no task"  # noqa: S101 - a mistake in a test
    return found
