"""What can be wrong with practising a scene of a published course.

Messages: `i18n/*/course_lessons.toml`.
"""

from etude.errors import ConflictError, InvalidError, NotFoundError


class CourseModuleMissingError(NotFoundError):
    """The published course has no module of this number. Parameters `module`, `last`."""

    code = "COURSE_MODULE_MISSING"


class PracticeSceneNoneError(ConflictError):
    """The module has nothing to practise."""

    code = "PRACTICE_SCENE_NONE"


class PracticeSceneSeveralError(ConflictError):
    """The module has several scenes to practise, and none was named. Parameter `scenes`."""

    code = "PRACTICE_SCENE_SEVERAL"


class PracticeSceneUnknownError(NotFoundError):
    """The module has no such scene, or nothing is practised in it. Parameter `scenes`."""

    code = "PRACTICE_SCENE_UNKNOWN"


class CourseTaskError(InvalidError):
    """The task cannot practise a scene: it is no follow-read, or there is none of its language."""

    code = "COURSE_TASK_UNFIT"


class CourseClipUnplayableError(InvalidError):
    """The sound of a sentence cannot be played by a toy. Parameters `clip`, `reason`."""

    code = "COURSE_CLIP_UNPLAYABLE"
