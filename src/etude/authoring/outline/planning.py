"""The outline author's framework: units become modules, what they lack is said by rule."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from etude.authoring.framework import (
    Contract,
    CourseFramework,
    ModuleSpec,
    Prerequisite,
    TermEntry,
    checked,
)
from etude.authoring.material import Syllabus, Unit
from etude.authoring.wording import content_words, key
from etude.i18n import text

_MOST_GOALS: Final = 8
_LEAST_GOALS: Final = 3
_MOST_OBJECTIVES: Final = 6
_SHOWN_WORDS: Final = 6
_LINE: Final = 300
_PROMPT: Final = 7900


def plan(syllabus: Syllabus, title: str = "") -> CourseFramework:
    """Return the framework of a syllabus.

    Args:
        syllabus: the material.
        title: of the course; what the material says if left out.

    Raises:
        FrameworkInvalidError: the material has parts longer than a framework may.
    """
    say = syllabus.language
    units = syllabus.units
    named = title or syllabus.title or text("authoring.untitled", say, units=len(units))
    titles = _list((unit.title for unit in units), say)
    summary = syllabus.summary or text(
        "authoring.summary",
        say,
        units=len(units),
        files=_list(syllabus.files[:3], say),
        titles=titles,
    )
    modules = tuple(_module(syllabus, at) for at in range(len(units)))
    framework = CourseFramework(
        course_title=named[:120],
        summary=summary[:2000],
        language_directive=text("authoring.language", say),
        target_audience=(syllabus.audience or text("authoring.audience", say))[:1000],
        course_goals=_course_goals(syllabus),
        continuity_contract=Contract(
            terminology=tuple(_terminology(units)),
            teaching_style=text("authoring.style", say),
            difficulty_progression=text("authoring.progression", say),
            assessment_strategy=text("authoring.assessment", say),
        ),
        modules=modules,
    )
    return checked(framework)


def plan_lesson(syllabus: Syllabus, title: str = "") -> CourseFramework:
    """Return the framework of a lesson on its own: of one module, which nobody has to confirm.

    Args:
        syllabus: of one unit.
        title: of the lesson; what the material says if left out.
    """
    say = syllabus.language
    unit = syllabus.units[0]
    named = title or unit.title
    alone = msgspec.structs.replace(syllabus, units=(msgspec.structs.replace(unit, title=named),))
    spec = msgspec.structs.replace(_module(alone, 0), module_id=module_id(syllabus, 0))
    return CourseFramework(
        course_title=named[:120],
        summary=(syllabus.summary or spec.description)[:2000],
        language_directive=text("authoring.language", say),
        target_audience=(syllabus.audience or text("authoring.audience", say))[:1000],
        course_goals=_course_goals(alone),
        continuity_contract=Contract(
            terminology=tuple(_terminology(syllabus.units)),
            teaching_style=text("authoring.style", say),
            difficulty_progression=text("authoring.progression", say),
            assessment_strategy=text("authoring.assessment", say),
        ),
        modules=(spec,),
    )


def module_id(syllabus: Syllabus, at: int) -> str:
    """Return the id of a unit's module: it follows from what the unit says, not from its place."""
    said = msgspec.json.encode(syllabus.units[at])
    return "m-" + hashlib.sha256(said).hexdigest()[:12]


def key_words(unit: Unit, most: int = 60) -> tuple[str, ...]:
    """Return the words that a unit is about: those it explains, else those of its sentences."""
    words = [term.term for term in unit.terms]
    for fact in (*unit.sentences, *unit.facts):
        words += fact.marked
    if not words:
        for fact in (*unit.sentences, *unit.facts):
            words += content_words(fact.text)[:1]
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(key(word), word)
    return tuple(seen.values())[:most]


def objectives(syllabus: Syllabus, unit: Unit) -> tuple[str, ...]:
    """Return what learners can do after a unit."""
    say = syllabus.language
    own = [goal.text[:_LINE] for goal in unit.goals]
    if not own:
        own = list(_made_objectives(unit, say))
    return tuple(_different(own))[:_MOST_OBJECTIVES]


