"""Activities: eight kinds of page, each whole in one file, for a thumb on a phone.

A page asks nobody for anything: no network, no parent, no storage, no other address. What it needs
stands in it as JSON (`widget-config`). Which kind a module gets follows from its material; a module
never gets the kind of its neighbour, and a kind comes again only when the others had their turn.
"""

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Final

import msgspec

from etude.authoring.material import MOST_IN_A_THING, Fact, Ref, Section, Unit
from etude.authoring.outline.lesson import Drawn, Lesson, mixed
from etude.authoring.outline.quizzes import followers, gap, grouped
from etude.authoring.wording import around, key, pieces, sense
from etude.classroom.model import InteractiveContent

_MOST: Final = 12
_LEAST: Final = 2
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
_Pair = tuple[str, str, Ref]
_Card = tuple[str, Ref]
_Groups = dict[str, list[_Card]]


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
    """Return the kind of each module: `order` says which unit each one teaches.

    A module whose material is good for one kind alone has it, whatever its neighbour has.
    """
    used = dict.fromkeys(KINDS, 0)
    chosen: list[str] = []
    for at in order:
        fits = fitting_kinds(lesson_of(at))
        before = chosen[-1] if chosen else ""
        free = [kind for kind in fits if kind != before] or fits
        best = min(free, key=lambda kind: (used[kind], fits.index(kind)))
        used[best] += 1
        chosen.append(best)
    return chosen


def fitting_kinds(lesson: Lesson) -> list[str]:
    """Return the kinds that a lesson has enough for, each once, the best first."""
    found = dict.fromkeys(_fitting(lesson))
    if len(found) < _LEAST and _is_sorting(_by_lesson(lesson, _texts)):
        found["sort"] = None
    return list(found)


def _fitting(lesson: Lesson) -> Iterator[str]:
    """Yield the kinds that a unit has enough for, the best first; the last ones are for any."""
    unit = lesson.unit
    if any(len(one.facts) > 2 for one in _sequences(lesson)):  # noqa: PLR2004 - an order of two is no order
        yield "steps"
    if len(_apart(lesson, _explained(unit))) >= _LEAST_PAIRS:
        yield "match"
    if len(_orderable(lesson, unit)) >= _LEAST:
        yield "order"
    if len(_gaps(lesson)[0]["gaps"]) >= _LEAST:
        yield "gap"
    if len(_spelt(unit)) >= _LEAST_PAIRS:
        yield "spell"
    if any(map(_is_sorting, (_by_topic(lesson), _by_lesson(lesson, _words)))):
        yield "sort"
    if len(_pairs(lesson)) >= _LEAST_PAIRS:
        yield "spot"
        yield "match"
    if len(_cards(lesson)[0]["cards"]) >= _LEAST:
        yield "cards"
    if len(_order(lesson)[0]["sentences"]) >= _LEAST:
        yield "order"


def _explained(unit: Unit) -> list[_Pair]:
    return [(term.term, term.meaning, term.ref) for term in unit.terms]


def _glossed(unit: Unit) -> list[_Pair]:
    return [(fact.text, fact.gloss, fact.ref) for fact in unit.sentences if fact.gloss]


def _pairs(lesson: Lesson) -> list[_Pair]:
    """Return what belongs together: word and meaning, else sentence and its meaning."""
    pairs = _apart(lesson, _explained(lesson.unit))
    if len(pairs) < _LEAST_PAIRS:
        pairs = _apart(lesson, _glossed(lesson.unit)) or pairs
    return pairs[:_MOST]


def _apart(lesson: Lesson, pairs: Iterable[_Pair]) -> list[_Pair]:
    """Return pairs of which no half belongs to another one, nor says the same as its own."""
    found: dict[str, _Pair] = {}
    for left, right, ref in pairs:
        if sense(left) != sense(right):
            found.setdefault(lesson.truths.family(left), (left, right, ref))
    return list(found.values())


