"""From a model's answer to the content of a scene; what breaks the contract is told, all of it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from etude.authoring.material import Language
from etude.authoring.model.answers import json_of, mistake, refused, shaped, without_thoughts
from etude.authoring.model.errors import ModelAnswerMistakeError
from etude.authoring.model.layout import lay_out
from etude.authoring.model.script_gate import script_mistakes, texts_in
from etude.authoring.model.shapes import (
    OutlinedScene,
    OutlinedType,
    Outlines,
    ProjectText,
    QuizPlan,
    Sentences,
    SlideText,
)
from etude.authoring.outline.drawing import Palette
from etude.authoring.wording import is_chinese, key
from etude.classroom.markup import visible_text
from etude.classroom.mending import mend_quiz
from etude.classroom.model import InteractiveContent, QuizContent, QuizOption, QuizQuestion
from etude.courseware.html_inline import contained
from etude.courseware.script_scan import Kind

MOST_PAGE: Final = 120_000
MOST_WORDS: Final = 16
MOST_HAN: Final = 30
_LETTERS: Final = "ABCDEF"
_KINDS: Final = frozenset({"text", "bullets", "steps", "definition", "table", "picture"})
_LEAST_OPTIONS: Final = 2
_MOST_QUESTIONS: Final = 8
_LEAST_VISIBLE: Final = 10
_DOCUMENTS: Final = (
    re.compile(r"<!doctype html.*?</html\s*>", re.IGNORECASE | re.DOTALL),
    re.compile(r"<html\b.*?</html\s*>", re.IGNORECASE | re.DOTALL),
)
_HEAD: Final = re.compile(r"<head\b[^>]*>", re.IGNORECASE)
_VIEWPORT: Final = '<meta name="viewport" content="width=device-width, initial-scale=1">'
_ADDRESS: Final = re.compile(r"\b(?:https?|ftp)://\S{0,80}|\bwww\.\S{1,80}", re.IGNORECASE)


def read_outlines(
    text: str, language: Language, types: Sequence[OutlinedType], *, titled: bool = False
) -> Outlines:
    """Return the outline of a lesson; types that are not to be had, and second projects, go."""
    value = json_of(text)
    if isinstance(value, list):
        value = {"scenes": value}
    if isinstance(value.get("scenes"), list):
        value["scenes"] = [_planned(one) for one in value["scenes"]]
    made = shaped(value, Outlines)
    kept: list[OutlinedScene] = []
    for one in made.scenes:
        once = one.type in {"pbl", "practice"} and any(one.type == other.type for other in kept)
        if one.type in types and not once:
            kept.append(one)
    found = list(_outline_mistakes(kept))
    if titled and made.title is None:
        found.append(mistake("title", "missing"))
    found += script_mistakes((f"{one.title} {one.description}" for one in kept), language)
    if found:
        raise refused(found)
    return msgspec.structs.replace(made, scenes=tuple(kept))


def _planned(one: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Let an activity without an idea, and a quiz with an odd plan, have the usual ones."""
    if not isinstance(one, dict):
        return one
    one = {name: value for name, value in one.items() if value is not None}
    if one.get("type") == "interactive" and not str(one.get("activity") or "").strip():
        one["activity"] = one.get("description", "")
    plan = one.get("quiz")
    if plan is not None and not _is_plan(plan):
        one["quiz"] = {}
    return one


def _is_plan(plan: object) -> bool:
    if not isinstance(plan, dict):
        return False
    types = plan.get("types", ["single"])
    known = {"single", "multiple", "short_answer"}
    count = plan.get("count", 3)
    return (
        isinstance(types, list)
        and 0 < len(types) <= len(known)
        and all(isinstance(one, str) and one in known for one in types)
        and isinstance(count, int)
        and 1 <= count <= _MOST_QUESTIONS
    )


