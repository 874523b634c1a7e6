"""A lesson on its own: whatever form the text has, one unit; outline and classroom agree."""

import html
import re
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.authoring.classrooms.records import LessonRequest, Step, progress_of
from etude.authoring.errors import LessonMaterialTooLittleError, LessonMaterialTooMuchError
from etude.authoring.material import Material
from etude.authoring.outline.alone import classroom_alone, lesson_alone, outline_of
from etude.authoring.outline.lesson import Silence
from etude.authoring.reading import read_lesson
from etude.authoring.samples import sample
from etude.classroom.digest import semantic_hash
from etude.classroom.loading import write_classroom
from etude.classroom.model import Classroom, QuizContent
from etude.errors import EtudeError

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PROSE = """# The heart

The heart is a muscle. It pumps blood through the whole body. Arteries carry blood away from the
heart. Veins bring the blood back. The heart has four chambers.
"""
CHINESE = "太阳是一颗恒星。地球绕着太阳转。月亮绕着地球转。水星离太阳最近。木星是最大的行星。"


def made(request: LessonRequest, classroom_id: str = "k-1") -> Classroom:
    told: list[tuple[Step, int, int]] = []

    def tell(step: Step, at: int, of: int) -> None:
        told.append((step, at, of))

    outline = outline_of(request, speaks=False)
    classroom = classroom_alone(request, outline, classroom_id, Silence(), NOW, tell)
    steps = [progress_of(*one) for one in told]
    assert steps == sorted(steps)
    return classroom


@pytest.mark.parametrize(
    ("text", "title", "size"),
    [
        (PROSE, "The heart", 5),
        ("cat = a small animal\ndog = barks\nhen = lays eggs", "cat · dog · hen", 3),
        ("## Tea\n\n1. Boil.\n2. Warm.\n3. Pour.\n", "Tea", 3),
        ("The sun rises.\nThe moon sets.\nThe stars shine.", "sun · moon · stars", 3),
        ("Hello! How are you?\nI am fine.\nThank you.\nGoodbye.", None, 4),
        (CHINESE, "太阳 · 地球 · 月亮", 5),
    ],
)
def test_any_text_becomes_one_unit(text: str, title: str | None, size: int) -> None:
    """Prose, word lists, steps and lists of sentences are read as what they are, titled by it."""
    syllabus = read_lesson([Material(name="text.txt", text=text)])
    (unit,) = syllabus.units
    assert unit.size == size
    assert title in {None, unit.title}


def test_headings_begin_topics_not_lessons() -> None:
    """A syllabus of several lessons is one lesson with their topics; too much of it is said."""
    whole = sample("water-cycle.md").text
    parts = whole.split("\n## ")
    two = Material(name="a.md", text="# Water\n\n## " + "\n## ".join(parts[1:3]))
    (unit,) = read_lesson([two]).units
    assert unit.title == "Water"
    assert len({one.title for one in unit.sections}) > 2
    with pytest.raises(LessonMaterialTooMuchError) as refused:
        read_lesson([Material(name="a.md", text=whole)])
    assert refused.value.params["most"] == 60


def test_nothing_is_invented() -> None:
    """Every option of every question stands in the text, and each question has a right one."""
    for text in (PROSE, CHINESE):
        classroom = made(LessonRequest(requirement=text))
        quizzes = [one.content for one in classroom.scenes if isinstance(one.content, QuizContent)]
        questions = [one for quiz in quizzes for one in quiz.questions]
        assert len(questions) >= 4
        joined = " ".join(text.split())
        for question in questions:
            assert all(option.label in joined for option in question.options)
            assert {*question.answer} <= {option.value for option in question.options}


def test_always_alike() -> None:
    """The same text gives the same words, whoever asks and whenever."""
    request = LessonRequest(requirement=PROSE, interactive_mode=True)
    first, second = made(request, "k-1"), made(request, "k-2")
    assert semantic_hash(first) == semantic_hash(second)
    assert write_classroom(first)


def test_a_lesson_on_its_own_is_no_part_of_a_course() -> None:
    """No slide counts lessons, promises a next one, or recalls one before."""
    shown = re.sub(
        r"<[^>]+>",
        " ",
        html.unescape(msgspec.json.encode(made(LessonRequest(requirement=PROSE))).decode()),
    )
    assert "Lesson 1" not in shown
    assert "Next:" not in shown
    assert "last lesson" not in shown


def test_too_little_is_said() -> None:
    """Two sentences are no lesson."""
    with pytest.raises(LessonMaterialTooLittleError):
        lesson_alone(LessonRequest(requirement="One thing. Another thing."))


def outcome(text: str) -> str:
    """What becomes of a text: a sound classroom, or the code of an error."""
    try:
        write_classroom(made(LessonRequest(requirement=text)))
    except EtudeError as error:
        return error.code
    return "made"


OUTCOMES = {
    "made", "LESSON_MATERIAL_TOO_LITTLE", "LESSON_MATERIAL_TOO_MUCH", "MATERIAL_UNREADABLE",
    "MATERIAL_LINE_TOO_LONG",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "1\n1\n=天=天=天",  # all the pieces of a sentence are one word
        "# A\n1. Stir.\n2. Stir.\n3. Stir.\n4. Stir.",  # all the steps are one step
        "# A\na = a\nb = a\nc = a",  # all the words mean one thing
    ],
)
def test_nothing_is_asked_that_has_one_answer(text: str) -> None:
    """Where all that could be wrong is the right answer again, nothing is asked."""
    assert outcome(text) in OUTCOMES


@given(st.text(max_size=400))
def test_any_text_is_a_lesson_or_refused(text: str) -> None:
    """Whatever is pasted becomes a sound classroom, or an error with a code."""
    assert outcome(text) in OUTCOMES


@given(
    st.lists(
        st.text(alphabet="ab c.。=#-*1| \n\t!天地在", min_size=1, max_size=30),
        min_size=3,
        max_size=12,
    )
)
def test_odd_lists_are_lessons_or_refused(lines: list[str]) -> None:
    """Odd marks, blanks and half headings break nothing."""
    assert outcome("\n".join(lines)) in OUTCOMES
