"""Assignments as values. Keys are the database's; ids are what the world sees."""

from datetime import datetime

import msgspec

from etude.practice.assigned import CoursewarePin, LessonAddress


class NewAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for.

    Attributes:
        lesson: what is to be practised.
        learner_id: by whom, on whichever device they have; or
        class_id: by whoever is in this class then, on whichever device they have; or
        device_id: on which device, by whoever has it. Exactly one of the three.
        starts_at: from when on; None: from now on.
        ends_at: until just before when; None: until further notice.
        listen_ratio: how long its windows are; None: as the task says.
        courseware: which scene of which courseware the lesson was made from, by whoever put it in
            its place; None: it is of nobody else's making.
    """

    lesson: LessonAddress
    learner_id: str | None = None
    class_id: str | None = None
    device_id: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    listen_ratio: float | None = None
    courseware: CoursewarePin | None = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment as it is stored. `withdrawn_at`: it counts no more."""

    assignment_key: int
    assignment_id: str
    app_id: str
    task_id: str
    lesson_id: str
    learner_key: int | None
    learner_id: str | None
    class_key: int | None
    class_id: str | None
    device_key: int | None
    device_id: str | None
    listen_ratio: float | None
    courseware: CoursewarePin | None
    starts_at: datetime
    ends_at: datetime | None
    created_at: datetime
    withdrawn_at: datetime | None