def _nearest(lesson: Lesson) -> Iterator[Unit]:
    """Yield the unit, then those before it, the last one first, then those after it."""
    units = lesson.syllabus.units
    yield from (lesson.unit, *reversed(units[: lesson.at]), *units[lesson.at + 1 :])


def _match(lesson: Lesson) -> _Made:
    pairs = _pairs(lesson)
    return {"pairs": [{"left": a, "right": b} for a, b, _ in pairs]}, tuple(r for *_, r in pairs)


def _order(lesson: Lesson) -> _Made:
    """Let sentences be built; what a unit lacks comes from those around it."""
    facts: list[Fact] = []
    for unit in _nearest(lesson):
        facts += _orderable(lesson, unit)
        if len(facts) >= _LEAST:
            break
    facts = _each_once(facts)[:8]
    made = [
        {"pieces": list(grouped(fact, lesson)), "answer": fact.text, "hint": fact.gloss}
        for fact in facts
    ]
    return {"sentences": made}, tuple(fact.ref for fact in facts)


def _orderable(lesson: Lesson, unit: Unit) -> list[Fact]:
    """Return sentences that fit a phone and have one right order."""
    found = []
    for fact in _each_once(unit.sentences or unit.facts):
        parts = pieces(fact.text, lesson.terms)
        several = len(set(map(key, parts))) > 1
        if 3 <= len(parts) <= 12 and several and not lesson.truths.rearranged(fact.text):  # noqa: PLR2004 - what fits a phone
            found.append(fact)
    return found


def _each_once(facts: Iterable[Fact]) -> list[Fact]:
    once: dict[str, Fact] = {}
    for fact in facts:
        once.setdefault(key(fact.text), fact)
    return list(once.values())


def _gaps(lesson: Lesson) -> _Made:
    made: list[dict[str, Any]] = []
    refs: list[Ref] = []
    for fact in _each_once([*lesson.unit.sentences, *lesson.unit.facts]):
        question = gap(lesson, fact)
        if question is None or len(made) == _MOST:
            continue
        before, after = around(fact.text, question.about)
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
    """Let cards be turned; what a unit lacks comes from those around it, from long texts last."""
    found: dict[str, _Pair] = {}
    sides = (_both, _blanks, _following, _plain)
    units = list(_nearest(lesson))
    for longest in (_LONGEST_CARD, MOST_IN_A_THING):
        for unit, side in product(units, sides):
            if len(found) < _LEAST:
                for front, back, ref in side(lesson, unit):
                    if len(front) <= longest:
                        found.setdefault(key(front), (front, back, ref))
    pairs = list(found.values())[:_MOST]
    return {"cards": [{"front": a, "back": b} for a, b, _ in pairs]}, tuple(r for *_, r in pairs)


def _both(lesson: Lesson, unit: Unit) -> Iterator[_Pair]:
    """Yield the two sides of what is explained."""
    del lesson
    pairs = _explained(unit) or _glossed(unit)
    yield from (pair for pair in pairs if sense(pair[0]) != sense(pair[1]))


def _blanks(lesson: Lesson, unit: Unit) -> Iterator[_Pair]:
    """Yield sentences, without a word and with it."""
    for fact in (*unit.sentences, *unit.facts):
        word = lesson.focus(fact)
        if word and key(word) != key(fact.text):
            yield lesson.phrase("missing").join(around(fact.text, word)), fact.text, fact.ref


def _following(lesson: Lesson, unit: Unit) -> Iterator[_Pair]:
    """Yield steps, and what comes after them."""
    for section in unit.steps:
        for at in followers(lesson, section):
            step, following = section.facts[at], section.facts[at + 1]
            front = lesson.phrase("quiz.after", title=section.title, step=step.text)
            yield front, following.text, step.ref


def _plain(lesson: Lesson, unit: Unit) -> Iterator[_Pair]:
    """Yield what is only there to be read."""
    del lesson
    yield from ((text, text, ref) for text, ref in _texts(unit))
    yield from ((fact.text, fact.text, fact.ref) for one in unit.steps for fact in one.facts)


