"""Practice scenes of published courseware, as web assigns and gateways practise them. Pure."""

import hashlib
import re
from pathlib import PurePosixPath
from typing import Final

import msgspec

from etude.classroom.model import Classroom, PracticeContent, Scene
from etude.practice.apps import Apps
from etude.practice.assigned import CoursewarePin
from etude.practice.course_errors import (
    CourseClipUnplayableError,
    CourseTaskError,
    PracticeSceneNoneError,
    PracticeSceneSeveralError,
    PracticeSceneUnknownError,
)
from etude.practice.records import Mode
from etude.practice.tasks import Activity, Task
from etude.rubric.library import rubric_digest
from etude.rubric.loading import rubric_from
from etude.rubric.model import Rubric
from etude.speech.audio import SUFFIXES

PLAYABLE: Final = SUFFIXES | {".opus"}
_ID_DIGITS: Final = 24
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")


class PracticeScene(msgspec.Struct, frozen=True, kw_only=True):
    """A scene whose sentences are listened to and repeated."""

    scene_id: str
    title: str
    content: PracticeContent

    @property
    def language(self) -> str:
        """`zh-CN` if most sentences have Chinese characters, else `en`."""
        chinese = sum(_HAN.search(clip.text) is not None for clip in self.content.clips)
        return "zh-CN" if 2 * chinese > len(self.content.clips) else "en"

    @property
    def rubric(self) -> Rubric:
        """The rubric that is embedded.

        Raises:
            DocumentInvalidError: it is none. No courseware that passed its checks has such a one.
        """
        return rubric_from(self.content.rubric or {}, self.scene_id)

    @property
    def rubric_named(self) -> dict[str, str]:
        """What `session_start.meta.rubric` says: id and version for people, the digest decides."""
        rubric = self.rubric
        return {"id": rubric.id, "version": rubric.version, "digest": rubric_digest(rubric)}


def practice_scene(classroom: Classroom, scene_id: str | None) -> PracticeScene:
    """Return a practice scene of a classroom; without a name the only one that there is.

    Raises:
        PracticeSceneNoneError: there is none.
        PracticeSceneUnknownError: there is none of this name.
        PracticeSceneSeveralError: there are several, and none is named.
    """
    scenes = [one for one in classroom.in_order if isinstance(one.content, PracticeContent)]
    known = ", ".join(f"{one.id} ({one.title})" for one in scenes)
    if not scenes:
        raise PracticeSceneNoneError
    if scene_id is not None:
        scenes = [one for one in scenes if one.id == scene_id]
        if not scenes:
            raise PracticeSceneUnknownError(scene=scene_id[:128], scenes=known)
    if len(scenes) > 1:
        raise PracticeSceneSeveralError(scenes=known)
    return _practised(scenes[0])


def require_playable(scene: PracticeScene) -> None:
    """Refuse a scene with a kind of sound that toys have not, while somebody can change it.

    Raises:
        CourseClipUnplayableError: naming the first such sound.
    """
    for clip in scene.content.clips:
        suffix = PurePosixPath(clip.audio_ref or "").suffix
        if suffix not in PLAYABLE:
            raise CourseClipUnplayableError(clip=clip.text[:80], reason=suffix or "-")


def lesson_id_of(pin: CoursewarePin) -> str:
    """Return the lesson's id of a scene: another one for every version, the same everywhere."""
    named = f"{pin.courseware_id}\0{pin.version}\0{pin.content_hash}\0{pin.scene_id}"
    return "cw-" + hashlib.sha256(named.encode()).hexdigest()[:_ID_DIGITS]


def task_for(apps: Apps, language: str, address: tuple[str, str] | None = None) -> Task:
    """Return the task in which a scene is practised: the named one, else the first of its language.

    Raises:
        TaskUnknownError: no app declares the named one.
        CourseTaskError: it is no follow-read, or no follow-read of that language is installed.
    """
    if address is not None:
        named = apps.task(*address)
        if not _follows(named):
            raise CourseTaskError(task=f"{address[0]}/{address[1]}", language=language)
        return named
    found = next((one for one in apps if _follows(one) and one.language == language), None)
    if found is None:
        raise CourseTaskError(task="-", language=language)
    return found


def _follows(task: Task) -> bool:
    return task.mode is Mode.SHADOWING and task.activity is Activity.FOLLOW_READ


def _practised(scene: Scene) -> PracticeScene:
    content = scene.content
    if not isinstance(content, PracticeContent):
        raise PracticeSceneNoneError
    return PracticeScene(scene_id=scene.id, title=scene.title, content=content)
