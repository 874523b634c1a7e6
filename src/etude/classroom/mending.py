"""Mending what foreign documents have wrong, where there is one way to mend it.

What the rules find is taken out by its path: an unknown key, an action that refers to nothing, an
element that cannot be read. Whatever else is wrong stays, and the document is refused for it.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from etude.classroom.errors import (
    ClassroomKeyUnknownError,
    ClassroomLinkError,
    ClassroomMistakeError,
    ClassroomQuizAnswerError,
)
from etude.classroom.loading import all_mistakes
from etude.classroom.markup import cleaned, first_unsafe
from etude.classroom.plain import plain
from etude.classroom.projects import Project, is_template, template_of
from etude.documents.reading import spell
from etude.i18n import text

LossCode = Literal[
    "key_dropped",
    "action_dropped",
    "element_dropped",
    "answer_rewritten",
    "answer_dropped",
    "markup_cleaned",
    "roster_filled",
    "media_missing",
    "media_refused",
    "reference_dropped",
    "runtime_dropped",
    "link_dropped",
    "practice_degraded",
    "key_points_dropped",
    "whiteboard_dropped",
    "mode_dropped",
]
MAX_LOSSES: Final = 1000
_ROUNDS: Final = 8
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_WRAPPED: Final = re.compile(r"^[(\[【]?(.*?)[)\]】.、:]?$", re.DOTALL)
_OPTIONAL: Final = frozenset({"poster", "mediaRef", "pattern", "audioRef", "avatar"})
"""References without which the part around them is still one."""
_HOLDERS: Final = frozenset({"videoManifest", "agentIds"})
_PARTS: Final[dict[str, LossCode]] = {
    "elements": "element_dropped",
    "actions": "action_dropped",
}
_GONE: Final = object()

Document = dict[str, Any]
Path = tuple[str | int, ...]


class Loss(msgspec.Struct, frozen=True):
    """One thing that an import or export left out or changed."""

    path: str
    code: LossCode

    def said(self, locale: str) -> str:
        """Return it as a sentence."""
        return text(f"classroom.loss.{self.code}", locale, path=self.path)


def mend(document: Document) -> list[Loss]:
    """Mend a document of the newest version in place; return what was done."""
    losses: list[Loss] = []
    for at, scene in _each(document.get("scenes"), ("scenes",)):
        content = scene.get("content")
        if not isinstance(content, dict):
            continue
        if scene.get("type") == "quiz":
            losses += _mend_quiz(content, (*at, "content"))
        elif scene.get("type") == "pbl":
            losses += _mend_project(content, (*at, "content"))
    losses += _clean(document.get("scenes"), ("scenes",))
    for _ in range(_ROUNDS):
        done = [loss for mistake in all_mistakes(document) for loss in _take_out(document, mistake)]
        if not done:
            break
        _sweep(document)
        losses += dict.fromkeys(done)
    return losses[:MAX_LOSSES]


def mend_quiz(content: Document) -> list[Loss]:
    """Mend the content of a quiz in place: bare or swapped options, answers said by their text."""
    return list(_mend_quiz(content, ("content",)))


def _take_out(document: Document, mistake: ClassroomMistakeError) -> Iterator[Loss]:
    """Mark what a mistake is about as gone, if it is of a kind that can go."""
    path = _parsed(str(mistake.params["path"]))
    if isinstance(mistake, ClassroomKeyUnknownError):
        yield from _mark(document, path, "key_dropped")
    elif isinstance(mistake, ClassroomQuizAnswerError):
        yield from _mark(document, path, "answer_dropped")
        question = _at(document, path[:-1])
        if isinstance(question, dict):
            question["hasAnswer"] = False
    elif isinstance(mistake, ClassroomLinkError) and "link" in path:
        yield from _mark(document, path[: path.index("link") + 1], "link_dropped")
    elif path and (path[-1] in _OPTIONAL or not _HOLDERS.isdisjoint(path)):
        yield from _mark(document, path, "reference_dropped")
    elif (cut := _around(path)) is not None:
        yield from _mark(document, *cut)


def _around(path: Path) -> tuple[Path, LossCode] | None:
    """Return the smallest part around a mistake that a scene can be without."""
    if "background" in path and "image" in path:
        return path[: path.index("background") + 1], "reference_dropped"
    for name, code in _PARTS.items():
        if name in path and len(path) > path.index(name) + 1:
            return path[: path.index(name) + 2], code
    return None


def _mark(document: Document, path: Path, code: LossCode) -> Iterator[Loss]:
    holder = _at(document, path[:-1])
    last = path[-1]
    if isinstance(holder, dict) and last in holder:
        if last == "avatar":
            holder[last] = ""
        else:
            del holder[last]
        yield Loss(spell(path), code)
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
        if holder[last] is not _GONE:
            yield Loss(spell(path), code)
        holder[last] = _GONE


def _sweep(value: Any) -> None:  # noqa: ANN401 - any JSON value
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            one[:] = [inner for inner in one if inner is not _GONE]
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()


def _at(document: Any, path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return what is at `path`; None if there is nothing."""
    for step in path:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
    return document


