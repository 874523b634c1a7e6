"""Reading what a model's endpoint sends: a whole answer, or one in pieces.

Read strictly, by the few fields that are needed; OpenAI's own reading lets anything through.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from etude.llm.errors import LlmAnswerError, LlmAnswerTooLargeError, LlmUnreachableError

_LONGEST_NAME: Final = 100
_DONE: Final = "[DONE]"
_DATA: Final = "data:"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost, in tokens; None = the endpoint did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model wrote; `model` is the one that the endpoint says it used.

    Attributes:
        cut: it ends where `max_tokens` ended it; only of a stream.
    """

    text: str
    model: str
    usage: Usage
    cut: bool = False


class _Said(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...]
    model: str | None = None
    usage: Usage | None = None


class _Part(msgspec.Struct, frozen=True):
    delta: _Said = _Said()
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: tuple[_Part, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


def read_completion(body: bytes, model: str) -> Answer:
    """Return the answer in a whole body.

    Raises:
        LlmAnswerError: it is no answer, or cut off.
    """
    try:
        found = msgspec.json.decode(body, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LlmAnswerError(reason="not_json_of_a_chat") from None
    choice = found.choices[0] if found.choices else None
    if choice is None or not (choice.message.content or "").strip():
        raise LlmAnswerError(reason="no_text")
    if choice.finish_reason in {"length", "content_filter"}:
        raise LlmAnswerError(reason=f"cut_off_{choice.finish_reason}")
    return Answer(
        text=choice.message.content or "",
        model=(found.model or model)[:_LONGEST_NAME],
        usage=found.usage or Usage(),
    )


class Gathering:
    """Gathers an answer from the lines of a stream of events (HTML Standard §9.2)."""

    def __init__(self, model: str, most_characters: int, seen: Callable[[str], None]) -> None:
        """`seen` is told each piece; more than `most_characters` is no answer."""
        self._model = model
        self._left = self._most = most_characters
        self._seen = seen
        self._parts: list[str] = []
        self._finish: str | None = None
        self._usage = Usage()
        self._done = False

    def take(self, line: str) -> bool:
        """Take one line; return whether it was the last one.

        Raises:
            LlmAnswerError, LlmAnswerTooLargeError: this becomes no answer.
        """
        if not line.startswith(_DATA):
            return False  # a comment that keeps the connection open, or another field
        data = line[len(_DATA) :].strip()
        if data == _DONE:
            self._done = True
            return True
        try:
            chunk = msgspec.json.decode(data, type=_Chunk)
        except (msgspec.DecodeError, RecursionError):
            raise LlmAnswerError(reason="not_json_of_a_chat") from None
        if bytes(chunk.error) not in {b"", b"null"}:
            raise LlmAnswerError(reason="error_in_stream")
        self._model = (chunk.model or self._model)[:_LONGEST_NAME]
        self._usage = chunk.usage or self._usage
        for part in chunk.choices[:1]:
            self._say(part.delta.content or "")
            self._finish = part.finish_reason or self._finish
        return False

    def _say(self, words: str) -> None:
        if words:
            self._left -= len(words)
            if self._left < 0:
                raise LlmAnswerTooLargeError(limit=self._most)
            self._parts.append(words)
            self._seen(words)

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises:
            LlmUnreachableError: the stream ended before the answer did.
            LlmAnswerError: there is no text, or it was kept back.
        """
        if self._finish is None and not self._done:
            raise LlmUnreachableError(reason="StreamEnded")
        if self._finish == "content_filter":
            raise LlmAnswerError(reason="cut_off_content_filter")
        text = "".join(self._parts)
        if not text.strip():
            raise LlmAnswerError(reason="no_text")
        return Answer(text=text, model=self._model, usage=self._usage, cut=self._finish == "length")
