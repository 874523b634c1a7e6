"""What can go wrong while a course is made."""

from etude.errors import ConflictError, EtudeError, InvalidError, NotFoundError


class MaterialUnreadableError(InvalidError):
    """A file of the material is no text in UTF-8, or too long."""

    code = "MATERIAL_UNREADABLE"


class MaterialLineTooLongError(InvalidError):
    """A sentence, word or meaning of the material is longer than a slide or clip can hold."""

    code = "MATERIAL_LINE_TOO_LONG"


class MaterialUnknownError(NotFoundError):
    """There is no such file or folder."""

    code = "MATERIAL_UNKNOWN"


class MaterialTooLittleError(InvalidError):
    """There is not enough to make four modules of."""

    code = "MATERIAL_TOO_LITTLE"


class MaterialTooMuchError(InvalidError):
    """There is more than fifteen modules can hold."""

    code = "MATERIAL_TOO_MUCH"


class MaterialTwiceError(InvalidError):
    """Two files of the material have one name."""

    code = "MATERIAL_TWICE"


class LessonMaterialTooLittleError(InvalidError):
    """There is not enough for a lesson."""

    code = "LESSON_MATERIAL_TOO_LITTLE"


class LessonMaterialTooMuchError(InvalidError):
    """There is more than a lesson can hold: it is a course."""

    code = "LESSON_MATERIAL_TOO_MUCH"


class LessonStepsMissingError(InvalidError):
    """A task is wanted, and the material has no steps in an order."""

    code = "LESSON_STEPS_MISSING"


class LessonOutlineInvalidError(InvalidError):
    """An outline breaks its rules; the parts say which, each with its path."""

    code = "LESSON_OUTLINE_INVALID"


class LessonOutlineMistakeError(InvalidError):
    """One mistake of an outline."""

    code = "LESSON_OUTLINE_MISTAKE"


class FrameworkInvalidError(InvalidError):
    """A framework breaks its rules; the parts say which, each with its path."""

    code = "FRAMEWORK_INVALID"


class FrameworkMistakeError(InvalidError):
    """One mistake of a framework."""

    code = "FRAMEWORK_MISTAKE"


class FrameworkChangedError(ConflictError):
    """Somebody else changed the framework meanwhile."""

    code = "FRAMEWORK_CHANGED"


class FrameworkRevisionMissingError(InvalidError):
    """An edit names the revision that it replaces (`If-Match`)."""

    code = "FRAMEWORK_REVISION_MISSING"
    status = 428


class CourseUnknownError(NotFoundError):
    """There is no such course."""

    code = "COURSE_UNKNOWN"


class CourseModuleUnknownError(NotFoundError):
    """The course has no module of this index."""

    code = "COURSE_MODULE_UNKNOWN"


class CourseRunActiveError(ConflictError):
    """Something is being done to the course already; one thing at a time."""

    code = "COURSE_RUN_ACTIVE"


class CourseNoRunError(ConflictError):
    """Nothing is being done to the course: there is nothing to cancel."""

    code = "COURSE_NO_RUN"


class CourseStateError(ConflictError):
    """The course is not in a state that allows this."""

    code = "COURSE_STATE"


class CourseAudioMissingError(ConflictError):
    """Sentences have neither a recording nor a voice; generation begins only if that is wanted."""

    code = "COURSE_AUDIO_MISSING"


class CourseVoiceMissingError(ConflictError):
    """A course is to be spoken, and no voice speaks its language here."""

    code = "COURSE_VOICE_MISSING"


class ContinuityBrokenError(ConflictError):
    """An earlier module is not there as it has to be before a later one can be made."""

    code = "CONTINUITY_BROKEN"


class ActivityMissingError(InvalidError):
    """A module was made without an activity: it is not kept."""

    code = "MODULE_WITHOUT_ACTIVITY"


class ModuleMaterialMissingError(InvalidError):
    """The framework has a module that the material knows nothing of."""

    code = "MODULE_MATERIAL_MISSING"


class AuthorFailedError(EtudeError):
    """The author failed in a way that nobody foresaw: a defect."""

    code = "AUTHOR_FAILED"


class AuthorUnknownError(InvalidError):
    """There is no author of this name here."""

    code = "AUTHOR_UNKNOWN"
