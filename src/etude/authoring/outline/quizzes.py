"""Questions made from the material: choose, fill the gap, put in order.

Every wrong option is a word, meaning, step or sentence of the material. Nothing is drawn at random:
the order of options follows from their words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from etude.authoring.material import Fact, Ref, Section, Term
from etude.authoring.outline.lesson import Drawn, Lesson, in_parts, mixed
from etude.authoring.wording import around, content_words, is_little, joined, key, pieces, sense
from etude.classroom.model import QuizContent, QuizOption, QuizQuestion

_OPTIONS: Final = 4
_LEAST: Final = 2
_LONGEST_OPTION: Final = 400
_LONGEST_ASKED: Final = 1500
_LONGEST_WHY: Final = 4000
"""Characters: what can still be read on a phone; the last one is the classroom's bound."""
_A_QUIZ: Final = 8
_ORDERED: Final = 2
_PIECES: Final = 6
_SHORTEST: Final = 3
_SIMILAR: Final = 4
"""Letters by which words may differ in length and still look alike."""
_TOPIC_GAPS: Final = 2
_ALONE_GAPS: Final = 6
"""So many facts a lesson on its own asks about at least: it has few topics."""
_MARK: Final = re.compile(r"[,;:，；：、。]")  # noqa: RUF001 - Chinese marks


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question before it has a number; the first of `options` is right."""

    kind: str
    asks: str
    options: tuple[str, ...]
    why: str
    refs: tuple[Ref, ...]
    about: str


def quizzes(lesson: Lesson) -> list[Drawn]:
    """Return the quizzes of a module, none longer than eight questions."""
    made = questions(lesson)
    parts = in_parts(made, _A_QUIZ)
    drawn = []
    for at, part in enumerate(parts, 1):
        name = "quiz.title" if len(parts) == 1 else "quiz.title_of"
        asked = tuple(_numbered(one, f"q{at}-{number}") for number, one in enumerate(part, 1))
        drawn.append(
            Drawn(
                title=lesson.phrase(name, at=at, count=len(parts)),
                content=QuizContent(questions=asked),
                refs=tuple(ref for one in part for ref in one.refs),
                says=(lesson.phrase("say.quiz"),),
                points=tuple(dict.fromkeys(one.about for one in part)),
            )
        )
    return drawn


def questions(lesson: Lesson) -> list[Question]:
    """Return all questions of a module: words, then gaps, then orders."""
    unit = lesson.unit
    found = [_term(lesson, term, at) for at, term in enumerate(unit.terms)]
    facts = list(unit.sentences)
    for section in unit.sections:
        facts += _telling(lesson, section.facts)
    found += [gap(lesson, fact) for fact in facts]
    for section in unit.steps:
        found += [_after(lesson, section), _order_of(lesson, section)]
    found += [_order(lesson, fact) for fact in _orderable(lesson)[:_ORDERED]]
    once = {(one.asks, key(one.options[0])): one for one in reversed(found) if one is not None}
    return list(once.values())[::-1]


def _telling(lesson: Lesson, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are worth a question: those with a word that is explained, first."""
    terms = [key(term) for term in lesson.terms]
    marked = [one for one in facts if any(term in key(one.text) for term in terms)]
    others = [one for one in facts if one not in marked]
    topics = len(lesson.unit.sections)
    most = max(_TOPIC_GAPS, _ALONE_GAPS // topics) if lesson.alone else _TOPIC_GAPS
    chosen = (marked + others)[:most]
    return [fact for fact in facts if fact in chosen]


def _term(lesson: Lesson, term: Term, at: int) -> Question | None:
    family = lesson.truths.family
    if sense(term.term) == sense(term.meaning):
        return None
    others = [one for one in _terms(lesson) if family(one.term) != family(term.term)]
    ranked = _ranked(lesson, [one.term for one in others], term.term)
    by_word = {one.term: one for one in others}
    if at % 2:
        meanings = [by_word[word].meaning for word in ranked]
        options = _options(term.meaning, meanings)
        asks = lesson.phrase("quiz.what_means", term=term.term)
    else:
        options = _options(term.term, ranked)
        asks = lesson.phrase("quiz.which_word", meaning=term.meaning)
    why = lesson.phrase("quiz.why_word", term=term.term, meaning=term.meaning)
    return _question(
        kind="choice", asks=asks, options=options, why=why, refs=(term.ref,), about=term.term
    )


def gap(lesson: Lesson, fact: Fact) -> Question | None:
    """Return a sentence with a gap; None if no word of it can be left out."""
    word, truths = lesson.focus(fact), lesson.truths
    if not word or key(word) == key(fact.text):
        return None
    before, after = around(fact.text, word)
    wrong = [
        one
        for one in _words(lesson)
        if key(one) not in key(fact.text)
        and truths.family(one) != truths.family(word)
        and not truths.says(before + one + after)
    ]
    options = _options(word, _ranked(lesson, wrong, word))
    shown = before + lesson.phrase("missing") + after
    return _question(
        kind="cloze",
        asks=lesson.phrase("quiz.gap", sentence=shown),
        options=options,
        why=lesson.phrase("quiz.why_sentence", sentence=fact.text),
        refs=(fact.ref,),
        about=word,
    )


def _after(lesson: Lesson, section: Section) -> Question | None:
    facts = section.facts
    known = followers(lesson, section)
    if len(facts) < _SHORTEST or not known:
        return None
    middle = len(facts) // 2 - 1
    at = min(known, key=lambda one: abs(one - middle))
    step, right = facts[at].text, facts[at + 1].text
    others = [fact.text for fact in facts if key(fact.text) != key(step)]
    return _question(
        kind="order",
        asks=lesson.phrase("quiz.after", title=section.title, step=step),
        options=_options(right, others),
        why=lesson.phrase("quiz.why_order", order=" → ".join(fact.text for fact in facts)),
        refs=tuple(fact.ref for fact in facts),
        about=section.title,
    )


def followers(lesson: Lesson, section: Section) -> list[int]:
    """Return the places of steps that one other step alone comes after."""
    facts, after = section.facts, lesson.truths.after
    found = [(at, key(fact.text), after(section, fact)) for at, fact in enumerate(facts[:-1])]
    return [at for at, step, following in found if len(following - {step}) == len(following) == 1]


def _order_of(lesson: Lesson, section: Section) -> Question | None:
    facts = [fact.text for fact in section.facts]
    if not _SHORTEST <= len(facts) <= _PIECES or len(lesson.truths.orders(section)) > 1:
        return None
    right = " → ".join(facts)
    wrong = [one for one in map(" → ".join, _orders(facts)) if key(one) != key(right)]
    return _question(
        kind="order",
        asks=lesson.phrase("quiz.order_of", title=section.title),
        options=_options(right, wrong[:2]),
        why=lesson.phrase("quiz.why_order", order=right),
        refs=tuple(fact.ref for fact in section.facts),
        about=section.title,
    )


def _order(lesson: Lesson, fact: Fact) -> Question | None:
    parts = grouped(fact, lesson)
    if len(parts) < _SHORTEST:
        return None
    if is_little(parts[0].split()[0]):  # its capital would give the answer away
        parts = (parts[0][:1].lower() + parts[0][1:], *parts[1:])
    wrong = [joined(one, fact.text) for one in _orders(parts)]
    right = joined(parts, fact.text)
    return _question(
        kind="order",
        asks=lesson.phrase("quiz.order"),
        options=_options(right, (one for one in wrong if not lesson.truths.says(one))),
        why=lesson.phrase("quiz.why_sentence", sentence=fact.text),
        refs=(fact.ref,),
        about=lesson.focus(fact) or fact.text,
    )


def _orderable(lesson: Lesson) -> list[Fact]:
    """Return sentences of several pieces, without marks inside first, then by their length."""
    found = [
        one for one in lesson.unit.sentences if len(pieces(one.text, lesson.terms)) > _SHORTEST
    ]

    def rank(fact: Fact) -> tuple[bool, int, Ref]:
        first = pieces(fact.text, lesson.terms)[0]
        capital = first[:1].isupper() and not is_little(first)
        return (capital, len(fact.text), fact.ref)

    unmarked = [one for one in found if not _MARK.search(one.text[:-1])]
    return sorted(unmarked or found, key=rank)


def grouped(fact: Fact, lesson: Lesson) -> tuple[str, ...]:
    """Return at most six pieces of a sentence, neighbours put together."""
    parts = pieces(fact.text, lesson.terms)
    groups = in_parts(parts, -(-len(parts) // _PIECES) if len(parts) > _PIECES else 1)
    return tuple(joined(group, fact.text) for group in groups)


def _orders(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield other orders of parts, always the same ones, each once."""
    seen = {tuple(parts)}
    for at in range(12):
        numbered = mixed(range(len(parts)), f"order {at} {parts[0]}")
        order = tuple(parts[one] for one in numbered)
        if order not in seen:
            seen.add(order)
            yield order


def _terms(lesson: Lesson) -> list[Term]:
    return [
        *lesson.unit.terms,
        *(term for unit in lesson.syllabus.units if unit is not lesson.unit for term in unit.terms),
    ]


def _words(lesson: Lesson) -> list[str]:
    """Return words of the material that could stand in a gap, those of this unit first."""
    units = [lesson.unit, *(one for one in lesson.syllabus.units if one is not lesson.unit)]
    found = []
    for unit in units:
        found += [term.term for term in unit.terms]
        found += [word for fact in unit.sentences for word in (lesson.focus(fact),) if word]
        for fact in unit.facts:
            words = content_words(fact.text, lesson.terms)
            found += [word for word in words if not fact.text.startswith(word)]
    return list({key(word): word for word in reversed(found)}.values())[::-1]


def _ranked(lesson: Lesson, words: Iterable[str], like: str) -> list[str]:
    """Return words, those first that look most like another one and are of this unit."""
    own = {key(term.term) for term in lesson.unit.terms}
    own |= {key(lesson.focus(fact)) for fact in lesson.unit.sentences}

    def distance(word: str) -> tuple[int, bool, bool]:
        case = like[:1].isupper() != word[:1].isupper()
        ending = _ending(like) != _ending(word)
        spaces = (" " in like) != (" " in word)
        return (
            2 * case + 2 * ending + spaces,
            key(word) not in own,
            abs(len(word) - len(like)) > _SIMILAR,
        )

    return sorted(mixed(words, like), key=distance)


def _ending(word: str) -> str:
    folded = word.casefold()
    return next((end for end in ("ing", "ed", "ly", "tion", "s") if folded.endswith(end)), "")


def _options(right: str, others: Iterable[str]) -> tuple[str, ...]:
    found, seen = [right], {key(right), sense(right)}
    for one in others:
        if len(found) == _OPTIONS:
            break
        own = {key(one), sense(one)}
        if len(one) <= _LONGEST_OPTION and not own & seen:
            found.append(one)
            seen |= own
    return tuple(found)


def _question(
    *, kind: str, asks: str, options: tuple[str, ...], why: str, refs: tuple[Ref, ...], about: str
) -> Question | None:
    """Return a question; None where nothing is wrong (`a a a` reordered), or it is too long."""
    if len(options) < _LEAST or len(options[0]) > _LONGEST_OPTION or len(asks) > _LONGEST_ASKED:
        return None
    why = why if len(why) <= _LONGEST_WHY else why[: _LONGEST_WHY - 1] + "…"
    return Question(kind=kind, asks=asks, options=options, why=why, refs=refs, about=about)


def _numbered(question: Question, question_id: str) -> QuizQuestion:
    right = question.options[0]
    shown = mixed(question.options, question.asks)
    options = tuple(
        QuizOption(label=label, value=chr(ord("A") + at)) for at, label in enumerate(shown)
    )
    return QuizQuestion(
        id=question_id,
        type="single",
        question=question.asks,
        options=options,
        answer=(options[shown.index(right)].value,),
        analysis=question.why,
        has_answer=True,
    )
