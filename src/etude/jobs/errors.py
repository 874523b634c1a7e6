"""What can go wrong with a job, as the rest of Etude sees it."""
# ruff: noqa: N818 - each is named after the state it reports, as callers say it

from etude.errors import ConflictError, EtudeError, InvalidError, NotFoundError


class Fenced(ConflictError):
    """This run of the job was taken over or cancelled: whatever it still wants to write is void."""

    code = "JOB_FENCED"


class GiveUp(EtudeError):
    """Base for failures that another attempt cannot mend: the job is dead at once.

    Subclass it with a code of one's own, or raise it with `reason` (a code, no sentence).
    """

    code = "JOB_GIVEN_UP"


class JobMissing(NotFoundError):
    """There is no job of this kind and key, or it is not in a state that allows this."""

    code = "JOB_MISSING"


class JobArgsError(InvalidError):
    """Arguments of a job are whole numbers only (surrogate keys), `docs/rules.md 50`."""

    code = "JOB_ARGS"
