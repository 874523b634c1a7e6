"""What an assignment is of, as a body names it: an installed lesson, or a scene of a course."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from etude.classroom.fields import END
from etude.courseware.bundle_errors import (
    BundleClassroomError,
    BundleDamagedError,
    BundleHashMismatchError,
    BundleIncompleteError,
    BundleUnsafeError,
)
from etude.courseware.errors import (
    BundleStoredMissingError,
    CourseUnpublishedError,
    CoursewareUnknownError,
    LegacyManifestError,
    ManifestUnpinnedError,
    ManifestWithdrawnError,
    PinHashMismatchError,
)
from etude.errors import EtudeError
from etude.practice.apps import installed_apps
from etude.practice.assigned import CoursewarePin, LessonAddress
from etude.practice.assignments.errors import (
    AssignedLessonError,
    LessonNotInstalledError,
    TaskNotAssignableError,
)
from etude.practice.assignments.lesson_addresses import require_lesson
from etude.practice.assignments.published_scenes import (
    CourseWish,
    PublishedScene,
    find_in_course,
    find_pinned,
)
from etude.practice.course_errors import (
    CourseClipUnplayableError,
    CourseModuleMissingError,
    CourseTaskError,
    PracticeSceneNoneError,
    PracticeSceneSeveralError,
    PracticeSceneUnknownError,
)
from etude.practice.errors import TaskUnknownError
from etude.practice.tasks import IDENTIFIER
from etude.settings import Settings
from etude.web.services import Services

LESSON_ERRORS: Final[tuple[type[EtudeError], ...]] = (
    AssignedLessonError,
    TaskUnknownError,
    TaskNotAssignableError,
    LessonNotInstalledError,
    CourseUnpublishedError,
    CoursewareUnknownError,
    ManifestWithdrawnError,
    ManifestUnpinnedError,
    LegacyManifestError,
    PinHashMismatchError,
    CourseModuleMissingError,
    PracticeSceneNoneError,
    PracticeSceneSeveralError,
    PracticeSceneUnknownError,
    CourseTaskError,
    CourseClipUnplayableError,
    BundleStoredMissingError,
    BundleUnsafeError,
    BundleDamagedError,
    BundleHashMismatchError,
    BundleIncompleteError,
    BundleClassroomError,
)
_LARGEST: Final = 2**31 - 1
_Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}" + END)]
_SceneId = Annotated[str, Meta(min_length=1, max_length=128)]
_Version = Annotated[int, Meta(ge=1, le=_LARGEST)]
Name = Annotated[str, Meta(pattern=f"^{IDENTIFIER.pattern}{END}")]


class CourseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A practice scene of a course: what the version has now is assigned for good.

    `module` is counted from 0. `version` null: the newest. `scene_id` null: the only one.
    """

    course_id: _Id
    module: Annotated[int, Meta(ge=0, le=1000)]
    version: _Version | None = None
    scene_id: _SceneId | None = None


class PinBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A practice scene by its pin."""

    courseware_id: _Id
    version: _Version
    content_hash: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]
    scene_id: _SceneId


class LessonBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is assigned: exactly one of `lesson_id` (of a task), `course` and `courseware`.

    A scene is practised in the task `app_id`, `task_id`; null: in the first follow-read of its
    language.
    """

    app_id: Name | None = None
    task_id: Name | None = None
    lesson_id: Name | None = None
    course: CourseBody | None = None
    courseware: PinBody | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was named, and that it is there. `scene` None: an installed lesson."""

    address: LessonAddress
    scene: PublishedScene | None = None

    @property
    def pin(self) -> CoursewarePin | None:
        """The pin of the scene."""
        return None if self.scene is None else self.scene.pin


async def found_lesson(services: Services, body: LessonBody) -> Found:
    """Return what a body names; raises `LESSON_ERRORS`."""
    named = (body.app_id is None, body.task_id is None)
    ways = (body.lesson_id, body.course, body.courseware)
    if sum(each is not None for each in ways) != 1 or named[0] != named[1]:
        raise AssignedLessonError
    scene = await _scene(services, body)
    settings = services.settings
    return await services.in_thread(_addressed, settings, body, scene)


async def _scene(services: Services, body: LessonBody) -> PublishedScene | None:
    if body.course is not None:
        wish = CourseWish(**msgspec.structs.asdict(body.course))
        folder = services.settings.course_manifests
        return await find_in_course(services.database, services.blobs, wish, folder)
    if body.courseware is not None:
        pin = CoursewarePin(**msgspec.structs.asdict(body.courseware))
        return await find_pinned(services.database, services.blobs, pin)
    return None


def _addressed(settings: Settings, body: LessonBody, scene: PublishedScene | None) -> Found:
    apps = installed_apps(settings.apps)
    task = None
    if body.app_id is not None and body.task_id is not None:
        task = (body.app_id, body.task_id)
    if scene is not None:
        return Found(address=scene.address(apps, task), scene=scene)
    if task is None:
        raise AssignedLessonError
    address = LessonAddress(app_id=task[0], task_id=task[1], lesson_id=body.lesson_id or "")
    require_lesson(apps, settings.lessons, address)
    return Found(address=address)
