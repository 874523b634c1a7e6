"""Courses put together over an open database: the same for the server, the worker, the commands."""

from collections.abc import Mapping
from pathlib import Path

from etude.authoring.authors import Author, OutlineAuthor, Voice
from etude.authoring.courses import Courses
from etude.authoring.publication import publishes, source_of, still_active
from etude.authoring.records import Course
from etude.authoring.runs import CourseRuns
from etude.classroom.library import ClassroomLibrary
from etude.clock import Clock, Ids
from etude.courseware.publishing import CoursePublisher
from etude.speech.audio import duration_ms
from etude.store import Blobs, Database


def known_authors(
    blobs: Blobs, voice: Voice | None = None, model: Author | None = None
) -> Mapping[str, Author]:
    """Return the authors of an installation.

    Args:
        blobs: holds the recordings of material.
        voice: speaks for them, if there is one.
        model: the one that asks a model, if there is one (`etude.authoring.model.configured`).
    """
    outline = OutlineAuthor(blobs.file_of, duration_ms, voice)
    return {"outline": outline} if model is None else {"outline": outline, "llm": model}


def open_courses(
    database: Database,
    blobs: Blobs,
    clock: Clock,
    ids: Ids,
    *,
    classrooms: Path,
    authors: Mapping[str, Author],
) -> Courses:
    """Return the courses of an installation; `classrooms` is the folder of its classrooms."""
    return Courses(database, ClassroomLibrary(classrooms), blobs, clock, ids, authors)


def course_runs(
    database: Database,
    clock: Clock,
    ids: Ids,
    *,
    classrooms: Path,
    authors: Mapping[str, Author],
    publisher: CoursePublisher,
) -> CourseRuns:
    """Return the handler of `authoring.run` jobs."""

    async def publish(course: Course) -> object:
        return await publisher.publish(source_of(course), publishes(course), still_active(course))

    return CourseRuns(database, ClassroomLibrary(classrooms), clock, ids, authors, publish)
