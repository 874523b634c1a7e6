"""What can go wrong with assignments. Messages: `i18n/*/assignments.toml`."""

from etude.errors import InvalidError, NotFoundError


class AssignmentUnknownError(NotFoundError):
    """No assignment has this id."""

    code = "ASSIGNMENT_UNKNOWN"


class AssignmentHolderError(InvalidError):
    """An assignment is of a learner, a class or a device: exactly one of them must be named."""

    code = "ASSIGNMENT_HOLDER"


class AssignedLessonError(InvalidError):
    """An assignment is of a lesson, of a course's scene, or of a pinned scene: exactly one."""

    code = "ASSIGNED_LESSON"


class AssignmentIntervalError(InvalidError):
    """An assignment must end after it starts."""

    code = "ASSIGNMENT_INTERVAL_EMPTY"


class AssignmentRatioError(InvalidError):
    """The ratio of window to clip is outside of what a follow-read takes."""

    code = "ASSIGNMENT_RATIO"


class LessonPathError(InvalidError):
    """What should name a lesson is not `APP/TASK/LESSON`."""

    code = "LESSON_PATH_INVALID"


class TaskNotAssignableError(InvalidError):
    """The task has no lessons, or leaves no record of what was practised."""

    code = "TASK_NOT_ASSIGNABLE"


class LessonNotInstalledError(NotFoundError):
    """The task has no such lesson in the server's own folder, or none with a clip."""

    code = "LESSON_NOT_INSTALLED"
