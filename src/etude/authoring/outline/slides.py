"""The slides of a module, in the order in which they are taught."""

from collections.abc import Iterator, Sequence
from typing import Final

from etude.authoring.material import Fact, Ref, Section, Term
from etude.authoring.outline.drawing import (
    INK,
    SOFT,
    WHITE,
    Canvas,
    Markup,
    Words,
    columns,
    fitting,
    highlighted,
    lines_needed,
)
from etude.authoring.outline.lesson import Drawn, Lesson, in_parts
from etude.authoring.outline.planning import key_words
from etude.classroom.model import SlideContent

_TERMS_A_SLIDE: Final = 4
_FACTS_A_SLIDE: Final = 4
_STEPS_A_SLIDE: Final = 6
_ROW: Final = 3
_SHOWN: Final = 8


def cover(lesson: Lesson) -> Drawn:
    """Return the title slide."""
    unit, spec, canvas = lesson.unit, lesson.spec, lesson.canvas("cover")
    number, count = lesson.index + 1, len(lesson.framework.modules)
    pale = lesson.palette.pale
    if not lesson.alone:
        canvas.words((80, 84, 840, 44), Words(f"{lesson.framework.course_title}", 22, pale))
    size = fitting(spec.title, 840, 150, most=58, least=30)
    canvas.words((80, 150, 840, 150), Words(spec.title, size, WHITE, bold=True))
    canvas.box((92, 316, 96, 6), lesson.palette.accent, round_by=3)
    about = spec.description.removeprefix(spec.title).lstrip(":： ")  # noqa: RUF001 - Chinese colon
    about = about if len(about) <= 150 else about[:149] + "…"  # noqa: PLR2004 - three lines
    canvas.words(
        (80, 340, 840, 110), Words(about, fitting(about, 840, 110, most=22, least=16), pale)
    )
    label = lesson.phrase("slide.lesson", number=number, count=count)
    minutes = lesson.phrase("slide.minutes", minutes=spec.estimated_minutes)
    foot = minutes if lesson.alone else f"{label} · {minutes}"
    canvas.words((80, 470, 840, 40), Words(foot, 18, pale))
    refs = (unit.ref,)
    slide = canvas.slide("cover", lesson.source(refs, "cover"))
    return Drawn(
        title=spec.title,
        content=SlideContent(canvas=slide),
        refs=refs,
        says=(
            lesson.phrase(
                "say.title_alone" if lesson.alone else "say.title", number=number, title=spec.title
            ),
        ),
        points=(spec.title,),
    )


def goals(lesson: Lesson) -> Drawn:
    """Return the slide of what learners will be able to do, and what they bring with them."""
    canvas, spec = lesson.canvas("goals"), lesson.spec
    title = lesson.phrase("slide.goals")
    canvas.heading(title)
    wanted, brought = spec.learning_objectives, spec.incoming_knowledge
    width = 560 if brought else 890
    top, height = 130.0, 400 / max(len(wanted), 3)
    for at, goal in enumerate(wanted):
        canvas.box(
            (56, top, 44, 44),
            lesson.palette.bright,
            Words(str(at + 1), 20, WHITE, bold=True, align="center"),
            round_by=22,
        )
        size = fitting(goal, width - 60, height - 6, most=24, least=14)
        canvas.words((112, top - 6, width - 60, height - 4), Words(goal, size))
        top += height
    if brought:
        canvas.box((668, 130, 288, 390), lesson.palette.pale)
        lines = [Words(lesson.phrase("slide.before"), 19, lesson.palette.deep, bold=True)]
        whole = " ".join(brought)
        size = fitting(whole + " " * 40 * len(brought), 268, 290, most=20, least=13)
        canvas.words((678, 142, 268, 366), *lines, *(Words(f"• {one}", size) for one in brought))
    refs = (lesson.unit.ref, *(goal.ref for goal in lesson.unit.goals))
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "goals"))),
        refs=refs,
        says=(lesson.phrase("say.goals"), *wanted),
        points=wanted,
    )