def minutes_of(unit: Unit) -> int:
    """Return how long a lesson takes, to five minutes."""
    steps = sum(len(one.facts) for one in unit.steps)
    whole = 10 + 2 * len(unit.terms) + len(unit.facts) + steps + 2 * len(unit.sentences)
    whole += 2 * len(unit.questions) + 3 * len(unit.tasks)
    return min(240, -(-whole // 5) * 5)


def _module(syllabus: Syllabus, at: int) -> ModuleSpec:
    unit, say = syllabus.units[at], syllabus.language
    earlier = syllabus.units[:at]
    before = earlier[-1] if earlier else None
    wanted = objectives(syllabus, unit)
    return ModuleSpec(
        module_id=module_id(syllabus, at),
        title=unit.title[:120],
        description=_description(unit, say)[:1000],
        generation_prompt=_brief(syllabus, at, wanted)[:_PROMPT],
        learning_objectives=wanted,
        prerequisites=()
        if before is None
        else (Prerequisite(module_index=at - 1, text=before.title[:_LINE]),),
        incoming_knowledge=tuple(_outgoing(before, say)) if before else (),
        outgoing_knowledge=tuple(_outgoing(unit, say)),
        excluded_topics=tuple(
            one.title[:_LINE]
            for one in syllabus.units[at + 1 :]
            if key(one.title) not in map(key, wanted)
        ),
        estimated_minutes=minutes_of(unit),
    )


def _course_goals(syllabus: Syllabus) -> tuple[str, ...]:
    say = syllabus.language
    goals = [goal[:_LINE] for goal in syllabus.goals]
    for unit in syllabus.units:
        if len(goals) >= _LEAST_GOALS + (0 if syllabus.goals else 1):
            break
        goals += list(objectives(syllabus, unit))[:1]
    sentences = sum(len(unit.sentences) for unit in syllabus.units)
    if sentences and not syllabus.goals:
        goals.append(text("authoring.goal_read", say, count=sentences))
    topics = _list([unit.title for unit in syllabus.units][:4], say)
    goals.append(text("authoring.goal_answer", say, topics=topics)[:_LINE])
    kept = list(_different(goals))
    if len(kept) < _LEAST_GOALS:  # lessons that begin alike aim alike: their titles differ
        titles = [text("authoring.goal_answer", say, topics=unit.title) for unit in syllabus.units]
        kept = list(_different([*kept, *(title[:_LINE] for title in titles)]))[:_LEAST_GOALS]
    wanted = max(_LEAST_GOALS, len(syllabus.goals)) if syllabus.goals else _MOST_GOALS
    return tuple(kept[: min(wanted, _MOST_GOALS)])


def _made_objectives(unit: Unit, say: str) -> Iterator[str]:
    words = [term.term for term in unit.terms] or list(key_words(unit, _SHOWN_WORDS))
    if words:
        shown = _list(words[:_SHOWN_WORDS], say)
        yield text("authoring.goal_words", say, words=shown)[:_LINE]
    topics = [one.title for one in unit.sections if one.title and one.title != unit.title]
    if topics:
        yield text("authoring.goal_explain", say, topics=_list(topics[:4], say))[:_LINE]
    for one in unit.steps[:2]:
        yield text("authoring.goal_order", say, title=one.title)[:_LINE]
    if unit.sentences:
        yield text("authoring.goal_read", say, count=len(unit.sentences))
    if unit.tasks:
        yield text("authoring.goal_project", say, title=unit.tasks[0].text)[:_LINE]
    yield text("authoring.goal_answer", say, topics=unit.title)[:_LINE]


def _outgoing(unit: Unit, say: str) -> Iterator[str]:
    words = key_words(unit, 12)
    if words:
        yield text("authoring.knows_words", say, words=_list(words, say))[:_LINE]
    if unit.facts or unit.steps:
        yield text("authoring.knows_topic", say, title=unit.title)[:_LINE]
    if unit.sentences:
        yield text("authoring.knows_sentences", say, title=unit.title)[:_LINE]
    if not (words or unit.facts or unit.steps or unit.sentences):
        yield text("authoring.knows_topic", say, title=unit.title)[:_LINE]


def _description(unit: Unit, say: str) -> str:
    parts = []
    words = [term.term for term in unit.terms]
    if words:
        shown = _list(words[:_SHOWN_WORDS], say)
        parts.append(text("authoring.part_words", say, count=len(words), words=shown))
    if unit.facts:
        topics = _list([one.title or unit.title for one in unit.sections][:4], say)
        parts.append(text("authoring.part_facts", say, count=len(unit.facts), topics=topics))
    parts += [text("authoring.part_steps", say, title=one.title) for one in unit.steps]
    if unit.sentences:
        parts.append(text("authoring.part_sentences", say, count=len(unit.sentences)))
    if unit.tasks:
        parts.append(text("authoring.part_tasks", say, count=len(unit.tasks)))
    return text("authoring.description", say, title=unit.title, parts=_list(parts, say))


def _brief(syllabus: Syllabus, at: int, wanted: Sequence[str]) -> str:
    unit, say = syllabus.units[at], syllabus.language
    lines = [
        text(
            "authoring.brief",
            say,
            title=unit.title,
            number=at + 1,
            count=len(syllabus.units),
            place=syllabus.place(unit.refs()),
        ),
        text("authoring.brief_goals", say, goals="; ".join(wanted)),
    ]
    if unit.terms:
        words = "; ".join(f"{term.term} = {term.meaning}" for term in unit.terms)
        lines.append(text("authoring.brief_words", say, words=words))
    if unit.facts:
        facts = " ".join(fact.text for fact in unit.facts)
        lines.append(text("authoring.brief_facts", say, facts=facts))
    for one in unit.steps:
        steps = " → ".join(fact.text for fact in one.facts)
        lines.append(text("authoring.brief_steps", say, steps=f"{one.title}: {steps}"))
    if unit.sentences:
        sentences = " ".join(fact.text for fact in unit.sentences)
        lines.append(text("authoring.brief_sentences", say, sentences=sentences))
    closing = text("authoring.brief_close", say)
    return "\n".join(lines)[: _PROMPT - len(closing) - 1] + "\n" + closing


def _terminology(units: Sequence[Unit]) -> Iterator[TermEntry]:
    seen: set[str] = set()
    for unit in units:
        for term in unit.terms:
            if key(term.term) not in seen and len(seen) < 60:  # noqa: PLR2004 - the limit of the contract
                seen.add(key(term.term))
                yield TermEntry(term=term.term[:120], definition=term.meaning[:600])


def _different(lines: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for line in lines:
        if key(line) not in seen:
            seen.add(key(line))
            yield line


def _list(parts: Iterable[str], say: str) -> str:
    return text("authoring.list_and", say).join(parts)
