"""Courses on this machine's own database: put together for the worker and for `etude course`."""

import contextlib
from collections.abc import Iterator, Mapping

from etude.authoring.authors import Author, Voice
from etude.authoring.composition import course_runs, known_authors, open_courses
from etude.authoring.courses import Courses
from etude.authoring.model.configured import model_author
from etude.authoring.records import RUN
from etude.authoring.unwanted import UNWANTED, ModuleRemoval
from etude.authoring.voices import SpokenVoice
from etude.classroom.library import ClassroomLibrary
from etude.cli.assessing import speech_pool
from etude.cli.speech_options import speech_options
from etude.clock import Clock, RandomIds
from etude.courseware.publishers import publisher_for
from etude.errors import EtudeError
from etude.jobs import Handler
from etude.settings import Settings
from etude.speech.models import Models
from etude.speech.pool import SpeechPool
from etude.speech.synthesise import Speech
from etude.store import Blobs, Database


def voice_of(settings: Settings, pool: SpeechPool | None) -> Voice | None:
    """Return the configured voice, spoken by a pool's engines; None if it is not installed."""
    if pool is None:
        return None
    languages = _languages(settings)
    if languages is not None and not languages:
        return None

    def speak(text: str, language: str, rate: float) -> Speech:
        return pool.synthesise(text, language=language, rate=rate).result()

    return SpokenVoice(speak, languages)


@contextlib.contextmanager
def course_voice(settings: Settings) -> Iterator[Voice | None]:
    """Yield the configured voice for one command; engines start when it first speaks."""
    pool = speech_pool(settings)
    try:
        yield voice_of(settings, pool)
    finally:
        if pool is not None:
            pool.close()


def _languages(settings: Settings) -> tuple[str, ...] | None:
    """Return what the configured voice speaks: () = it is not installed, None = a server's."""
    options = speech_options(settings)
    if options.voice_server is not None:
        return None
    try:
        models = Models(options.models)
        models.require(options.voice)
        return tuple(models.card(options.voice).languages)
    except EtudeError:
        return ()


def authors_here(
    settings: Settings, database: Database, clock: Clock, voice: Voice | None
) -> Mapping[str, Author]:
    """Return the authors of this installation."""
    blobs = Blobs(settings.blobs, clock)
    return known_authors(blobs, voice, model_author(settings, database, blobs, clock, voice))


def courses_here(
    settings: Settings, database: Database, clock: Clock, voice: Voice | None
) -> Courses:
    """Return the courses of this installation."""
    blobs = Blobs(settings.blobs, clock)
    return open_courses(
        database,
        blobs,
        clock,
        RandomIds(),
        classrooms=settings.classrooms,
        authors=authors_here(settings, database, clock, voice),
    )


def course_handlers(
    settings: Settings, database: Database, clock: Clock, voice: Voice | None
) -> Mapping[str, Handler]:
    """Return what carries out each kind of job of courses."""
    runs = course_runs(
        database,
        clock,
        RandomIds(),
        classrooms=settings.classrooms,
        authors=authors_here(settings, database, clock, voice),
        publisher=publisher_for(settings, database, clock),
    )
    removal = ModuleRemoval(database, ClassroomLibrary(settings.classrooms))
    return {RUN: runs, UNWANTED: removal}
