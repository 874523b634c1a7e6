"""The framework of a course: what a person reads and confirms before a module is made.

Its limits are those of the types here. What a program or a person sends is checked whole;
every mistake is named by its path. Records of old are filled in when they are read and marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from etude.authoring.errors import FrameworkInvalidError, FrameworkMistakeError
from etude.authoring.wording import key
from etude.documents import Document, check

LEAST_PROMPT: Final = 80

_Title = Annotated[str, Meta(min_length=1, max_length=120)]
_Long = Annotated[str, Meta(min_length=1, max_length=2000)]
_Line = Annotated[str, Meta(min_length=1, max_length=300)]
_Lines = Annotated[tuple[_Line, ...], Meta(max_length=30)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class TermEntry(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A word that means the same in every module."""

    term: Annotated[str, Meta(min_length=1, max_length=120)]
    definition: Annotated[str, Meta(max_length=600)] = ""


class Contract(_Part, frozen=True, kw_only=True):
    """What all modules keep to."""

    terminology: Annotated[tuple[TermEntry, ...], Meta(max_length=60)]
    teaching_style: _Long
    difficulty_progression: _Long
    assessment_strategy: _Long


class Prerequisite(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What has to come first: an earlier module, or something to know."""

    module_index: Annotated[int, Meta(ge=0, le=14)] | None = None
    text: _Line


class ModuleSpec(_Part, frozen=True, kw_only=True):
    """A module; `module_id` stays the same through edits, also when modules change places."""

    module_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)")]
    title: _Title
    description: Annotated[str, Meta(min_length=1, max_length=1000)]
    generation_prompt: Annotated[str, Meta(min_length=LEAST_PROMPT, max_length=8000)]
    learning_objectives: Annotated[tuple[_Line, ...], Meta(min_length=1, max_length=8)]
    prerequisites: Annotated[tuple[Prerequisite, ...], Meta(max_length=30)]
    incoming_knowledge: _Lines
    outgoing_knowledge: Annotated[tuple[_Line, ...], Meta(min_length=1, max_length=30)]
    excluded_topics: _Lines
    estimated_minutes: Annotated[int, Meta(ge=5, le=240)]


class CourseFramework(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The framework; `compat` marks one that was filled in: no gate accepts it for that alone."""

    course_title: _Title
    summary: _Long
    language_directive: _Long
    target_audience: Annotated[str, Meta(min_length=1, max_length=1000)]
    course_goals: Annotated[tuple[_Line, ...], Meta(min_length=3, max_length=8)]
    continuity_contract: Contract
    modules: Annotated[tuple[ModuleSpec, ...], Meta(min_length=4, max_length=15)]
    compat: bool = False


def framework_from(value: Mapping[str, Any]) -> CourseFramework:
    """Return the framework that plain values say.

    Raises:
        FrameworkInvalidError: its parts are all the mistakes, each with its path.
    """
    plain = _normalised(value)
    try:
        framework = msgspec.convert(plain, CourseFramework)
    except msgspec.ValidationError as error:
        raise _invalid(list(_shape(plain)) or [_mistake("/", str(error)[:200])]) from error
    checked(framework)
    return framework


def checked(framework: CourseFramework) -> CourseFramework:
    """Return the framework if it keeps the rules that types cannot say.

    Raises:
        FrameworkInvalidError: as `framework_from`.
    """
    plain = msgspec.json.decode(msgspec.json.encode(framework))
    found = [*_shape(plain), *_mistakes(framework)]
    if found:
        raise _invalid(found)
    return framework


def read_framework(data: bytes) -> CourseFramework:
    """Return a stored framework; one of old is filled in and marked `compat`."""
    value = msgspec.json.decode(data)
    try:
        return framework_from(value)
    except FrameworkInvalidError:
        return msgspec.convert(filled(value), CourseFramework)


def filled(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain framework of an old record with what it lacks filled in by rule."""
    title = str(value.get("courseTitle") or "-")
    summary = str(value.get("summary") or title)
    contract = dict(value.get("continuityContract") or {})
    modules = [
        _filled_module(dict(one), at, summary) for at, one in enumerate(value.get("modules") or ())
    ]
    return {
        "courseTitle": title,
        "summary": summary,
        "languageDirective": value.get("languageDirective") or "-",
        "targetAudience": value.get("targetAudience") or "-",
        "courseGoals": list(value.get("courseGoals") or [one["title"] for one in modules])[:8],
        "continuityContract": {
            "terminology": _terms(contract.get("terminology") or ()),
            "teachingStyle": contract.get("teachingStyle") or "-",
            "difficultyProgression": contract.get("difficultyProgression") or "-",
            "assessmentStrategy": contract.get("assessmentStrategy") or "-",
        },
        "modules": modules,
        "compat": True,
    }


def _filled_module(one: dict[str, Any], at: int, summary: str) -> dict[str, Any]:
    title = str(one.get("title") or f"{at + 1}")
    description = str(one.get("description") or title)
    prompt = str(one.get("generationPrompt") or f"{title}\n{description}\n{summary}")
    return {
        "moduleId": one.get("moduleId") or f"module-{at}",
        "title": title,
        "description": description,
        "generationPrompt": prompt.ljust(LEAST_PROMPT, "."),
        "learningObjectives": list(one.get("learningObjectives") or [title]),
        "prerequisites": list(one.get("prerequisites") or ()),
        "incomingKnowledge": list(one.get("incomingKnowledge") or ()),
        "outgoingKnowledge": list(one.get("outgoingKnowledge") or [title]),
        "excludedTopics": list(one.get("excludedTopics") or ()),
        "estimatedMinutes": one.get("estimatedMinutes") or 30,
    }


def _normalised(value: Mapping[str, Any]) -> dict[str, Any]:
    """Accept terms and prerequisites that are plain strings, as models write them."""
    plain = dict(value)
    contract = plain.get("continuityContract")
    if isinstance(contract, dict) and isinstance(contract.get("terminology"), list):
        plain["continuityContract"] = contract | {"terminology": _terms(contract["terminology"])}
    if isinstance(plain.get("modules"), list):
        plain["modules"] = [_module(one) for one in plain["modules"]]
    return plain


def _module(one: object) -> object:
    if not isinstance(one, dict) or not isinstance(one.get("prerequisites"), list):
        return one
    wanted = [{"text": each} if isinstance(each, str) else each for each in one["prerequisites"]]
    return one | {"prerequisites": wanted}


def _terms(terms: Sequence[object]) -> list[object]:
    return [{"term": one} if isinstance(one, str) else one for one in terms]


def _shape(plain: Mapping[str, Any]) -> Iterator[FrameworkMistakeError]:
    for mistake in check(Document(plain, {}), CourseFramework):
        detail = ", ".join(f"{name}: {value}" for name, value in mistake.params.items())
        yield _mistake(mistake.path or "/", mistake.kind, detail)


def _mistakes(framework: CourseFramework) -> Iterator[FrameworkMistakeError]:
    yield from _twice("courseGoals", framework.course_goals)
    terms = [one.term for one in framework.continuity_contract.terminology]
    yield from _twice("continuityContract.terminology", terms)
    modules = framework.modules
    yield from _twice("modules", [one.title for one in modules], "title")
    yield from _twice("modules", [one.module_id for one in modules], "moduleId")
    yield from _twice("modules", [one.generation_prompt for one in modules], "generationPrompt")
    for index, module in enumerate(modules):
        yield from _module_mistakes(module, index)


def _module_mistakes(module: ModuleSpec, index: int) -> Iterator[FrameworkMistakeError]:
    path = f"modules[{index}]"
    if key(module.generation_prompt) == key(module.description):
        yield _mistake(f"{path}.generationPrompt", "same_as_description")
    for at, one in enumerate(module.prerequisites):
        if one.module_index is not None and one.module_index >= index:
            yield _mistake(f"{path}.prerequisites[{at}].moduleIndex", "not_earlier")
    if index and not module.incoming_knowledge:
        yield _mistake(f"{path}.incomingKnowledge", "empty")
    objectives = {key(one) for one in module.learning_objectives}
    for at, topic in enumerate(module.excluded_topics):
        if key(topic) in objectives:
            yield _mistake(f"{path}.excludedTopics[{at}]", "is_an_objective")


def _twice(path: str, names: Sequence[str], field: str = "") -> Iterator[FrameworkMistakeError]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if key(name) in seen:
            yield _mistake(f"{path}[{index}]" + (f".{field}" if field else ""), "twice")
        seen.add(key(name))


def _mistake(path: str, rule: str, detail: str = "") -> FrameworkMistakeError:
    return FrameworkMistakeError(path=path, rule=rule, detail=detail)


def _invalid(found: Sequence[FrameworkMistakeError]) -> FrameworkInvalidError:
    return FrameworkInvalidError(*found[:200], mistakes=len(found))
