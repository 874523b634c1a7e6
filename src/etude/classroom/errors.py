"""What can be wrong with a classroom, its files, and archives that claim to hold one."""

from etude.errors import (
    ConflictError,
    InvalidError,
    MalformedError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
    UnsupportedError,
)


class ClassroomInvalidError(InvalidError):
    """A classroom has mistakes; the first 200 are parts. Parameter `mistakes`, their number."""

    code = "CLASSROOM_INVALID"


class ClassroomMistakeError(InvalidError):
    """One mistake: parameter `path` (`scenes[3].content.questions[1].answer`), and its kind's."""

    code = "CLASSROOM_MISTAKE"


class ClassroomKeyUnknownError(ClassroomMistakeError):
    """A key is not known here."""

    code = "CLASSROOM_KEY_UNKNOWN"


class ClassroomKeyMissingError(ClassroomMistakeError):
    """A key is missing."""

    code = "CLASSROOM_KEY_MISSING"


class ClassroomNotAError(ClassroomMistakeError):
    """A value is of another kind."""

    code = "CLASSROOM_NOT_A"


class ClassroomNotOneOfError(ClassroomMistakeError):
    """A word is none of the known ones."""

    code = "CLASSROOM_NOT_ONE_OF"


class ClassroomEmptyError(ClassroomMistakeError):
    """A list or mapping is empty."""

    code = "CLASSROOM_EMPTY"


class ClassroomOutOfBoundsError(ClassroomMistakeError):
    """A value is outside its bounds."""

    code = "CLASSROOM_OUT_OF_BOUNDS"


class ClassroomTwiceError(ClassroomMistakeError):
    """A name is used twice."""

    code = "CLASSROOM_TWICE"


class ClassroomNameUnknownError(ClassroomMistakeError):
    """A name refers to nothing in the classroom."""

    code = "CLASSROOM_NAME_UNKNOWN"


class ClassroomNotSameError(ClassroomMistakeError):
    """Two values that have to be the same are not."""

    code = "CLASSROOM_NOT_SAME"


class ClassroomTeachersError(ClassroomMistakeError):
    """There is not exactly one teacher."""

    code = "CLASSROOM_TEACHERS"


class ClassroomQuizOptionsError(ClassroomMistakeError):
    """A choice has fewer than two options, or a short answer has some."""

    code = "CLASSROOM_QUIZ_OPTIONS"


class ClassroomQuizAnswerError(ClassroomMistakeError):
    """An answer is none of the options, or there are too few or too many answers."""

    code = "CLASSROOM_QUIZ_ANSWER"


class ClassroomActivityEmptyError(ClassroomMistakeError):
    """An activity has neither a page nor an address."""

    code = "CLASSROOM_ACTIVITY_EMPTY"


class ClassroomNoInstructorError(ClassroomMistakeError):
    """A project has nobody who instructs."""

    code = "CLASSROOM_NO_INSTRUCTOR"


class ClassroomActionMisplacedError(ClassroomMistakeError):
    """An action is in a scene of a type that it is not for."""

    code = "CLASSROOM_ACTION_MISPLACED"


class ClassroomReferenceError(ClassroomMistakeError):
    """A reference to a picture, film or sound is of a form that is not allowed there."""

    code = "CLASSROOM_REFERENCE"


class ClassroomFileMissingError(ClassroomMistakeError):
    """A reference leads to a file that is not beside the classroom."""

    code = "CLASSROOM_FILE_MISSING"


class ClassroomLinkError(ClassroomMistakeError):
    """A link leads elsewhere than to a page of the web or a slide."""

    code = "CLASSROOM_LINK"


class ClassroomMarkupError(ClassroomMistakeError):
    """HTML of a slide has a tag or attribute that slides do not have."""

    code = "CLASSROOM_MARKUP"


class ClassroomRaggedError(ClassroomMistakeError):
    """The series of a chart or the rows of a table do not fit its labels."""

    code = "CLASSROOM_RAGGED"


class ClassroomConfigError(ClassroomMistakeError):
    """Free JSON is nested too deeply, or has a number that JSON readers do not agree on."""

    code = "CLASSROOM_CONFIG"


class ClassroomNotJsonError(MalformedError):
    """What should be a classroom is no JSON object."""

    code = "CLASSROOM_NOT_JSON"


class ClassroomTooLongError(TooLargeError):
    """A classroom's document is too long."""

    code = "CLASSROOM_TOO_LONG"


class ClassroomTooNewError(InvalidError):
    """A classroom was written by a later version; it is left as it is."""

    code = "CLASSROOM_TOO_NEW"


class ClassroomVersionUnknownError(InvalidError):
    """A classroom's version is none that ever was."""

    code = "CLASSROOM_VERSION_UNKNOWN"


class ClassroomUnknownError(NotFoundError):
    """There is no such classroom."""

    code = "CLASSROOM_UNKNOWN"


class ClassroomExistsError(ConflictError):
    """There is a classroom of this id already."""

    code = "CLASSROOM_EXISTS"


class ClassroomChangedError(ConflictError):
    """The classroom was changed since it was read."""

    code = "CLASSROOM_CHANGED"
    status = 412


class ClassroomFileUnknownError(NotFoundError):
    """A classroom has no such file."""

    code = "CLASSROOM_FILE_UNKNOWN"


class ClassroomFileTooLargeError(TooLargeError):
    """A file of a classroom is too large."""

    code = "CLASSROOM_FILE_TOO_LARGE"


class ClassroomFolderError(UnavailableError):
    """The folder of the classrooms cannot be read or written."""

    code = "CLASSROOM_FOLDER"


class ArchiveInvalidError(InvalidError):
    """An archive cannot be trusted; subclasses say why. Parameter `entry` where one is meant."""

    code = "ARCHIVE_INVALID"


class ArchiveNotZipError(UnsupportedError):
    """It is no ZIP archive."""

    code = "ARCHIVE_NOT_ZIP"


class ArchiveTooLargeError(TooLargeError):
    """An archive or what is in it is too large."""

    code = "ARCHIVE_TOO_LARGE"


class ArchiveTooManyEntriesError(TooLargeError):
    """An archive has too many entries."""

    code = "ARCHIVE_TOO_MANY_ENTRIES"


class ArchiveBombError(TooLargeError):
    """An entry grows far more than such text does."""

    code = "ARCHIVE_BOMB"


class ArchiveNameError(ArchiveInvalidError):
    """The name of an entry leads outside, or is none that every system can keep."""

    code = "ARCHIVE_NAME"


class ArchiveNameTwiceError(ArchiveInvalidError):
    """Two entries have names that some systems take for one."""

    code = "ARCHIVE_NAME_TWICE"


class ArchiveEntryKindError(ArchiveInvalidError):
    """An entry is a link, a device, encrypted, packed in an unusual way, or an archive itself."""

    code = "ARCHIVE_ENTRY_KIND"


class ArchiveOverlapError(ArchiveInvalidError):
    """Entries share bytes, or an entry's two headers contradict each other."""

    code = "ARCHIVE_OVERLAP"


class ArchiveDamagedError(ArchiveInvalidError):
    """An entry's bytes are not the ones that were packed."""

    code = "ARCHIVE_DAMAGED"


class ArchiveManifestError(ArchiveInvalidError):
    """An archive has no manifest, or one that no classroom can be made from."""

    code = "ARCHIVE_MANIFEST"