def _sorted(lesson: Lesson) -> _Made:
    """Sort facts by topic, words by lesson, else sentences by lesson."""
    ways = (_by_topic(lesson), _by_lesson(lesson, _words), _by_lesson(lesson, _texts))
    groups = next(filter(_is_sorting, ways), {})
    made = [{"text": text, "group": group} for group, cards in groups.items() for text, _ in cards]
    refs = tuple(ref for cards in groups.values() for _, ref in cards)
    return {"groups": list(groups), "cards": made}, refs


def _is_sorting(groups: _Groups) -> bool:
    return len(groups) > 1 and sum(map(len, groups.values())) >= _LEAST_PAIRS


def _by_topic(lesson: Lesson) -> _Groups:
    unit = lesson.unit
    topics: dict[str, tuple[str, list[_Card]]] = {}
    for one in unit.sections:
        if one.title and key(one.title) != key(unit.title):
            _, cards = topics.setdefault(key(one.title), (one.title, []))
            cards += ((fact.text, fact.ref) for fact in one.facts)
    return _in_one_group(dict(list(topics.values())[:4]), 4)


def _by_lesson(lesson: Lesson, cards_of: Callable[[Unit], list[_Card]]) -> _Groups:
    """Return what this and the two lessons before it have, if each has something."""
    others = [one for one in lesson.syllabus.units[: lesson.at] if cards_of(one)][-2:]
    units = [*others, lesson.unit] if cards_of(lesson.unit) else []
    return _in_one_group({one.title: cards_of(one) for one in units}, 5)


def _in_one_group(groups: _Groups, most: int) -> _Groups:
    """Return groups without what belongs to several of them; a group that loses all is none."""
    homes = Counter(name for cards in groups.values() for name in {key(text) for text, _ in cards})
    found: _Groups = {}
    for title, cards in groups.items():
        own = {key(text): (text, ref) for text, ref in reversed(cards) if homes[key(text)] == 1}
        if own:
            found[title] = list(own.values())[::-1][:most]
    return found


def _words(unit: Unit) -> list[_Card]:
    return [(term.term, term.ref) for term in unit.terms]


def _texts(unit: Unit) -> list[_Card]:
    """Return the words, sentences and facts of a unit."""
    return [*_words(unit), *((fact.text, fact.ref) for fact in (*unit.sentences, *unit.facts))]


def _steps(lesson: Lesson) -> _Made:
    wanted = _sequences(lesson)[:4]
    made = [{"title": one.title, "steps": [fact.text for fact in one.facts]} for one in wanted]
    return {"sequences": made}, tuple(fact.ref for one in wanted for fact in one.facts)


def _sequences(lesson: Lesson) -> list[Section]:
    """Return sequences that have one right order, each once."""
    found: dict[tuple[str, ...], Section] = {}
    for one in lesson.unit.steps:
        keys = [key(fact.text) for fact in one.facts]
        if len(set(keys)) > 1 and len(lesson.truths.orders(one)) == 1:
            found.setdefault((key(one.title), *keys), one)
    return list(found.values())


def _spot(lesson: Lesson) -> _Made:
    """Show pairs, every second one wrong: with the meaning of another word of the lesson."""
    pairs = _pairs(lesson)
    made = []
    for at, (left, right, _) in enumerate(pairs):
        others = [b for _, b, _ in pairs if b != right]
        shown = mixed(others, left)[0] if at % 2 and others else right
        made.append({"left": left, "right": shown, "truth": shown == right, "answer": right})
    return {"claims": made}, tuple(ref for *_, ref in pairs)


def _spelt(unit: Unit) -> list[_Pair]:
    """Return words that can be spelt letter by letter, each once."""
    once: dict[str, _Pair] = {}
    for term in unit.terms:
        word = term.term
        short = 3 <= len(word) <= _LONGEST_SPELT  # noqa: PLR2004 - two letters spell themselves
        if short and word.isascii() and word.isprintable() and len(set(key(word))) > 1:
            once.setdefault(key(word), (word, term.meaning, term.ref))
    return list(once.values())


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
