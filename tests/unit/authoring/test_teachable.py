"""Whatever odd but plausible material says, what is made of it can be taught.

The material here repeats itself, contradicts itself and writes one thing in several ways. What is
right is worked out below from the syllabus as it was read, by direct look-up and not by the
author's own rules: a question has one right option, an activity one right way to be done.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.authoring.classrooms.records import LessonOutline, LessonRequest
from etude.authoring.errors import (
    LessonMaterialTooLittleError,
    LessonMaterialTooMuchError,
    MaterialLineTooLongError,
    MaterialTooLittleError,
    MaterialTooMuchError,
)
from etude.authoring.framework import framework_from
from etude.authoring.material import Material, Section, Syllabus, Term, Unit
from etude.authoring.outline.activities import activity, fitting_kinds
from etude.authoring.outline.alone import classroom_alone, lesson_alone, outline_of
from etude.authoring.outline.lesson import Lesson, Silence
from etude.authoring.outline.module import lesson_of, make_classroom
from etude.authoring.outline.planning import plan
from etude.authoring.reading import read_lesson, read_material
from etude.authoring.wording import key
from etude.classroom.loading import read_classroom, write_classroom
from etude.classroom.model import Classroom, InteractiveContent, QuizContent, QuizQuestion

NOW = datetime(2026, 11, 30, tzinfo=UTC)
REFUSED = (LessonMaterialTooLittleError, LessonMaterialTooMuchError, MaterialLineTooLongError)
REFUSED_COURSE = (MaterialTooLittleError, MaterialTooMuchError, MaterialLineTooLongError)

# fmt: off
TERMS = [
    *("cat", "Cat", "cats", " ｃａｔ", "a cat", "dog", "the dog", "kitten", "hen", "bank", "shore"),  # noqa: RUF001 - full width is meant
    *("big", "large", "huge", "C", "C++", "C#", "naïve", "nai\u0308ve", "water vapour", "to run"),
    *("art", "tea", "coffee", "🍎", "🍌", "👩‍🏫", "+", "aaa", "\u200b", "قطة", "कि", "x" * 58),
    *("**tea**", "发芽", "融化", "大", "巨大", "银行", "河岸"),
    *("小狗", "狗", "茶", "天", "天天", "C语言"),
]
MEANINGS = [
    *("a small animal", "small animal", "A small animal.", "an animal that barks", "big", "large"),
    *("cat", "dog", "狗", "小狗", "money house", "river side", "verb", "noun", "🍎", "a drink"),
    *("种子长出嫩芽", "冰雪变成水", "很大", "大", "存钱的地方", "word " * 90),
    *("w" * 300, "$& {answer}"),
]
SENTENCES = [
    *("The cat sees a dog.", "A dog sees the cat.", "the cat sees a dog", "The cat sleeps."),
    *("I like tea.", "I like coffee.", "I like **tea** very much.", "I like  tea !", "Tea is hot."),
    *("He starts at the art school.", "The art of the cat is the cat.", "la la la la", "Stop."),
    *("The elephant is huge and big.", "The bank is at the shore.", "We run to the bank.", "**"),
    *("My cat sleeps. My cat sleeps. My dog runs.", "https://example.org/a?b=c", "قطة على الشجرة"),
    *("<b>bold</b> & `code` in it", "@CONFIG@ @TITLE@ {answer} {x}", "Ünï códe ñ wörks fine here"),
    *("狗看见小狗。", "小狗看见狗。", "天天天", "天 天 天", "我喜欢喝茶。"),
    *("我喜欢喝咖啡。", "春天的柳树发芽了。"),
    "河里的冰融化了，小狗在银行旁边。",  # noqa: RUF001 - a Chinese comma
    *("我用 iPhone 学 English。", "🍎🍌🍎", "x" * 130, "很" * 80, "word " * 30),
    "again and " * 50 + "again.",
]
STEPS = ["Boil.", "Boil", "boil", "Stir.", "Add salt.", "Pour.", "烧水", "倒水", "搅拌", "**"]
TITLES = ["Tea", "tea", "Cats", "春天", "水", "**", "\u200b", "C", "C++", "🍎", "T" * 140]
LISTS = ["Words", "Steps", "Facts", "Sentences", "Questions", "Project", "Goals", "生词", "步骤"]
GLOSSES = ["", "", " // 一句话", " // 猫在睡觉。", " // a sentence"]
# fmt: on
EXAMPLES = ["", "", " = The cat sleeps.", " = I like tea.", " = 小狗看见狗。"]
one_term = st.builds(
    "{} = {}{}".format,
    st.sampled_from(TERMS),
    st.sampled_from(MEANINGS),
    st.sampled_from(EXAMPLES),
)
one_sentence = st.builds("{}{}".format, st.sampled_from(SENTENCES), st.sampled_from(GLOSSES))
heading = st.sampled_from(TITLES).map("# {}".format)


def lines_of(*kinds: st.SearchStrategy[str], least: int) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(*kinds), min_size=least, max_size=24).map("\n".join)


def bullets(sign: str, texts: Sequence[str]) -> st.SearchStrategy[str]:
    lines = st.lists(st.sampled_from(texts), min_size=1, max_size=6)
    return lines.map(lambda each: "\n".join(f"{sign} {one}" for one in each))


def rows(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(["| Word | Meaning |", "|---|---|", *(f"| {a} | {b} |" for a, b in pairs)])


table = st.lists(
    st.tuples(st.sampled_from(TERMS), st.sampled_from(MEANINGS)), min_size=1, max_size=5
).map(rows)
words_told = st.lists(
    st.builds("- **{}**: {}".format, st.sampled_from(TERMS), st.sampled_from(MEANINGS)),
    min_size=1, max_size=6,
).map("\n".join)  # fmt: skip
block = st.one_of(
    table, words_told, bullets("1.", STEPS), bullets("-", SENTENCES), st.sampled_from(SENTENCES)
)
section = st.builds(
    "{} {}\n\n{}\n".format,
    st.sampled_from(["##", "###"]),
    st.sampled_from([*TITLES, *LISTS]),
    block,
)


def syllabus_text(least: int) -> st.SearchStrategy[str]:
    return st.builds(
        lambda head, each: f"# {head}\n\n" + "\n".join(each),
        st.sampled_from(TITLES),
        st.lists(section, min_size=least, max_size=10),
    )


def numbered(texts: Sequence[str]) -> tuple[Material, ...]:
    return tuple(Material(name=f"{at:02d}.txt", text=one) for at, one in enumerate(texts, 1))


def alone(name: str, text: str) -> tuple[Material, ...]:
    return (Material(name=name, text=text),)


def material(least: int) -> st.SearchStrategy[tuple[Material, ...]]:
    """Return material of so many lines at least, or a third as many blocks."""
    return st.one_of(
        lines_of(one_term, one_term, one_term, heading, least=least).map(
            partial(alone, "words.txt")
        ),
        lines_of(one_sentence, one_sentence, heading, least=least).map(partial(alone, "-.txt")),
        lines_of(one_term, one_sentence, heading, least=least).map(partial(alone, "mixed.txt")),
        syllabus_text(least // 3).map(partial(alone, "a.md")),
        st.lists(one_sentence, min_size=least, max_size=24).map(numbered),
    )


class Oracle:
    """What is right, by direct look-up in what was read."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.units: tuple[Unit, ...] = lesson.syllabus.units
        self.terms: list[Term] = [term for unit in self.units for term in unit.terms]
        self.pairs = {(key(one.term), key(one.meaning)) for one in self.terms}
        facts = [fact for unit in self.units for fact in (*unit.sentences, *unit.facts)]
        self.pairs |= {(key(one.text), key(one.gloss)) for one in facts if one.gloss}
        self.sections: list[Section] = [one for unit in self.units for one in unit.steps]
        steps = [fact for one in self.sections for fact in one.facts]
        self.said = {key(one.text) for one in (*facts, *steps)}
        self.said |= {key(term.example) for term in self.terms if term.example}

    def asked(self) -> dict[str, set[str]]:
        """What each question may ask, and the keys of all its right answers."""
        phrase = self.lesson.phrase
        found: dict[str, set[str]] = {}
        for one in self.terms:
            asks = phrase("quiz.which_word", meaning=one.meaning)
            found[asks] = {a for a, b in self.pairs if b == key(one.meaning)}
            found[asks] |= {key(one.meaning)}
            asks = phrase("quiz.what_means", term=one.term)
            found[asks] = {b for a, b in self.pairs if a == key(one.term)} | {key(one.term)}
        for one in self.sections:
            asks = phrase("quiz.order_of", title=one.title)
            found[asks] = {key("".join(each)) for each in self.orders(one.title)}
            for step in one.facts:
                asks = phrase("quiz.after", title=one.title, step=step.text)
                found[asks] = self.after(one.title, step.text)
        found[phrase("quiz.order")] = self.said
        return found

    def orders(self, title: str) -> list[list[str]]:
        alike = [one for one in self.sections if key(one.title) == key(title)]
        return [[fact.text for fact in one.facts] for one in alike]

    def after(self, title: str, step: str) -> set[str]:
        return {
            key(following)
            for order in self.orders(title)
            for one, following in pairwise(order)
            if key(one) == key(step)
        }

    def question(self, question: QuizQuestion) -> None:
        labels = {one.value: one.label for one in question.options}
        different(list(labels.values()))
        assert len(labels) >= 2
        asked = self.asked().get(question.question)
        if asked is None:
            missing = self.lesson.phrase("missing")
            start = self.lesson.phrase("quiz.gap", sentence="")
            assert question.question.startswith(start.rstrip())
            shown = question.question.removeprefix(start.rstrip())
            right = [at for at, one in labels.items() if self.fills(shown, missing, one)]
        else:
            right = [value for value, label in labels.items() if key(label) in asked]
        assert right == list(question.answer), (question, right)

    def fills(self, shown: str, missing: str, word: str) -> bool:
        before, _, after = shown.partition(missing)
        return key(before + word + after) in self.said

    def match(self, config: Mapping[str, Any]) -> None:
        pairs = [(one["left"], one["right"]) for one in config["pairs"]]
        assert len(pairs) >= 3
        for at, (left, right) in enumerate(pairs):
            assert (key(left), key(right)) in self.pairs
            for other in pairs[at + 1 :]:
                assert not self.right(left, other[1])
                assert not self.right(other[0], right)
                different([left, other[0]])
                different([right, other[1]])

    def right(self, left: str, right: str) -> bool:
        return (key(left), key(right)) in self.pairs or key(left) == key(right)

    def spot(self, config: Mapping[str, Any]) -> None:
        claims = config["claims"]
        assert len(claims) >= 3
        assert {one["truth"] for one in claims} == {True, False}
        for one in claims:
            assert self.right(one["left"], one["right"]) == one["truth"], one
            assert self.right(one["left"], one["answer"])

    def order(self, config: Mapping[str, Any]) -> None:
        assert len(config["sentences"]) >= 2
        different([one["answer"] for one in config["sentences"]])
        for one in config["sentences"]:
            assert key("".join(one["pieces"])) == key(one["answer"])
            assert len(set(map(key, one["pieces"]))) > 1
            assert all(piece.strip() for piece in one["pieces"])
            letters = Counter(key(one["answer"]))
            assert [letters == Counter(said) for said in self.said].count(True) == 1

    def gap(self, config: Mapping[str, Any]) -> None:
        assert len(config["gaps"]) >= 2
        for one in config["gaps"]:
            before, after = one["before"], one["after"]
            different(one["options"])
            assert len(one["options"]) >= 2
            right = [word for word in one["options"] if key(before + word + after) in self.said]
            assert right == [one["answer"]]
            assert not before[-1:].isascii() or not before[-1:].isalnum()

    def cards(self, config: Mapping[str, Any]) -> None:
        assert len(config["cards"]) >= 2
        different([one["front"] for one in config["cards"]])

    def sort(self, config: Mapping[str, Any]) -> None:
        groups, cards = config["groups"], config["cards"]
        different(groups)
        different([one["text"] for one in cards])
        assert len(groups) >= 2
        assert {one["group"] for one in cards} == set(groups)
        assert len(cards) >= 3
        for one in cards:
            homes = {key(title) for title, texts in self.homes() if key(one["text"]) in texts}
            assert homes & set(map(key, groups)) == {key(one["group"])}

    def homes(self) -> Iterator[tuple[str, set[str]]]:
        for unit in self.units:
            yield unit.title, set(map(key, unit.things()))
            for one in unit.sections:
                yield one.title, {key(fact.text) for fact in one.facts}

    def steps(self, config: Mapping[str, Any]) -> None:
        assert config["sequences"]
        for one in config["sequences"]:
            keys = list(map(key, one["steps"]))
            assert len(set(keys)) > 1
            alike = [list(map(key, each)) for each in self.orders(one["title"])]
            assert all(each == keys for each in alike if Counter(each) == Counter(keys))

    def spell(self, config: Mapping[str, Any]) -> None:
        assert len(config["spellings"]) >= 3
        different([one["word"] for one in config["spellings"]])
        for one in config["spellings"]:
            assert len(set(one["word"])) > 1
            assert one["word"].isprintable()


