"""The one exception root. Every error that reaches a person has a stable code and named parameters.

The words a person reads live in `etude.i18n` under `error.<CODE>`, in every language, with the
parameters below as placeholders. The faces (web, cli) put the two together; this module knows
neither language nor protocol. `status` is the failure's class in the terms of RFC 9110 §15; the
command line derives its exit code from it.
"""

from typing import ClassVar


class EtudeError(Exception):
    """Root of all errors. Subclass a category below, set `code`, raise with keyword parameters."""

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500

    def __init__(self, *parts: "EtudeError", **params: str | float) -> None:
        """Keep `params`, the placeholders of the message and the problem document's extras.

        `parts` are the single errors that this one gathers (the lines of a body, the gates of a
        publication); a face shows each with its own code, message and parameters.
        """
        super().__init__(params)
        self.parts = parts
        self.params = params

    def __str__(self) -> str:
        """`CODE (name=value, …)`: for logs and tracebacks, the same in every language."""
        named = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{self.code} ({named})" if named else self.code


class InvalidError(EtudeError):
    """What was given cannot be understood or breaks a rule."""

    status = 422


class MalformedError(InvalidError):
    """What was given is not even well-formed: a broken header, parameter or encoding."""

    status = 400


class UnauthenticatedError(EtudeError):
    """Nobody known is asking."""

    status = 401


class ForbiddenError(EtudeError):
    """Somebody known is asking for what is not theirs."""

    status = 403


class NotFoundError(EtudeError):
    """What was named does not exist, or not for the one who asks."""

    status = 404


class ConflictError(EtudeError):
    """What was asked contradicts what is stored or running."""

    status = 409


class GoneError(EtudeError):
    """What was named existed, was removed on purpose, and will not come back."""

    status = 410


class TooLargeError(EtudeError):
    """What was given is over a stated limit."""

    status = 413


class UnsupportedError(EtudeError):
    """What was given is in a form that is not accepted here."""

    status = 415


class ThrottledError(EtudeError):
    """Too much at once: try again after `retry_after_s` seconds."""

    status = 429


class UnavailableError(EtudeError):
    """A part that is needed cannot work now (a full disk, a database that is away)."""

    status = 503
