"""What can go wrong with a model, in neutral words. Messages: `i18n/*/llm.toml`.

No error quotes what was sent or what came back: a prompt may hold what a child said, and some
servers repeat the key in their complaint. Whether asking again can help is said by the class.
"""

from typing import ClassVar, Final

from etude.errors import EtudeError, InvalidError, MalformedError, ThrottledError, UnavailableError

INSTALL_LINE: Final = "pip install 'etude[llm]'"


class LlmError(EtudeError):
    """No answer could be had. The category of all below."""

    retry_is_pointless: ClassVar[bool] = True
    """The same request would end in the same way, until a person changes something."""


class LlmNotInstalledError(LlmError, UnavailableError):
    """A model is configured, and `etude[llm]` is not installed."""

    code = "LLM_NOT_INSTALLED"


class LlmAddressError(LlmError, MalformedError):
    """The endpoint, its key or the model's name cannot be used. Their values are never shown."""

    code = "LLM_ADDRESS_INVALID"


class LlmUnreachableError(LlmError, UnavailableError):
    """Nobody answers at the endpoint, or the connection broke."""

    code = "LLM_UNREACHABLE"
    retry_is_pointless = False


class LlmTimeoutError(LlmError, UnavailableError):
    """The answer was not there in time; whether the model worked on it is not known."""

    code = "LLM_TIMEOUT"
    retry_is_pointless = False


class LlmThrottledError(LlmError, ThrottledError):
    """The endpoint asks for patience; `retry_after_s` is its wish, else a guess."""

    code = "LLM_THROTTLED"
    retry_is_pointless = False


class LlmBrokenError(LlmError, UnavailableError):
    """The endpoint failed by itself (`http_status` 5xx)."""

    code = "LLM_BROKEN"
    retry_is_pointless = False


class LlmRefusedError(LlmError, UnavailableError):
    """The endpoint will not do this; `reason`: credentials, quota, model, redirect or request."""

    code = "LLM_REFUSED"


class LlmAnswerError(LlmError, InvalidError):
    """What came is no answer: not JSON, without a text, cut off, or too large (`reason`)."""

    code = "LLM_ANSWER_INVALID"
    retry_is_pointless = False


class LlmAnswerTooLargeError(LlmError, InvalidError):
    """The answer has more bytes than any answer needs."""

    code = "LLM_ANSWER_TOO_LARGE"
