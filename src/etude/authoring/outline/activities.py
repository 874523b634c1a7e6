"""Activities: eight kinds of page, each whole in one file, for a thumb on a phone.

A page asks nobody for anything: no network, no parent, no storage, no other address. What it needs
stands in it as JSON (`widget-config`). Which kind a module gets follows from its material; a module
never gets the kind of its neighbour, and a kind comes again only when the others had their turn.
"""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from etude.authoring.material import Fact, Ref, Unit
from etude.authoring.outline.lesson import Drawn, Lesson, mixed
from etude.authoring.outline.quizzes import gap, grouped
from etude.authoring.wording import key, pieces
from etude.classroom.model import InteractiveContent

_MOST: Final = 12
_LEAST_PAIRS: Final = 3
_LONGEST_SPELT: Final = 14
_LONGEST_CARD: Final = 160
_GAME_TYPES: Final[Mapping[str, str]] = {
    "match": "puzzle", "order": "puzzle", "gap": "quiz", "cards": "card", "sort": "card",
    "steps": "strategy", "spot": "quiz", "spell": "puzzle",
}  # fmt: skip
KINDS: Final = tuple(_GAME_TYPES)
_WORDS: Final = (
    *("restart", "next", "done", "again", "right", "yes", "no", "knew", "learn", "turn"),
    "is_right",
)

_Made = tuple[dict[str, Any], tuple[Ref, ...]]


def activity(lesson: Lesson, kind: str) -> Drawn:
    """Return the activity of a module."""
    made, refs = _MAKERS[kind](lesson)
    title, how = lesson.phrase(f"activity.{kind}"), lesson.phrase(f"activity.{kind}_do")
    told = {name: _raw(lesson, f"activity.{name}") for name in _WORDS}
    config = {"type": "game", "gameType": _GAME_TYPES[kind], "kind": kind, "words": told, **made}
    content = InteractiveContent(
        html=_page(lesson, kind, title, how, config), widget_type="game", widget_config=config
    )
    return Drawn(
        title=f"{title}: {lesson.spec.title}",
        content=content,
        refs=refs or (lesson.unit.ref,),
        says=(lesson.phrase("say.activity"),),
        points=(title,),
    )


def chosen_kinds(order: Sequence[int], lesson_of: Callable[[int], Lesson]) -> list[str]:
    """Return the kind of each module: `order` says which unit each one teaches."""
    used = dict.fromkeys(KINDS, 0)
    chosen: list[str] = []
    for at in order:
        fits = fitting_kinds(lesson_of(at))
        before = chosen[-1] if chosen else ""
        free = [kind for kind in fits if kind != before]
        best = min(free, key=lambda kind: (used[kind], fits.index(kind)))
        used[best] += 1
        chosen.append(best)
    return chosen


def fitting_kinds(lesson: Lesson) -> list[str]:
    """Return the kinds that a lesson has enough for, each once, the best first."""
    return list(dict.fromkeys(_fitting(lesson)))


def _fitting(lesson: Lesson) -> Iterator[str]:
    """Yield the kinds that a unit has enough for, the best first; there are always two."""
    unit = lesson.unit
    if any(len(one.facts) > 2 for one in unit.steps):  # noqa: PLR2004 - an order of two is no order
        yield "steps"
    if len(unit.terms) >= _LEAST_PAIRS:
        yield "match"
    if len(_orderable(lesson)) > 1:
        yield "order"
    if len(_gaps(lesson)[0]["gaps"]) > 1:
        yield "gap"
    if len(_spelt(unit)) >= _LEAST_PAIRS:
        yield "spell"
    if len(_sorted(lesson)[0]["groups"]) > 1:
        yield "sort"
    if len(unit.terms) >= _LEAST_PAIRS or len(_glossed(unit)) >= _LEAST_PAIRS:
        yield "spot"
    if len(_glossed(unit)) >= _LEAST_PAIRS and len(unit.terms) < _LEAST_PAIRS:
        yield "match"
    yield "cards"
    yield "order"


def _pairs(unit: Unit) -> list[tuple[str, str, Ref]]:
    """Return what belongs together: word and meaning, else sentence and its meaning."""
    pairs = [(term.term, term.meaning, term.ref) for term in unit.terms]
    return pairs or [(fact.text, fact.gloss, fact.ref) for fact in _glossed(unit)]


def _glossed(unit: Unit) -> list[Fact]:
    return [fact for fact in unit.sentences if fact.gloss]


def _match(lesson: Lesson) -> _Made:
    pairs = _pairs(lesson.unit)[:_MOST]
    return {"pairs": [{"left": a, "right": b} for a, b, _ in pairs]}, tuple(r for *_, r in pairs)


def _order(lesson: Lesson) -> _Made:
    facts = _orderable(lesson)[:8] or [*lesson.unit.sentences, *lesson.unit.facts][:4]
    made = []
    for fact in facts:
        parts = list(grouped(pieces(fact.text, lesson.terms), lesson))
        made.append({"pieces": parts, "answer": fact.text, "hint": fact.gloss})
    return {"sentences": made}, tuple(fact.ref for fact in facts)


def _orderable(lesson: Lesson) -> list[Fact]:
    facts = lesson.unit.sentences or lesson.unit.facts
    return [
        one
        for one in facts
        if 3 <= len(pieces(one.text, lesson.terms)) <= 12  # noqa: PLR2004 - what fits a phone
    ]


