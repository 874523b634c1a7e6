"""What can go wrong with a single classroom and the job that makes it."""

from etude.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ThrottledError,
)


class ClassroomJobUnknownError(NotFoundError):
    """There is no such job, or it is somebody else's."""

    code = "CLASSROOM_JOB_UNKNOWN"


class ClassroomJobStateError(ConflictError):
    """The job is not in a state that allows this."""

    code = "CLASSROOM_JOB_STATE"


class ClassroomJobsAtOnceError(ThrottledError):
    """So many classrooms of one owner are being made already as may be at once."""

    code = "CLASSROOM_JOBS_AT_ONCE"


class ClassroomsADayError(ThrottledError):
    """One owner asked for as many classrooms as may be in a day."""

    code = "CLASSROOMS_A_DAY"


class ClassroomRecordingsForbiddenError(ForbiddenError):
    """Recordings of the material are for whoever operates the installation to name."""

    code = "CLASSROOM_RECORDINGS_FORBIDDEN"


class LessonOutlineChangedError(ConflictError):
    """Somebody else changed the outline meanwhile."""

    code = "LESSON_OUTLINE_CHANGED"
    status = 412


class LessonOutlineRevisionMissingError(InvalidError):
    """An edit names the revision of the outline that it replaces (`If-Match`)."""

    code = "LESSON_OUTLINE_REVISION_MISSING"
    status = 428


class LessonWithoutActivityError(InvalidError):
    """A lesson was made without an activity: it is not kept."""

    code = "LESSON_WITHOUT_ACTIVITY"


class ClassroomRevisionMissingError(InvalidError):
    """An edit names the revision of the classroom that it replaces (`If-Match`)."""

    code = "CLASSROOM_REVISION_MISSING"
    status = 428


class ClassroomInCourseError(ConflictError):
    """A course is made of the classroom: it cannot be removed."""

    code = "CLASSROOM_IN_COURSE"


class ClassroomWorkerLostError(InvalidError):
    """Whoever made the classroom died too often; ask again."""

    code = "CLASSROOM_WORKER_LOST"
