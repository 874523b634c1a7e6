"""From what files say to 4 to 15 units: long ones are cut, short ones joined, each has a title."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import msgspec

from etude.authoring.material import LEAST_UNITS, MOST_UNITS, Section, Syllabus, Unit
from etude.authoring.wording import content_words, key

_COMFORTABLE: Final = 10
"""So many things can be learnt in one module."""
_TITLE_WORDS: Final = 3
_LONGEST_TITLE: Final = 110

Thing = TypeVar("Thing")


def arranged(syllabus: Syllabus) -> tuple[Unit, ...]:
    """Return the units that modules are made of, in the material's order."""
    units = [unit for unit in syllabus.units if unit.size]
    if len(units) == 1 and not units[0].title:
        wanted = math.ceil(units[0].size / _COMFORTABLE)
        units = _cut(units[0], max(LEAST_UNITS, min(MOST_UNITS, wanted)))
    while len(units) < LEAST_UNITS:
        halves = _halved(units)
        if halves is None:
            break
        units = halves
    while len(units) > MOST_UNITS:
        at = min(range(len(units) - 1), key=lambda one: units[one].size + units[one + 1].size)
        units[at : at + 2] = [_together(units[at], units[at + 1])]
    return tuple(_titled(units))


def whole(syllabus: Syllabus) -> Unit:
    """Return the one unit that a lesson on its own is made of; `size` is 0 if there is nothing."""
    units = [unit for unit in syllabus.units if unit.size]
    if not units:
        return Unit(title=syllabus.title, ref=syllabus.ref)
    made = _named(units[0])
    for unit in units[1:]:
        made = _together(made, _named(unit))
    title = syllabus.title or (units[0].title if len(units) == 1 else "") or _by_words(made)
    return _steps_named(made, title[:_LONGEST_TITLE])


def _named(unit: Unit) -> Unit:
    """Let topics without a title have their unit's, which they lose."""
    sections = [
        one if one.title else Section(title=unit.title, facts=one.facts) for one in unit.sections
    ]
    return msgspec.structs.replace(unit, sections=tuple(sections))


def _halved(units: Sequence[Unit]) -> list[Unit] | None:
    """Cut the longest unit that can be cut; None: none can, so the material is too little."""
    for at in sorted(range(len(units)), key=lambda one: -units[one].size):
        pieces = _cut(units[at], 2)
        if len(pieces) > 1:
            return [*units[:at], *pieces, *units[at + 1 :]]
    return None


def _cut(unit: Unit, parts: int) -> list[Unit]:
    """Cut a unit; words, facts and sentences are cut alike, so that they stay together."""
    terms = _even(unit.terms, parts)
    sentences = _even(unit.sentences, parts)
    sections = _even(_small(unit.sections, parts), parts)
    cut = [
        Unit(
            title=unit.title,
            ref=unit.ref,
            terms=terms[at],
            sentences=sentences[at],
            sections=sections[at],
            goals=unit.goals,
            steps=unit.steps if at == parts - 1 else (),
            questions=unit.questions if at == parts - 1 else (),
            tasks=unit.tasks if at == parts - 1 else (),
        )
        for at in range(parts)
    ]
    return [one for one in cut if one.size]


def _small(sections: Sequence[Section], parts: int) -> tuple[Section, ...]:
    if len(sections) >= parts:
        return tuple(sections)
    return tuple(
        Section(title=section.title, facts=(fact,))
        for section in sections
        for fact in section.facts
    )


def _even(things: Sequence[Thing], parts: int) -> list[tuple[Thing, ...]]:
    edges = [round(len(things) * at / parts) for at in range(parts + 1)]
    return [tuple(things[low:high]) for low, high in pairwise(edges)]


def _together(first: Unit, second: Unit) -> Unit:
    title = f"{first.title} · {second.title}".strip(" ·")[:_LONGEST_TITLE]
    return msgspec.structs.replace(
        first,
        title=title,
        goals=first.goals + second.goals,
        terms=first.terms + second.terms,
        sections=first.sections + second.sections,
        steps=first.steps + second.steps,
        sentences=first.sentences + second.sentences,
        questions=first.questions + second.questions,
        tasks=first.tasks + second.tasks,
    )


def _titled(units: Sequence[Unit]) -> Iterator[Unit]:
    """Give a title to those without, and another one to those that have the same."""
    seen: set[str] = set()
    for unit in units:
        title = (unit.title or _by_words(unit))[:_LONGEST_TITLE]
        if key(title) in seen:
            title = f"{title}: {_by_words(unit)}"[:_LONGEST_TITLE]
        bare, number = title, 2
        while key(title) in seen:
            title, number = f"{bare} ({number})", number + 1
        seen.add(key(title))
        yield _steps_named(unit, title)


def _steps_named(unit: Unit, title: str) -> Unit:
    """Give a unit its title; steps without one have it too."""
    steps = [one if one.title else Section(title=title, facts=one.facts) for one in unit.steps]
    return msgspec.structs.replace(unit, title=title, steps=tuple(steps))


def _by_words(unit: Unit) -> str:
    """Return a title from the words of a unit."""
    words = [term.term for term in unit.terms]
    for fact in (*unit.sentences, *unit.facts):
        found = fact.marked or content_words(fact.text)
        words += found[:1]
    chosen = list(dict.fromkeys(words))[:_TITLE_WORDS]
    return " · ".join(chosen) or _first_words(unit)


def _first_words(unit: Unit) -> str:
    """Return the first thing that a unit says, whatever it is."""
    said = [one.title for one in (*unit.steps, *unit.sections)]
    said += [one.text for one in (*unit.sentences, *unit.facts)]
    said += [fact.text for one in unit.steps for fact in one.facts]
    return next(filter(None, said))