def recall(lesson: Lesson) -> Drawn | None:
    """Return what the module before taught, as questions; None if nothing is known of it."""
    earlier = lesson.syllabus.units[: lesson.at]
    words = list(lesson.known)[-6:]
    if not words or not earlier:
        return None
    canvas, title = lesson.canvas("recall"), lesson.phrase("slide.recall")
    before = lesson.framework.modules[lesson.index - 1].title
    canvas.heading(title)
    canvas.words((46, 108, 900, 40), Words(lesson.phrase("slide.recall_ask"), 19, SOFT))
    for at, row in enumerate(in_parts(words, _ROW)):
        for word, (left, width) in zip(row, columns(56, 890, len(row)), strict=True):
            size = fitting(word, width, 110, most=32, least=18)
            canvas.box(
                (left, 165 + at * 150, width, 126),
                lesson.palette.pale,
                Words(word, size, lesson.palette.deep, bold=True, align="center"),
            )
    canvas.words(
        (46, 480, 900, 40), Words(lesson.phrase("slide.recall_lesson", title=before), 17, SOFT)
    )
    refs = _where(lesson, words)
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "recall"))),
        refs=refs,
        says=(lesson.phrase("say.recall", title=before),),
        points=tuple(words),
    )


def words(lesson: Lesson) -> Iterator[Drawn]:
    """Yield slides of new words, each with meaning and example."""
    parts = in_parts(lesson.unit.terms, _TERMS_A_SLIDE)
    for at, part in enumerate(parts, 1):
        one = len(parts) == 1
        title = lesson.phrase("slide.words" if one else "slide.words_of", at=at, count=len(parts))
        canvas = lesson.canvas(f"words{at}")
        canvas.heading(title)
        rows = in_parts(part, 2) if len(part) > 1 else [part]
        size = min(
            _card_size(term, 910 / len(rows[0]), 195 if len(rows) > 1 else 400) for term in part
        )
        height = 195 if len(rows) > 1 else 400
        for row, terms in enumerate(rows):
            for term, (left, width) in zip(terms, columns(46, 910, len(terms)), strict=True):
                _card(lesson, canvas, term, (left, 122 + row * 212, width, height), size)
        refs = tuple(term.ref for term in part)
        yield Drawn(
            title=title,
            content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "words"))),
            refs=refs,
            says=tuple(_spoken(lesson, part)),
            points=tuple(term.term for term in part),
        )


def _card_size(term: Term, width: float, height: float) -> int:
    said = term.meaning + term.example + " " * 30
    return fitting(said, width - 50, height - 76, most=24, least=13)


def _card(
    lesson: Lesson, canvas: Canvas, term: Term, box: tuple[float, float, float, float], body: int
) -> None:
    left, top, width, height = box
    canvas.box(box, lesson.palette.pale)
    canvas.box((left, top, 8, height), lesson.palette.bright, round_by=4)
    size = fitting(term.term, width - 30, 52, most=29, least=18)
    inside = (left + 18, top + 6, width - 28, height - 12)
    example = highlighted(term.example, [term.term], lesson.palette.accent)
    lines = [
        Words(term.term, size, lesson.palette.deep, bold=True),
        Words(term.meaning, body),
    ]
    if term.example:
        lines.append(Words(Markup(example), body, SOFT))
    canvas.words(inside, *lines)


def _spoken(lesson: Lesson, terms: Sequence[Term]) -> Iterator[str]:
    for term in terms:
        yield lesson.phrase("say.word", term=term.term, meaning=term.meaning)
        if term.example:
            yield lesson.phrase("say.example", example=term.example)


def topics(lesson: Lesson) -> Iterator[Drawn]:
    """Yield slides of facts, a topic each."""
    for number, section in enumerate(lesson.unit.sections, 1):
        parts = in_parts(section.facts, _FACTS_A_SLIDE)
        for at, part in enumerate(parts, 1):
            title = section.title or lesson.spec.title
            if len(parts) > 1:
                title = lesson.phrase("slide.facts_of", title=title, at=at, count=len(parts))
            yield _topic(lesson, f"topic{number}-{at}", title, part)


