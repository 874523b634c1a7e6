"""Courses put together over an open database: the same for the server, the worker, the commands."""

from collections.abc import Mapping
from pathlib import Path

from etude.authoring.authors import Author, OutlineAuthor, Voice
from etude.authoring.courses import Courses
from etude.authoring.publication import Publishing, source_of
from etude.authoring.records import Course
from etude.authoring.runs import CourseRuns
from etude.classroom.library import ClassroomLibrary
from etude.clock import Clock, Ids
from etude.speech.audio import duration_ms
from etude.store import Blobs, Database


def known_authors(blobs: Blobs, voice: Voice | None = None) -> Mapping[str, Author]:
    """Return the authors that need no network; `voice` speaks for them, if there is one."""
    return {"outline": OutlineAuthor(blobs.file_of, duration_ms, voice)}


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
    publisher: Publishing,
) -> CourseRuns:
    """Return the handler of `authoring.run` jobs."""

    async def publish(course: Course) -> object:
        return await publisher.publish(source_of(course))

    return CourseRuns(database, ClassroomLibrary(classrooms), clock, ids, authors, publish)