def _gaps(lesson: Lesson) -> _Made:
    made: list[dict[str, Any]] = []
    refs: list[Ref] = []
    for fact in [*lesson.unit.sentences, *lesson.unit.facts]:
        question = gap(lesson, fact)
        if question is None or len(made) == _MOST:
            continue
        before, _, after = fact.text.partition(question.about)
        made.append(
            {
                "before": before,
                "after": after,
                "answer": question.about,
                "options": list(question.options),
                "hint": fact.gloss,
            }
        )
        refs.append(fact.ref)
    return {"gaps": made}, tuple(refs)


def _cards(lesson: Lesson) -> _Made:
    unit = lesson.unit
    pairs = _pairs(unit)
    if not pairs:
        for fact in [*unit.sentences, *unit.facts]:
            word = lesson.focus(fact)
            if word and word != fact.text:
                front = fact.text.replace(word, lesson.phrase("missing"), 1)
                pairs.append((front, fact.text, fact.ref))
    pairs = pairs or [(fact.text, fact.text, fact.ref) for fact in (*unit.sentences, *unit.facts)]
    pairs = pairs or [
        (s.title, " → ".join(f.text for f in s.facts), s.facts[0].ref) for s in unit.steps
    ]
    pairs = [(a, b, ref) for a, b, ref in pairs if len(a) <= _LONGEST_CARD][:_MOST] or pairs[:1]
    return {"cards": [{"front": a, "back": b} for a, b, _ in pairs]}, tuple(r for *_, r in pairs)


def _sorted(lesson: Lesson) -> _Made:
    """Sort facts by topic, or words by lesson."""
    unit = lesson.unit
    topics = [one for one in unit.sections if one.title and one.title != unit.title][:4]
    if len(topics) > 1:
        cards = [(fact.text, one.title, fact.ref) for one in topics for fact in one.facts[:4]]
        groups = [one.title for one in topics]
    else:
        others = [one for one in lesson.syllabus.units[: lesson.at] if one.terms][-2:]
        units = [*others, unit] if unit.terms else []
        cards = [(term.term, one.title, term.ref) for one in units for term in one.terms[:5]]
        groups = [one.title for one in units]
    made = [{"text": text, "group": group} for text, group, _ in cards]
    return {"groups": groups, "cards": made}, tuple(ref for *_, ref in cards)


def _steps(lesson: Lesson) -> _Made:
    wanted = [one for one in lesson.unit.steps if len(one.facts) > 1][:4]
    made = [{"title": one.title, "steps": [fact.text for fact in one.facts]} for one in wanted]
    return {"sequences": made}, tuple(fact.ref for one in wanted for fact in one.facts)


def _spot(lesson: Lesson) -> _Made:
    """Show pairs, every second one wrong: with the meaning of another word of the lesson."""
    pairs = _pairs(lesson.unit)[:_MOST]
    made = []
    for at, (left, right, _) in enumerate(pairs):
        others = [b for _, b, _ in pairs if key(b) != key(right)]
        shown = mixed(others, left)[0] if at % 2 and others else right
        made.append({"left": left, "right": shown, "truth": shown == right, "answer": right})
    return {"claims": made}, tuple(ref for *_, ref in pairs)


def _spelt(unit: Unit) -> list[tuple[str, str, Ref]]:
    return [
        (term.term, term.meaning, term.ref)
        for term in unit.terms
        if 3 <= len(term.term) <= _LONGEST_SPELT and term.term.isascii()  # noqa: PLR2004 - two letters spell themselves
    ]


def _spell(lesson: Lesson) -> _Made:
    spelt = _spelt(lesson.unit)[:8]
    made = [{"word": word, "hint": hint} for word, hint, _ in spelt]
    return {"spellings": made}, tuple(ref for *_, ref in spelt)


_MAKERS: Final[Mapping[str, Callable[[Lesson], _Made]]] = {
    "match": _match, "order": _order, "gap": _gaps, "cards": _cards, "sort": _sorted,
    "steps": _steps, "spot": _spot, "spell": _spell,
}  # fmt: skip


def _page(lesson: Lesson, kind: str, title: str, how: str, config: dict[str, Any]) -> str:
    palette = lesson.palette
    data = msgspec.json.encode(config).decode().replace("<", "\\u003c")
    parts = {
        "LANG": lesson.syllabus.language,
        "TITLE": html.escape(title),
        "HOW": html.escape(how),
        "RESTART": html.escape(lesson.phrase("activity.restart")),
        "DEEP": palette.deep,
        "BRIGHT": palette.bright,
        "PALE": palette.pale,
        "ACCENT": palette.accent,
        "SCRIPT": _file(f"{kind}.js"),
    }
    page = _file("shell.html")
    for name, value in parts.items():
        page = page.replace(f"@{name}@", value)
    return page.replace("@CONFIG@", data)


def _raw(lesson: Lesson, name: str) -> str:
    """Return a phrase whose placeholder the page fills in."""
    return lesson.phrase(name, answer="{answer}")


@cache
def _file(name: str) -> str:
    return files("etude.authoring.outline").joinpath("pages", name).read_text("utf-8")
