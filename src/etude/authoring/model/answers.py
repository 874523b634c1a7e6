"""What a model's answer says: JSON found and repaired, its mistakes named by their paths."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from etude.authoring.model.asking import Asking, Said
from etude.authoring.model.errors import ModelAnswerMistakeError, ModelAnswerRefusedError
from etude.documents import Document, check
from etude.errors import EtudeError
from etude.llm.chat import Message

Shape = TypeVar("Shape")
Result = TypeVar("Result")
MOST_TOLD: Final = 40
_THOUGHTS: Final = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCED: Final = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_LONGEST_DETAIL: Final = 200
_DEEPEST: Final = 40
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A bracket, or a text, whose brackets do not count; one without end goes to the end, read once."""


def mistake(path: str, rule: str, detail: object = "") -> ModelAnswerMistakeError:
    """Return one mistake of an answer."""
    return ModelAnswerMistakeError(
        path=path or "/", rule=rule, detail=str(detail)[:_LONGEST_DETAIL]
    )


def refused(found: Iterable[EtudeError]) -> ModelAnswerRefusedError:
    """Return mistakes as one error; the stage is named by `by_contract`."""
    parts = list(found)
    return ModelAnswerRefusedError(*parts[:MOST_TOLD], mistakes=len(parts), stage="")


async def by_contract(
    asking: Asking,
    stage: str,
    messages: tuple[Message, ...],
    max_tokens: int,
    read: Callable[[str], Result],
) -> Result:
    """Return what `read` makes of an answer; what it refuses is asked for once more, with reasons.

    Raises:
        ModelAnswerRefusedError: the second answer breaks the contract, too.
        EtudeError: as `Asking.ask`.
    """
    said = await asking.ask(stage, messages, max_tokens)
    try:
        result = _read(said, read)
    except ModelAnswerRefusedError as first:
        again = (*messages, Message("assistant", said.text), Message("user", complaint(first)))
        said = await asking.ask(stage, again, max_tokens)
        try:
            result = _read(said, read)
        except ModelAnswerRefusedError as second:
            mistakes = second.params["mistakes"]
            raise ModelAnswerRefusedError(*second.parts, mistakes=mistakes, stage=stage) from None
    await asking.accept(said)
    return result


def _read(said: Said, read: Callable[[str], Result]) -> Result:
    if said.cut:
        raise refused([mistake("/", "cut_off", "it was too long and was cut: be shorter")])
    return read(said.text)


def complaint(error: EtudeError) -> str:
    """Return what the model is told about its answer: every mistake, with its path."""
    lines = [_told(part) for part in error.parts]
    return (
        "Your answer cannot be used. It has these mistakes:\n"
        + "\n".join(f"- {line}" for line in lines)
        + "\nSend the whole answer again, corrected, in the same form and nothing else."
    )


def _told(part: EtudeError) -> str:
    said = " ".join(f"{value}" for name, value in part.params.items() if name != "path" and value)
    return f"{part.params.get('path', '/')}: {said or part.code}"[:300]


def without_thoughts(text: str) -> str:
    """Return an answer without what a model thought aloud before it."""
    return _THOUGHTS.sub("", text).strip()


def json_of(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value in an answer, repaired where it is nearly one.

    Raises:
        ModelAnswerRefusedError: there is none.
    """
    bare = without_thoughts(text)
    for candidate in (bare, *_candidates(bare)):
        value = _decoded(candidate)
        if isinstance(value, dict | list):
            return value
    begin = _opening(bare)
    if begin < 0 or _opens_deep(bare[begin:]):  # the repair of 100,000 braces takes 20 s
        raise refused([mistake("/", "no_json")])
    import json_repair  # noqa: PLC0415 - of the extra `llm`

    try:
        value = json_repair.loads(bare[begin:])
    except (ValueError, RecursionError):  # what cannot be repaired either
        value = None
    if not value or not isinstance(value, dict | list) or _is_deep(value):
        raise refused([mistake("/", "no_json")])
    return value


def _decoded(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if _is_deep(value) else value


def _candidates(text: str) -> Iterator[str]:
    yield from (match.group(1) for match in _FENCED.finditer(text))
    low = _opening(text)
    high = text.rfind("}" if text[low : low + 1] == "{" else "]")
    if 0 <= low < high:
        yield text[low : high + 1]


def _opening(text: str) -> int:
    """Return where the first object or list begins; -1 if there is none."""
    return min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)


def _opens_deep(text: str) -> bool:
    """Say whether more lists and objects are open at once than an answer may have."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
        if depth > _DEEPEST:
            return True
    return False


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return False
        level = inner
    return True


def shaped(value: object, shape: type[Shape], where: str = "") -> Shape:
    """Return a value as a struct; keys that nobody reads are left out.

    Raises:
        ModelAnswerRefusedError: its parts are all the mistakes, each with its path.
    """
    found = [
        one for one in check(Document(value, {}), shape, most=200) if one.kind != "unknown_key"
    ]
    if found:
        raise refused(
            mistake(
                f"{where}{one.path}",
                one.kind,
                ", ".join(str(detail) for detail in one.params.values()),
            )
            for one in found
        )
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise refused([mistake(where or "/", "not_as_asked", error)]) from None


def fenced(name: str, data: str) -> str:
    """Return data between marks that do not occur in it."""
    opening, closing = f"<<<{name}", f"{name}>>>"
    inside = data.replace("<<<", "< < <").replace(">>>", "> > >")
    return f"{opening}\n{inside}\n{closing}"
