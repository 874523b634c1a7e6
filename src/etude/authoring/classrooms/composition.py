"""Single classrooms put together over an open database: for the server, worker and commands."""

from collections.abc import Mapping

from etude.authoring.authors import LessonAuthor, OutlineAuthor, Voice
from etude.authoring.classrooms.jobs import ClassroomJobs, Quota
from etude.authoring.classrooms.making import (
    TIDY,
    ClassroomMaking,
    ClassroomRemoval,
    ClassroomTidying,
)
from etude.authoring.classrooms.records import MAKE, REMOVE
from etude.authoring.classrooms.shelf import Shelf
from etude.classroom.library import ClassroomLibrary
from etude.clock import Clock, Ids
from etude.jobs import Handler
from etude.settings import Settings
from etude.speech.audio import duration_ms
from etude.store import Blobs, Database


def lesson_authors(
    blobs: Blobs, voice: Voice | None = None, model: LessonAuthor | None = None
) -> Mapping[str, LessonAuthor]:
    """Return the authors of an installation.

    Args:
        blobs: holds the recordings of material.
        voice: speaks for them, if there is one.
        model: the one that asks a model, if there is one (`etude.authoring.model.configured`).
    """
    outline = OutlineAuthor(blobs.file_of, duration_ms, voice)
    return {"outline": outline} if model is None else {"outline": outline, "llm": model}


def open_classroom_jobs(
    database: Database,
    blobs: Blobs,
    clock: Clock,
    ids: Ids,
    settings: Settings,
    authors: Mapping[str, LessonAuthor],
) -> ClassroomJobs:
    """Return the jobs of an installation that make classrooms."""
    return ClassroomJobs(database, blobs, clock, ids, authors, _quota(settings))


def open_shelf(database: Database, clock: Clock, ids: Ids, settings: Settings) -> Shelf:
    """Return the classrooms of an installation."""
    return Shelf(database, settings.classrooms, clock, ids, _quota(settings))


def classroom_handlers(
    database: Database,
    blobs: Blobs,
    clock: Clock,
    ids: Ids,
    settings: Settings,
    authors: Mapping[str, LessonAuthor],
) -> Mapping[str, Handler]:
    """Return what carries out each kind of job of single classrooms."""
    library = ClassroomLibrary(settings.classrooms)
    jobs = open_classroom_jobs(database, blobs, clock, ids, settings, authors)
    return {
        MAKE: ClassroomMaking(database, library, blobs, clock, ids, authors),
        REMOVE: ClassroomRemoval(database, library),
        TIDY: ClassroomTidying(database, library, jobs, clock),
    }


def _quota(settings: Settings) -> Quota:
    return Quota(at_once=settings.classrooms_at_once, a_day=settings.classrooms_a_day)
