"""Whether a lesson can be assigned: its task records, and it is there."""

from pathlib import Path
from typing import Final

from etude.practice.apps import Apps
from etude.practice.assigned import LessonAddress
from etude.practice.assignments.errors import (
    LessonNotInstalledError,
    LessonPathError,
    TaskNotAssignableError,
)
from etude.practice.lesson_folders import clip_files, lesson_folder
from etude.practice.records import Mode
from etude.practice.tasks import IDENTIFIER

_PARTS: Final = 3


def parse_address(path: str) -> LessonAddress:
    """Read `APP/TASK/LESSON`; raises `LessonPathError`."""
    parts = path.split("/")
    if len(parts) != _PARTS or not all(IDENTIFIER.fullmatch(part) for part in parts):
        raise LessonPathError(path=path[:120])
    return LessonAddress(app_id=parts[0], task_id=parts[1], lesson_id=parts[2])


def require_lesson(apps: Apps, root: Path, address: LessonAddress) -> None:
    """Check that a lesson can be practised and leaves a record. Looks at the disk.

    Args:
        apps: those that the gateway has.
        root: the folder of installed lessons.
        address: which lesson.

    Raises:
        TaskUnknownError: no app declares the task.
        TaskNotAssignableError: it has no lessons, or is not recorded (the repeater).
        LessonNotInstalledError: the lesson is not in the server's folder.
    """
    task = apps.task(address.app_id, address.task_id)
    if task.mode is not Mode.SHADOWING or not task.needs_card:
        raise TaskNotAssignableError(app_id=address.app_id, task_id=address.task_id)
    folder = lesson_folder(root, address.app_id, address.task_id, address.lesson_id)
    if folder is None or not clip_files(folder):
        raise LessonNotInstalledError(
            lesson=f"{address.app_id}/{address.task_id}/{address.lesson_id}"[:120]
        )