def _topic(lesson: Lesson, name: str, title: str, facts: Sequence[Fact]) -> Drawn:
    canvas = lesson.canvas(name)
    canvas.heading(title)
    few = len(facts) <= 2  # noqa: PLR2004 - two facts stand large, one above the other
    height = 400 / max(len(facts), 2) - 16
    for at, fact in enumerate(facts):
        top = 122 + at * (height + 16)
        canvas.box((46, top, 910, height), lesson.palette.pale)
        canvas.box(
            (46, top, 8, height),
            lesson.palette.accent if at % 2 else lesson.palette.bright,
            round_by=4,
        )
        size = fitting(fact.text, 850, height, most=32 if few else 25, least=14)
        known = [lesson.explained(fact)]
        said = Markup(highlighted(fact.text, known, lesson.palette.accent))
        offset = max(0.0, (height - _tall(fact.text, size)) / 2)
        canvas.words((70, top + offset, 870, height - offset), Words(said, size))
    refs = tuple(fact.ref for fact in facts)
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "facts"))),
        refs=refs,
        says=tuple(lesson.phrase("say.fact", fact=fact.text) for fact in facts),
        points=tuple(fact.text for fact in facts),
    )


def steps(lesson: Lesson) -> Iterator[Drawn]:
    """Yield slides of sequences, numbered."""
    for number, section in enumerate(lesson.unit.steps, 1):
        for at, part in enumerate(in_parts(section.facts, _STEPS_A_SLIDE), 1):
            yield _steps(lesson, f"steps{number}-{at}", section, part)


def _steps(lesson: Lesson, name: str, section: Section, part: Sequence[Fact]) -> Drawn:
    canvas = lesson.canvas(name)
    title = section.title or lesson.phrase("slide.order")
    canvas.heading(title, lesson.phrase("slide.order"))
    before = section.facts.index(part[0])
    rows = in_parts(part, _ROW)
    height = 190 if len(rows) > 1 else 300
    number = before
    for row, facts in enumerate(rows):
        for fact, (left, width) in zip(facts, columns(46, 910, len(facts), 26), strict=True):
            number += 1
            top = 122 + row * 210
            canvas.box((left, top + 20, width, height - 20), lesson.palette.pale)
            label = Words(str(number), 22, WHITE, bold=True, align="center")
            canvas.box((left + 14, top, 46, 46), lesson.palette.accent, label, round_by=23)
            size = fitting(fact.text, width - 30, height - 80, most=25, least=14)
            canvas.words((left + 14, top + 56, width - 28, height - 66), Words(fact.text, size))
    refs = tuple(fact.ref for fact in part)
    spoken = (
        lesson.phrase("say.steps"),
        *(f"{at}. {fact.text}" for at, fact in enumerate(part, before + 1)),
    )
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "steps"))),
        refs=refs,
        says=spoken,
        points=tuple(fact.text for fact in part),
    )


def sentences(lesson: Lesson) -> Iterator[Drawn]:
    """Yield sentence cards: one large sentence a slide, or two if there are many."""
    facts = lesson.unit.sentences
    most = 1 if len(facts) <= _SHOWN else 2
    for at, part in enumerate(in_parts(facts, most), 1):
        first = facts.index(part[0]) + 1
        label = str(first) if len(part) == 1 else f"{first}-{first + len(part) - 1}"
        yield _sentence(lesson, f"card{at}", part, label)


def _sentence(lesson: Lesson, name: str, part: Sequence[Fact], label: str) -> Drawn:
    canvas = lesson.canvas(name)
    aside = lesson.phrase("slide.sentence_of", at=label, count=len(lesson.unit.sentences))
    canvas.heading(lesson.spec.title, aside)
    height = 330 if len(part) == 1 else 170
    spoken = []
    for at, fact in enumerate(part):
        _sentence_box(lesson, canvas, fact, (46, 126 + at * (height + 20), 910, height))
        spoken.append(lesson.phrase("say.sentence", sentence=fact.text))
        if word := lesson.focus(fact):
            spoken.append(lesson.phrase("say.sentence_word", word=word))
    canvas.words((46, 502, 900, 36), Words(lesson.phrase("slide.listen"), 17, SOFT, align="center"))
    refs = tuple(fact.ref for fact in part)
    return Drawn(
        title=f"{lesson.spec.title} {label}",
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "sentence"))),
        refs=refs,
        says=tuple(spoken),
        points=tuple(filter(None, map(lesson.focus, part))),
    )


