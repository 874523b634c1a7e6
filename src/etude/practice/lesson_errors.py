"""What can go wrong with building and installing lessons. Messages: `i18n/*/lessons.toml`."""

from etude.errors import ConflictError, InvalidError, NotFoundError, UnavailableError


class LessonFolderUnknownError(NotFoundError):
    """There is no such folder, or it cannot be read."""

    code = "LESSON_FOLDER_UNKNOWN"


class LessonFaultyError(InvalidError):
    """The lesson has errors, so it is not installed."""

    code = "LESSON_FAULTY"


class LessonNameError(InvalidError):
    """An app, task or lesson cannot have that name."""

    code = "LESSON_NAME_INVALID"


class LessonExistsError(ConflictError):
    """Another lesson is installed under that name."""

    code = "LESSON_EXISTS"


class LessonChangedError(ConflictError):
    """A file of the lesson changed while it was being installed; nothing was."""

    code = "LESSON_CHANGED"


class LessonUnwritableError(UnavailableError):
    """The disk did not take the lesson or its manifest."""

    code = "LESSON_UNWRITABLE"


class LessonVoiceLanguageError(InvalidError):
    """The configured voice does not speak the language of a text; nothing was spoken."""

    code = "LESSON_VOICE_LANGUAGE"


class LessonPackError(UnavailableError):
    """A lesson that web has installed cannot be had whole. Parameter `reason`."""

    code = "LESSON_PACK_UNAVAILABLE"