def _outline_mistakes(scenes: Sequence[OutlinedScene]) -> Iterator[ModelAnswerMistakeError]:
    kinds = [one.type for one in scenes]
    for kind, least in (("interactive", 1), ("quiz", 1), ("slide", 2)):
        if kinds.count(kind) < least:  # type: ignore[arg-type]  # a text is compared with texts
            yield mistake("scenes", f"no_{kind}", f"at least {least}")
    seen: set[str] = set()
    for at, one in enumerate(scenes):
        if key(one.title) in seen:
            yield mistake(f"scenes[{at}].title", "twice", one.title)
        seen.add(key(one.title))


def read_slide(text: str, language: Language, palette: Palette) -> SlideText:
    """Return what is on a slide, if it fits on one."""
    said = shaped(_drawable(json_of(text)), SlideText)
    found = [*_bare(said), *script_mistakes(texts_in(msgspec.to_builtins(said)), language)]
    if found:
        raise refused(found)
    lay_out(said, "try", palette)
    return said


def _drawable(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Leave out blocks that nobody can draw, and pictures after the first, if anything stays."""
    if not isinstance(value, dict) or not isinstance(value.get("blocks"), list):
        return value
    kept, pictures = [], 0
    for one in value["blocks"]:
        kind = one.get("kind") if isinstance(one, dict) else None
        pictures += kind == "picture"
        if kind in _KINDS and not (kind == "picture" and pictures > 1):
            kept.append({name: part for name, part in one.items() if part is not None})
    return value | {"blocks": kept} if kept else value


def _bare(said: object) -> Iterator[ModelAnswerMistakeError]:
    """Refuse addresses in what learners read: nobody has looked at what is there."""
    for text in texts_in(msgspec.to_builtins(said)):
        if match := _ADDRESS.search(text):
            yield mistake("/", "link", match.group())
            return


def read_quiz(text: str, language: Language, plan: QuizPlan) -> QuizContent:
    """Return the questions of a quiz, their answers resolved to their options."""
    value = json_of(text)
    asked = value.get("questions") if isinstance(value, dict) else value
    if not isinstance(asked, list) or not asked:
        raise refused([mistake("questions", "missing")])
    content = {"questions": [dict(one) for one in asked[:_MOST_QUESTIONS] if isinstance(one, dict)]}
    mend_quiz(content)
    found: list[ModelAnswerMistakeError] = []
    made = []
    for at, one in enumerate(content["questions"]):
        mistakes = list(_question_mistakes(one, f"questions[{at}]"))
        found += mistakes
        if not mistakes:
            made.append(_question(one, at))
    if len(made) < min(plan.count, 2) and not found:
        found.append(mistake("questions", "too_few", f"wanted {plan.count}"))
    found += script_mistakes(
        (said for one in made for said in texts_in(msgspec.to_builtins(one))), language, "questions"
    )
    if found:
        raise refused(found)
    return QuizContent(questions=tuple(made))


def _type_of(one: dict[str, Any]) -> str:
    kind = one.get("type")
    if kind in {"single", "multiple", "short_answer"}:
        return str(kind)
    return "single" if one.get("options") else "short_answer"


def _question_mistakes(one: dict[str, Any], path: str) -> Iterator[ModelAnswerMistakeError]:
    yield from _text_mistakes(one, path, ("question", 1, 1000), ("analysis", 0, 2000))
    if _type_of(one) == "short_answer":
        yield from _text_mistakes(one, path, ("commentPrompt", 1, 2000))
        return
    options = one.get("options")
    if not isinstance(options, list) or not _LEAST_OPTIONS <= len(options) <= len(_LETTERS):
        yield mistake(f"{path}.options", "out_of_bounds", "2 to 6")
        return
    labels = [each.get("label") if isinstance(each, dict) else None for each in options]
    if not all(isinstance(label, str) and 0 < len(label) <= 400 for label in labels):  # noqa: PLR2004 - as the prompt says, twice over
        yield mistake(f"{path}.options", "not_a", "texts of at most 200 characters")
        return
    if len({" ".join(str(label).split()).casefold() for label in labels}) < len(labels):
        yield mistake(f"{path}.options", "twice")
    values = [each.get("value") for each in options]
    answer = one.get("answer")
    known = isinstance(answer, list) and all(each in values for each in answer)
    if not known or not answer:
        yield mistake(f"{path}.answer", "no_option", answer)
    elif _type_of(one) == "single" and len(set(answer)) != 1:
        yield mistake(f"{path}.answer", "out_of_bounds", "exactly one")


def _text_mistakes(
    one: dict[str, Any], path: str, *wanted: tuple[str, int, int]
) -> Iterator[ModelAnswerMistakeError]:
    for name, least, most in wanted:
        value = one.get(name)
        if value is None and least == 0:
            continue
        if not isinstance(value, str) or not least <= len(value.strip()) <= most:
            yield mistake(f"{path}.{name}", "out_of_bounds", f"{least} to {most} characters")


def _question(one: dict[str, Any], at: int) -> QuizQuestion:
    kind = _type_of(one)
    common = {
        "id": f"q{at + 1}",
        "question": one["question"].strip(),
        "analysis": (one.get("analysis") or "").strip() or None,
    }
    if kind == "short_answer":
        prompt = one["commentPrompt"].strip()
        return QuizQuestion(type="short_answer", comment_prompt=prompt, has_answer=False, **common)
    values = [each["value"] for each in one["options"]]
    letters = dict(zip(values, _LETTERS, strict=False))
    return QuizQuestion(
        type="multiple" if kind == "multiple" else "single",
        options=tuple(
            QuizOption(label=each["label"].strip(), value=letters[each["value"]])
            for each in one["options"]
        ),
        answer=tuple(sorted({letters[each] for each in one["answer"]})),
        has_answer=True,
        **common,
    )


def read_page(text: str, language: Language) -> InteractiveContent:
    """Return the page of an activity: whole in itself, policy and guard in front."""
    bare = without_thoughts(text)
    found_pages = (pattern.search(bare) for pattern in _DOCUMENTS)
    match = next((one for one in found_pages if one is not None), None)
    if match is None:
        raise refused([mistake("/", "no_html_document")])
    page = match.group()
    if len(page) > MOST_PAGE:
        raise refused([mistake("/", "too_long", f"at most {MOST_PAGE} characters")])
    if "viewport" not in page.lower():
        page = _HEAD.sub(lambda head: head.group() + _VIEWPORT, page, count=1)
    reported: dict[tuple[Kind, str], None] = {}

    def report(kind: Kind, found: str) -> None:
        reported.setdefault((kind, found))

    whole = contained(page, lambda _: None, lambda _: None, report)
    found = [mistake("/", kind, what) for kind, what in reported]
    if "<script" not in page.lower():
        found.append(mistake("/", "no_script", "learners must be able to do something"))
    seen = visible_text(page)
    if len(seen.strip()) < _LEAST_VISIBLE:
        found.append(mistake("/", "no_text", "it must say what to do"))
    found += script_mistakes([seen], language)
    if found:
        raise refused(found)
    return InteractiveContent(html=whole)


def read_project(text: str, language: Language) -> ProjectText:
    """Return what a project says."""
    said = shaped(json_of(text), ProjectText)
    found = [*_bare(said), *script_mistakes(texts_in(msgspec.to_builtins(said)), language)]
    if found:
        raise refused(found)
    return said


def read_sentences(text: str) -> tuple[str, ...]:
    """Return sentences to read aloud, each once; the language may be the one that is taught."""
    value = json_of(text)
    if isinstance(value, list):
        value = {"sentences": value}
    said = shaped(value, Sentences)
    found = [*_bare(said)]
    for at, one in enumerate(said.sentences):
        long = len(one) > MOST_HAN if is_chinese(one) else len(one.split()) > MOST_WORDS
        if long:
            found.append(mistake(f"sentences[{at}]", "too_long", one))
    if found:
        raise refused(found)
    different = {key(one): " ".join(one.split()) for one in said.sentences if key(one)}
    return tuple(different.values())
