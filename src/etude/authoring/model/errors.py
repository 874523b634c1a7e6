"""What can go wrong when a model writes a course. Messages: `i18n/*/model.toml`."""

from etude.errors import ConflictError, InvalidError, UnavailableError


class CourseRequestEmptyError(InvalidError):
    """A course is to be written, and nothing says about what."""

    code = "COURSE_REQUEST_EMPTY"


class CourseOptionUnavailableError(InvalidError):
    """A course is asked for with something that its author or this installation does not have."""

    code = "COURSE_OPTION_UNAVAILABLE"


class ModelAnswerRefusedError(InvalidError):
    """What the model wrote broke its contract twice; the parts say where and how."""

    code = "MODEL_ANSWER_REFUSED"


class ModelAnswerMistakeError(InvalidError):
    """One mistake of an answer: `path`, `rule`, `detail`."""

    code = "MODEL_ANSWER_MISTAKE"


class CourseBudgetSpentError(ConflictError):
    """The next question could cost more than what is left of the run's budget: it is not asked."""

    code = "COURSE_BUDGET_SPENT"


class SearchFailedError(UnavailableError):
    """The search engine gave no results; the course goes on without."""

    code = "SEARCH_FAILED"
