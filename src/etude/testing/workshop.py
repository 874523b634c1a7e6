"""A place where courses are made, put together as the product is, that works when a test says so.

>>> workshop = Workshop(settings, database)
>>> course = await workshop.made()
>>> await workshop.publish(course.course_id)
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from etude.authoring import publication
from etude.authoring.composition import course_runs, known_authors, open_courses
from etude.authoring.records import RUN, Course, CourseRequest
from etude.authoring.samples import SAMPLES, sample
from etude.authoring.voices import SpokenVoice
from etude.clock import Clock, RandomIds, SystemClock
from etude.courseware.publishers import publisher_for
from etude.courseware.registering import Published
from etude.jobs.claims import Claims
from etude.people.records import HOST
from etude.settings import Settings
from etude.speech.audio import Pcm
from etude.speech.synthesise import Speech
from etude.store import Blobs, Database

_RATE: Final = 16_000
_LEASE_S: Final = 30.0
_ATTEMPTS: Final = 10


class Workshop:
    """Courses of one installation, with a voice that hums, and a worker on demand."""

    def __init__(self, settings: Settings, database: Database, clock: Clock | None = None) -> None:
        """Work on an open database; its folders are those of `settings`."""
        self.settings = settings
        self.database = database
        self.clock = clock or SystemClock()
        ids = RandomIds()
        blobs = Blobs(settings.blobs, self.clock)
        authors = known_authors(blobs, SpokenVoice(hummed, ["en"]))
        self.publisher = publisher_for(settings, database, self.clock)
        self.courses = open_courses(
            database, blobs, self.clock, ids, classrooms=settings.classrooms, authors=authors
        )
        self._runs = course_runs(
            database,
            self.clock,
            ids,
            classrooms=settings.classrooms,
            authors=authors,
            publisher=self.publisher,
        )

    async def work(self) -> int:
        """Carry out every job of a course that is due; return how many there were."""
        claims = Claims(
            self.database,
            self.clock,
            executor=RandomIds().new(),
            lease_s=_LEASE_S,
            max_attempts={RUN: _ATTEMPTS},
            periods_s={},
        )
        jobs = [one for one in await claims.claim(_ATTEMPTS) if one.kind == RUN]
        for job in jobs:
            await self._runs(job)
            await claims.finish_rest(job)
        return len(jobs)

    async def planned(self, *, narrated: bool = True) -> Course:
        """Return a course whose framework waits for confirmation."""
        request = CourseRequest(
            requirement="English for every day",
            materials=(sample(SAMPLES[0]),),
            narrated=narrated,
        )
        made = await self.courses.create(request, "staff:o")
        await self.work()
        return await self.courses.get(made.course_id)

    async def made(self, *, narrated: bool = True) -> Course:
        """Return a course whose modules are all made."""
        planned = await self.planned(narrated=narrated)
        await self.courses.start(planned.course_id, without_audio=not narrated)
        await self.work()
        return await self.courses.get(planned.course_id)

    async def regenerated(self, course_id: str, indexes: Sequence[int]) -> Course:
        """Make modules anew, one by one, and only those."""
        for index in indexes:
            await self.courses.retry(course_id, index)
            await self.work()
        return await self.courses.get(course_id)

    async def publish(self, course_id: str) -> Published:
        """Publish a course as an operator does."""
        return await publication.publish(self.courses, self.publisher, course_id, HOST)


def hummed(text: str, language: str, rate: float) -> Speech:
    """Return a tone instead of words: its pitch and length follow from the text."""
    del rate
    samples = np.arange(_RATE // 5 + 400 * min(len(text), 40))
    wave = 8000 * np.sin(samples * (sum(text.encode()) % 400 + 200) * 2 * np.pi / _RATE)
    sound = Pcm(sample_rate=_RATE, samples=wave.astype("<i2").tobytes())
    return Speech(
        sound=sound, engine="hum", model="hum", licence="CC0-1.0", notice="", language=language
    )