def _parsed(path: str) -> Path:
    return tuple(
        int(match.group(1)) if match.group(1) else match.group(2) for match in _STEP.finditer(path)
    )


def _each(value: object, path: Path) -> Iterator[tuple[Path, Document]]:
    if isinstance(value, list):
        for index, one in enumerate(value):
            if isinstance(one, dict):
                yield (*path, index), one


def _mend_quiz(content: Document, path: Path) -> Iterator[Loss]:
    for at, question in _each(content.get("questions"), (*path, "questions")):
        _spell_options(question)
        answer = question.get("answer")
        if isinstance(answer, str):
            answer = question["answer"] = [answer]
        options = [one for _, one in _each(question.get("options"), ())]
        if not options or not isinstance(answer, list):
            continue
        resolved = [_resolved(one, options) for one in answer]
        if resolved != answer:
            question["answer"] = resolved
            yield Loss(spell((*at, "answer")), "answer_rewritten")


def _spell_options(question: Document) -> None:
    """Options may be bare texts, or have key and text the wrong way round."""
    options = question.get("options")
    if not isinstance(options, list):
        return
    letters = "ABCDEFGHIJKLMNOPQRST"
    if all(isinstance(one, str) for one in options) and len(options) <= len(letters):
        question["options"] = [
            {"label": one, "value": letters[index]} for index, one in enumerate(options)
        ]
        return
    pairs = [(one.get("label"), one.get("value")) for _, one in _each(options, ())]
    swapped = pairs and all(
        label == letter and isinstance(value, str) and value != letter
        for (label, value), letter in zip(pairs, letters, strict=False)
    )
    if swapped and len(pairs) == len(options):
        question["options"] = [{"label": value, "value": label} for label, value in pairs]


def _resolved(answer: object, options: list[Document]) -> object:
    """Return the value of the one option that an answer names, else the answer as it is."""
    values = [one.get("value") for one in options]
    if answer in values or not isinstance(answer, str):
        return answer
    wanted = _folded(answer)
    for key in ("value", "label"):
        named = [one["value"] for one in options if _folded(str(one.get(key))) == wanted]
        if len(named) == 1:
            return named[0]
    return answer


def _folded(words: str) -> str:
    plain_words = "".join(unicodedata.normalize("NFKC", words).split()).casefold()
    match = _WRAPPED.match(plain_words)
    return match.group(1) if match else plain_words


def _mend_project(content: Document, path: Path) -> Iterator[Loss]:
    """A project that learners worked in goes back to its design."""
    try:
        project = msgspec.convert(content.get("projectV2"), Project)
    except msgspec.ValidationError:
        return
    if not is_template(project):
        content["projectV2"] = plain(template_of(project))
        yield Loss(spell((*path, "projectV2")), "runtime_dropped")


def _clean(scenes: object, path: Path) -> Iterator[Loss]:
    """Clean the markup of every slide and board."""
    for at, scene in _each(scenes, path):
        content = scene.get("content")
        canvas = content.get("canvas") if isinstance(content, dict) else None
        boards = [((*at, "content", "canvas"), canvas)]
        boards += list(_each(scene.get("whiteboards"), (*at, "whiteboards")))
        for where, board in boards:
            if isinstance(board, dict):
                for place, element in _each(board.get("elements"), (*where, "elements")):
                    yield from _clean_element(element, place)


def _clean_element(element: Document, path: Path) -> Iterator[Loss]:
    yield from _clean_at(element, "content", path)
    yield from _clean_at(element, "html", path)
    if isinstance(element.get("text"), dict):
        yield from _clean_at(element["text"], "content", (*path, "text"))
    rows = element.get("data")
    for row, cells in enumerate(rows if isinstance(rows, list) else []):
        for at, cell in _each(cells, (*path, "data", row)):
            yield from _clean_at(cell, "text", at)


def _clean_at(holder: Document, key: str, path: Path) -> Iterator[Loss]:
    markup = holder.get(key)
    if isinstance(markup, str) and first_unsafe(markup) is not None:
        holder[key] = cleaned(markup)
        yield Loss(spell((*path, key)), "markup_cleaned")
