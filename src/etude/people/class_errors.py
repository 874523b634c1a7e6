"""What can go wrong with classes and rosters. Messages: `i18n/*/classes.toml`.

None of them names a learner: a roster's mistakes are told by the numbers of their lines.
"""

from etude.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError


class ClassUnknownError(NotFoundError):
    """No class has this id."""

    code = "CLASS_UNKNOWN"


class ClassExistsError(ConflictError):
    """A class with this id is there already."""

    code = "CLASS_EXISTS"


class ClassArchivedError(ConflictError):
    """The class is archived: nobody joins it, and nothing is assigned to it."""

    code = "CLASS_ARCHIVED"


class ClassNotYoursError(ForbiddenError):
    """A teacher asks for a class of other teachers."""

    code = "CLASS_NOT_YOURS"


class MemberUnknownError(NotFoundError):
    """The learner has never been in the class."""

    code = "CLASS_MEMBER_UNKNOWN"


class MemberOverlapError(ConflictError):
    """The learner is in the class for a part of that time, and not for the same."""

    code = "CLASS_MEMBER_OVERLAP"


class MemberIntervalError(InvalidError):
    """A learner must leave a class after joining it."""

    code = "CLASS_MEMBER_INTERVAL_EMPTY"


class ClassStaffUnknownError(NotFoundError):
    """The member of staff does not teach the class."""

    code = "CLASS_STAFF_UNKNOWN"


class RosterFileUnreadableError(InvalidError):
    """The file of a roster cannot be read, or is no text in UTF-8."""

    code = "ROSTER_FILE_UNREADABLE"


class RosterInvalidError(InvalidError):
    """Lines of a roster are wrong; each is a part. Nothing of it was taken."""

    code = "ROSTER_INVALID"


class RosterEmptyError(InvalidError):
    """A roster without any learner."""

    code = "ROSTER_EMPTY"


class RosterTooLongError(InvalidError):
    """A roster of more lines than a class can have learners."""

    code = "ROSTER_TOO_LONG"


class RosterLineError(InvalidError):
    """One line of a roster is wrong; `line` is its number."""


class LineNotCsvError(RosterLineError):
    """What follows can be no CSV: a quotation mark is missing or too much."""

    code = "ROSTER_LINE_NOT_CSV"


class LineColumnsError(RosterLineError):
    """More columns than the roster has, or a heading that names others than there are."""

    code = "ROSTER_LINE_COLUMNS"


class LineNameError(RosterLineError):
    """The name is none: missing, too long, or with control characters."""

    code = "ROSTER_LINE_NAME"


class LineNameTwiceError(RosterLineError):
    """The name stands in another line too, and this one has no id."""

    code = "ROSTER_LINE_NAME_TWICE"


class LineNameOfManyError(RosterLineError):
    """Several learners of the class have this name, and the line has no id."""

    code = "ROSTER_LINE_NAME_OF_MANY"


class LineLearnerUnknownError(RosterLineError):
    """No learner has this id (any more)."""

    code = "ROSTER_LINE_LEARNER_UNKNOWN"


class LineOtherNameError(RosterLineError):
    """The learner with this id has another name."""

    code = "ROSTER_LINE_OTHER_NAME"


class LineLearnerTwiceError(RosterLineError):
    """Another line has the same learner."""

    code = "ROSTER_LINE_LEARNER_TWICE"


class LineJoinsLaterError(RosterLineError):
    """The learner is to join the class at a later time, so cannot join it now too."""

    code = "ROSTER_LINE_JOINS_LATER"


class LineDeviceUnknownError(RosterLineError):
    """No device has this id."""

    code = "ROSTER_LINE_DEVICE_UNKNOWN"


class LineDeviceTwiceError(RosterLineError):
    """Another line has the same device."""

    code = "ROSTER_LINE_DEVICE_TWICE"


class LineDevicePromisedError(RosterLineError):
    """Somebody is to have the device at a later time."""

    code = "ROSTER_LINE_DEVICE_PROMISED"