def different(texts: Sequence[str]) -> None:
    """No two look the same to a reader, and none looks like nothing."""
    assert all(map(key, texts)), texts
    assert len(set(map(key, texts))) == len(texts), texts


def teachable(lesson: Lesson, classroom: Classroom) -> None:
    """Check everything that is made of a lesson, and every activity that could have been."""
    oracle = Oracle(lesson)
    assert read_classroom(write_classroom(classroom)) == classroom
    assert key(classroom.stage.name)
    for scene in classroom.scenes:
        assert key(scene.title), scene.type
        if isinstance(scene.content, QuizContent):
            for question in scene.content.questions:
                oracle.question(question)
    kinds = fitting_kinds(lesson)
    assert kinds
    for kind in kinds:
        content = activity(lesson, kind).content
        assert isinstance(content, InteractiveContent)
        config = content.widget_config or {}
        for said in texts_of({**config, "words": {}}):
            assert said.strip(), config
        getattr(oracle, kind)(config)


def texts_of(value: Any) -> Iterator[str]:
    """Yield what a page shows, but for hints and what stands around a gap: they may be empty."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if name not in {"hint", "before", "after"}:
                yield from texts_of(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from texts_of(one)


def lesson_made(materials: Sequence[Material]) -> bool:
    """Check the lesson that material gives; False: it is too little or too much for one."""
    request = LessonRequest(requirement="", materials=tuple(materials), interactive_mode=True)
    try:
        outline = outline_of(request, speaks=False)
    except REFUSED:
        return False
    assert msgspec.convert(msgspec.to_builtins(outline), LessonOutline) == outline
    made = classroom_alone(request, outline, "k-1", Silence(), NOW, lambda *_: None)
    assert [(one.type, one.title) for one in outline.scenes] == [
        (one.type, one.title) for one in made.scenes
    ]
    assert made.stage.name == outline.title
    teachable(lesson_alone(request), made)
    return True


def course_made(materials: Sequence[Material]) -> bool:
    """Check the course that material gives; False: it is too little or too much for one."""
    try:
        syllabus: Syllabus = read_material(materials)
    except REFUSED_COURSE:
        return False
    framework = plan(syllabus)
    assert framework_from(msgspec.to_builtins(framework)) == framework
    kinds: list[str] = []
    only: list[bool] = []
    for index in range(len(framework.modules)):
        lesson = lesson_of(syllabus, framework, index)
        made = make_classroom(lesson, f"class-{index}", Silence(), NOW)
        teachable(lesson, made)
        (content,) = (
            one.content for one in made.scenes if isinstance(one.content, InteractiveContent)
        )
        kinds.append((content.widget_config or {})["kind"])
        only.append(fitting_kinds(lesson) == kinds[-1:])
    for at, (first, second) in enumerate(pairwise(kinds), 1):
        assert first != second or only[at], kinds
    return True


@given(material(3))
@settings(max_examples=settings.default.max_examples // 3)
def test_a_lesson_is_teachable(materials: tuple[Material, ...]) -> None:
    """Every question has one right option, every activity one right way, every label is seen."""
    lesson_made(materials)


@given(material(15))
@settings(max_examples=settings.default.max_examples // 8)
def test_a_course_is_teachable(materials: tuple[Material, ...]) -> None:
    """So is every module of a course; neighbours differ in kind if their material has two."""
    course_made(materials)


FACTS = "### Facts\n- One is here.\n- Two are there.\n- Three are away.\n"


@pytest.mark.parametrize(
    "text",
    [
        "🍎 = apple\n🍌 = banana\n🍇 = grape",  # words without a letter
        "bank = money house\nbank = river side\nshore = river side\ncat = a pet\ndog = barks",
        "cat = a pet\nkitten = a pet\nhen = lays eggs\nbee = makes honey",  # one meaning twice
        "# Words\n| A | B |\n|---|---|\n| sun | star |\n| sun | star |\n| a | b |\n| c | d |",
        "### Tea steps\n1. Stir.\n2. Add salt.\n3. Stir.\n4. Add pepper.\n5. Serve.",
        "### Tea steps\n1. A.\n2. B.\n3. C.\n### Tea steps\n1. A.\n2. C.\n3. B.",
        "A cat sees a dog.\nA dog sees a cat.\nThe sun is hot.",
        "He starts at the art.\nWe like the **art** of it.\nThe cat sleeps.",
        "猫\n狗\n鸡",
        "# A\n" + "".join(f"### T{at}\n- Fact number {at} is here.\n" for at in range(60)),
        "# A\n### Tasks\n" + "- do it\n" * 400 + FACTS,
        "# A\n### Questions\n" + "- why?\n" * 400 + "### Goals\n" + "- know\n" * 400 + FACTS,
    ],
)
def test_odd_lessons_are_teachable(text: str) -> None:
    """Examples of each kind of oddness, which are lessons all the same."""
    assert lesson_made(alone("a.md" if "###" in text or "|" in text else "a.txt", text))


@pytest.mark.parametrize(
    "units",
    [
        [f"### T{at}\n- Fact number {at} is here {{unit}}." for at in range(8)],  # all aim alike
        ["- One thing of {unit} is here.", "- One more of {unit} is there."],
        ["### Words", "- **w{unit}**: meaning {unit}", "- **v{unit}**: meaning {unit}"],
    ],
)
@pytest.mark.parametrize("title", ["U", "M" * 400])
def test_odd_courses_are_teachable(units: Sequence[str], title: str) -> None:
    """Lessons that are all alike, whose titles differ in the last letter, that say one thing."""
    lessons = [
        f"## {title}{at}\n" + "\n".join(units).format(unit=at) + f"\n- Last of {at}: a thing."
        for at in range(5)
    ]
    assert course_made(alone("a.md", "# A\n" + "\n".join(lessons)))


def test_what_is_said_again_is_not_more() -> None:
    """Three lines that say one thing are no lesson, eight are no course."""
    with pytest.raises(LessonMaterialTooLittleError) as refused:
        read_lesson(alone("a.txt", "Stop.\nstop\nStop!\nGo."))
    assert refused.value.params["items"] == 2
    with pytest.raises(MaterialTooLittleError):
        read_material(alone("a.txt", "Stop.\n" * 12))


def test_a_sentence_without_end_is_named() -> None:
    """What no slide can hold is refused by its line."""
    with pytest.raises(MaterialLineTooLongError) as refused:
        read_lesson(alone("a.txt", "One.\nTwo.\n" + "and so on " * 150))
    assert refused.value.params == {"file": "a.txt", "line": 3, "characters": 1499, "most": 1000}


def test_the_head_of_a_table_is_no_word() -> None:
    """The words of a table are those of its rows; a table without a head has a first row."""
    for head in ("| Word | Meaning |\n|---|---|\n", ""):
        text = f"### Words\n{head}| sun | a star |\n| moon | cold |\n| sea | wet |"
        (unit,) = read_lesson(alone("a.md", text)).units
        assert [term.term for term in unit.terms] == ["sun", "moon", "sea"]
