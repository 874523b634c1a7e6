"""Assignments as values, without a database: what web tells gateways, and which one counts.

An *assignment* binds a learner, a class or a device to a lesson for a time. Down the link go
`AssignmentNews` (kind `ASSIGNMENTS`).
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from etude.clock import to_us

ASSIGNMENTS: Final = "assignment"


class CoursewarePin(msgspec.Struct, frozen=True, kw_only=True):
    """The practice scene that a lesson was taken from, in exactly one version of a courseware."""

    courseware_id: str
    version: int
    content_hash: str
    scene_id: str


class LessonAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Which lesson, by its place: `<data>/lessons/{app_id}/{task_id}/lessons/{lesson_id}`."""

    app_id: str
    task_id: str
    lesson_id: str


class Assigned(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment as a gateway is to know it: of one learner, one class, or one device.

    Attributes:
        assignment_key: grows with every assignment that is made.
        assignment_id: what sessions carry.
        learner_key: whose it is, on whichever device; or
        class_key: of whoever is in this class at that moment, on whichever device; or
        device_id: the device that plays it, whoever has it.
        lesson: what is practised.
        starts_us: it counts from then (µs since 1970) …
        ends_us: … until just before then; None: until further notice.
        listen_ratio: how long its windows are; None: as the task says.
        courseware: where the lesson comes from, if that is a published course.
    """

    assignment_key: int
    assignment_id: str
    lesson: LessonAddress
    starts_us: int
    ends_us: int | None = None
    learner_key: int | None = None
    class_key: int | None = None
    device_id: str | None = None
    listen_ratio: float | None = None
    courseware: CoursewarePin | None = None

    def covers(self, at_us: int) -> bool:
        """Whether it counts at that time."""
        return self.starts_us <= at_us and (self.ends_us is None or at_us < self.ends_us)


class AssignmentNews(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment as it is now; `assigned` is None if it was withdrawn, is over, or erased."""

    assignment_key: int
    assigned: Assigned | None = None


def current(assignments: Iterable[Assigned], at: datetime) -> Assigned | None:
    """Return what counts at `at` among those of a device, of who has it, and of their classes.

    A learner's own comes before a class's, and that before the device's. Of several, also of
    several classes, the one that starts last is meant, and of those that start together the one
    that was made last.
    """
    at_us = to_us(at)
    return max(
        (each for each in assignments if each.covers(at_us)),
        key=lambda each: (_rank(each), each.starts_us, each.assignment_key),
        default=None,
    )


def _rank(assigned: Assigned) -> int:
    if assigned.learner_key is not None:
        return 2
    return 1 if assigned.class_key is not None else 0