def _sentence_box(
    lesson: Lesson, canvas: Canvas, fact: Fact, box: tuple[float, float, float, float]
) -> None:
    left, top, width, height = box
    canvas.box(box, lesson.palette.pale, round_by=22)
    word = lesson.focus(fact)
    room = height - (110 if fact.gloss or word else 40)
    size = fitting(fact.text, width - 80, room, most=46, least=20)
    said = Markup(highlighted(fact.text, [word], lesson.palette.accent))
    offset = max(8.0, (room - _tall(fact.text, size)) / 2 + 12)
    canvas.words(
        (left + 40, top + offset, width - 80, room), Words(said, size, INK, align="center")
    )
    about = lesson.phrase("slide.key_word") + f": {word}" if word else ""
    term = next((one for one in lesson.unit.terms if one.term == word), None)
    lines = [Words(fact.gloss, 21, SOFT, align="center")] if fact.gloss else []
    if term is not None:
        lines.append(Words(f"{term.term}: {term.meaning}", 21, SOFT, align="center"))
    elif about and not fact.gloss:
        lines.append(Words(about, 19, SOFT, align="center"))
    if lines:
        canvas.words((left + 40, top + height - 92, width - 80, 80), *lines)


def talk(lesson: Lesson) -> Drawn | None:
    """Return the slide of questions to talk about; None if the material has none."""
    asked = lesson.unit.questions[:5]
    if not asked:
        return None
    canvas, title = lesson.canvas("talk"), lesson.phrase("slide.talk")
    canvas.heading(title)
    height = min(150.0, 340 / len(asked))
    for at, fact in enumerate(asked):
        top = 126 + at * (height + 12)
        canvas.box(
            (46, top, 910, height),
            lesson.palette.pale,
            Words(
                fact.text,
                fitting(fact.text, 860, height, most=30, least=16),
                lesson.palette.deep,
                bold=True,
                align="center",
            ),
        )
    canvas.words((46, 500, 900, 40), Words(lesson.phrase("slide.talk_ask"), 18, SOFT))
    refs = tuple(fact.ref for fact in asked)
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("content", lesson.source(refs, "talk"))),
        refs=refs,
        says=tuple(fact.text for fact in asked),
        points=tuple(fact.text for fact in asked),
    )


def summary(lesson: Lesson) -> Drawn:
    """Return the last slide: what was learnt, the words of the day, what comes next."""
    canvas, title = lesson.canvas("summary"), lesson.phrase("slide.summary")
    canvas.heading(title)
    wanted = lesson.spec.learning_objectives
    whole = "".join(wanted)
    size = fitting(whole + "    " * 8 * len(wanted), 440, 330, most=24, least=13)
    canvas.words((46, 116, 450, 350), *(Words(f"✓ {one}", size) for one in wanted))
    chosen = key_words(lesson.unit, 12)
    canvas.box((516, 116, 440, 350), lesson.palette.pale)
    head = Words(lesson.phrase("slide.summary_words"), 19, lesson.palette.deep, bold=True)
    listed = " · ".join(chosen)
    canvas.words(
        (530, 126, 412, 330),
        head,
        Words(listed, fitting(listed, 410, 210, most=32, least=15)),
        Words(lesson.phrase("slide.summary_ask"), 17, SOFT),
    )
    modules = lesson.framework.modules
    later = modules[lesson.index + 1].title if lesson.index + 1 < len(modules) else ""
    last = "slide.summary_alone" if lesson.alone else "slide.summary_end"
    end = lesson.phrase("slide.summary_next", title=later) if later else lesson.phrase(last)
    canvas.words((46, 486, 910, 50), Words(end, 19, lesson.palette.accent, bold=True))
    refs = (lesson.unit.ref, *_where(lesson, chosen))
    return Drawn(
        title=title,
        content=SlideContent(canvas=canvas.slide("end", lesson.source(refs, "summary"))),
        refs=refs,
        says=(lesson.phrase("say.summary"), *wanted),
        points=chosen,
    )


def _where(lesson: Lesson, chosen: Sequence[str]) -> tuple[Ref, ...]:
    """Return the lines on which words of the material stand, first come first."""
    found = []
    for word in chosen:
        for unit in lesson.syllabus.units[: lesson.at + 1]:
            refs = [term.ref for term in unit.terms if term.term == word]
            facts = (*unit.sentences, *unit.facts)
            refs += [fact.ref for fact in facts if word.casefold() in fact.text.casefold()]
            if refs:
                found.append(refs[0])
                break
    return tuple(found) or (lesson.unit.ref,)


def _tall(said: str, size: float) -> float:
    return lines_needed(said, 850, size) * size * 1.35 + 20
