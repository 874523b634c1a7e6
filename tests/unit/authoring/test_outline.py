"""The outline author: what three sample syllabi become, and what a teacher may rely on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from etude.authoring.errors import ModuleMaterialMissingError
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Fact, Material, Syllabus
from etude.authoring.outline.activities import KINDS
from etude.authoring.outline.lesson import Silence, Sound
from etude.authoring.outline.module import lesson_of, make_classroom
from etude.authoring.outline.planning import plan
from etude.authoring.outline.quizzes import questions
from etude.authoring.reading import read_material
from etude.authoring.samples import SAMPLES, sample
from etude.authoring.wording import key
from etude.classroom.digest import output_digest, semantic_hash
from etude.classroom.learner_text import scene_text
from etude.classroom.loading import read_classroom, write_classroom
from etude.classroom.model import (
    Classroom,
    InteractiveContent,
    PracticeContent,
    QuizContent,
    SlideContent,
)
from etude.courseware.html_inline import contained

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)

# What a teacher would list as the key terms, written by hand and not by the author under test.
KEY_TERMS = {
    "everyday-english.txt": [
        *("sun", "wash", "breakfast", "asleep", "bag", "walk", "teacher", "listen", "lend"),
        *("bell", "bridge", "plant", "fish", "peaches", "kilo", "basket", "share", "seller"),
        *("cooks", "tell", "moon", "brushes", "page", "dream"),
    ],
    "sijie.txt": [
        *("发芽", "融化", "嫩绿", "播种", "燕子", "炎热", "雷雨", "荷花", "知了", "乘凉"),
        *("丰收", "落叶", "凉爽", "大雁", "团圆", "结冰", "雪花", "冬眠", "梅花", "温暖"),
    ],
    "water-cycle.md": [
        *("evaporation", "water vapour", "transpiration", "energy", "condensation", "droplet"),
        *("dust", "fog", "precipitation", "hail", "runoff", "groundwater", "reservoir", "filter"),
        *("pollution", "drought"),
    ],
}


class Spoken(Silence):
    """Every sentence has a recording of a second."""

    def clip(self, fact: Fact) -> Sound | None:
        del fact
        return Sound(reference="audio/01.mp3", duration_ms=1000)


def course(materials: Sequence[Material]) -> tuple[Syllabus, CourseFramework, list[Classroom]]:
    syllabus = read_material(materials)
    framework = plan(syllabus)
    classrooms: list[Classroom] = []
    for index in range(len(framework.modules)):
        digests = [output_digest(one, {}) for one in classrooms]
        lesson = lesson_of(syllabus, framework, index, digests)
        classrooms.append(make_classroom(lesson, f"class-{index}", Spoken(), NOW))
    return syllabus, framework, classrooms


@pytest.fixture(scope="module", params=SAMPLES)
def made(
    request: pytest.FixtureRequest,
) -> tuple[str, Syllabus, CourseFramework, list[Classroom]]:
    return (request.param, *course([sample(request.param)]))


Made = tuple[str, Syllabus, CourseFramework, list[Classroom]]


def test_same_input_same_meaning(made: Made) -> None:
    """The same material gives the same framework and the same semantic hashes."""
    name, _, framework, classrooms = made
    _, again, others = course([sample(name)])
    assert again == framework
    assert [semantic_hash(one) for one in others] == [semantic_hash(one) for one in classrooms]


def test_key_terms_are_taught_and_asked(made: Made) -> None:
    """At least 80 % of the key terms stand on a slide and in a quiz."""
    name, _, _, classrooms = made
    scenes = [scene for one in classrooms for scene in one.scenes]
    slides, quizzes = (
        "\n".join(
            t for one in scenes if one.type == kind for t in texts(scene_text(one)["content"])
        )
        for kind in ("slide", "quiz")
    )
    covered = [one for one in KEY_TERMS[name] if stands(one, slides) and stands(one, quizzes)]
    assert len(covered) >= 0.8 * len(KEY_TERMS[name])


def texts(said: Any) -> Iterator[str]:
    """Yield the values of what a scene's content says, without the names of its fields."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, Mapping):
        for name, value in said.items():
            if name not in {"type", "answer"}:  # a word of the model, a letter of an option
                yield from texts(value)
    elif isinstance(said, Sequence):
        for one in said:
            yield from texts(one)


def stands(term: str, text: str) -> bool:
    """Whether a term stands in a text as whole words; Chinese has none to tell apart."""
    if not term.isascii():
        return term in text
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def test_each_classroom_is_sound(made: Made) -> None:
    """Each module is a classroom that its own rules accept, with all five kinds of scene."""
    for classroom in made[3]:
        assert read_classroom(write_classroom(classroom)) == classroom
        kinds = {scene.type for scene in classroom.scenes}
        assert kinds == {"slide", "quiz", "interactive", "pbl", "practice"}


def test_each_slide_names_its_lines(made: Made) -> None:
    """Each scene stands on lines of the syllabus that exist and are not empty."""
    name, syllabus, _, classrooms = made
    lines = sample(name).text.splitlines()
    for scene in (scene for one in classrooms for scene in one.scenes):
        found = re.findall(r"f(\d+)\.L(\d+)(?:-(\d+))?", scene.outline_id or "")
        assert found
        for file, low, high in found:
            assert syllabus.files[int(file)] == name
            assert all(lines[at - 1].strip() for at in range(int(low), int(high or low) + 1))
        if isinstance(scene.content, SlideContent):
            assert str(scene.content.canvas.section_tag["source"]).startswith(f"{name}:")  # type: ignore[index]  # every slide has one


def test_every_option_is_of_the_material(made: Made) -> None:
    """Every right and wrong option is made of words that stand in the syllabus."""
    name, syllabus, framework, _ = made
    text = key(sample(name).text)
    for index in range(len(framework.modules)):
        for question in questions(lesson_of(syllabus, framework, index)):
            assert len({key(one) for one in question.options}) == len(question.options) >= 2
            for option in question.options:
                words = option.split(" → ") if " → " in option else [option]
                if question.kind == "order":
                    words = option.replace("→", " ").split()
                    if syllabus.language == "zh-CN":
                        words = list(filter(str.isalnum, option))
                assert all(key(word) in text for word in words), option


def test_three_kinds_of_question(made: Made) -> None:
    """A course asks to choose, to fill gaps and to put in order; one answer is right."""
    _, syllabus, framework, classrooms = made
    kinds = {
        question.kind
        for index in range(len(framework.modules))
        for question in questions(lesson_of(syllabus, framework, index))
    }
    assert {"cloze", "order"} <= kinds
    assert "choice" in kinds or not any(unit.terms for unit in syllabus.units)
    for scene in (scene for one in classrooms for scene in one.scenes):
        if isinstance(scene.content, QuizContent):
            for question in scene.content.questions:
                assert len(question.answer) == 1
                assert question.analysis


def test_right_answers_do_not_always_stand_first(made: Made) -> None:
    """The right option stands in different places."""
    answers = [
        question.answer[0]
        for classroom in made[3]
        for scene in classroom.scenes
        if isinstance(scene.content, QuizContent)
        for question in scene.content.questions
    ]
    assert len(set(answers)) >= 3


def test_neighbours_have_other_activities(made: Made) -> None:
    """No two neighbouring modules have the same kind of activity."""
    kinds = [_kind(classroom) for classroom in made[3]]
    assert all(first != second for first, second in pairwise(kinds))
    assert set(kinds) <= set(KINDS)
    assert len(KINDS) >= 6


def test_activities_need_nothing_from_outside(made: Made) -> None:
    """The strict inliner finds nothing to refuse in any activity, and no address at all."""
    for classroom in made[3]:
        found: list[str] = []
        html = _page(classroom)
        contained(html, _no_file, _no_file, lambda *what, found=found: found.append(str(what)))
        assert found == []
        assert "viewport" in html
        for word in ("http:", "https:", "fetch(", "parent", "localStorage", "location", "open("):
            assert word not in html.replace("transparent", "")


def test_all_kinds_of_activity_are_made() -> None:
    """Over a longer course every kind of activity is used before one comes again too often."""
    words = "\n".join(
        f"# Part {part}\n"
        + "\n".join(f"word{'abcdefgh'[part]}{'xyzw'[at]} = meaning {part} {at}" for at in range(4))
        for part in range(8)
    )
    _, _, classrooms = course([Material(name="words.txt", text=words)])
    kinds = [_kind(classroom) for classroom in classrooms]
    assert len(set(kinds)) >= 5
    assert all(first != second for first, second in pairwise(kinds))


def test_warm_up_comes_from_what_was_really_taught(made: Made) -> None:
    """A module begins with words of the one before that its digest shows."""
    _, _, _, classrooms = made
    for before, after in pairwise(classrooms):
        scene = next(
            one for one in after.scenes if one.content is not None and one.id == "scene-03"
        )
        taught = key("".join(str(scene_text(one)) for one in before.scenes))
        assert scene.key_points
        assert all(key(word) in taught for word in scene.key_points)


def test_without_any_digest_there_is_no_warm_up(made: Made) -> None:
    """What is not known to have been taught is not recalled."""
    _, syllabus, framework, _ = made
    lesson = lesson_of(syllabus, framework, 1)
    assert lesson.known == ()


def test_a_sentence_without_sound_is_not_practised() -> None:
    """A module none of whose sentences has a sound has no practice scene; nothing is spoken."""
    syllabus = read_material([sample("everyday-english.txt")])
    framework = plan(syllabus)
    made = make_classroom(lesson_of(syllabus, framework, 0), "c", Silence(), NOW)
    assert all(scene.type != "practice" for scene in made.scenes)
    assert all(scene.actions == () for scene in made.scenes)


def test_practice_embeds_its_rubric(made: Made) -> None:
    """A practice scene carries the rubric of its language."""
    _, syllabus, _, classrooms = made
    content = next(
        scene.content
        for scene in classrooms[0].scenes
        if isinstance(scene.content, PracticeContent)
    )
    assert content.rubric is not None
    wanted = "follow-read-zh" if syllabus.language == "zh-CN" else "follow-read-en"
    assert content.rubric["id"] == wanted


def test_a_module_of_other_material_is_refused() -> None:
    """A framework whose module the material does not know is refused by its index."""
    syllabus = read_material([sample(SAMPLES[0])])
    other = plan(read_material([sample(SAMPLES[2])]))
    with pytest.raises(ModuleMaterialMissingError):
        lesson_of(syllabus, other, 0)


def test_text_of_the_material_is_no_markup() -> None:
    """What looks like HTML in the material is shown, never run."""
    lines = "\n".join(f"Line {n} has <script>alert({n})</script> inside & more." for n in range(12))
    _, _, classrooms = course([Material(name="x.txt", text=lines)])
    for classroom in classrooms:
        write_classroom(classroom)
        assert "<script>alert" not in _page(classroom)


def _no_file(reference: str) -> None:
    del reference


def _content(classroom: Classroom) -> InteractiveContent:
    return next(
        one.content for one in classroom.scenes if isinstance(one.content, InteractiveContent)
    )


def _kind(classroom: Classroom) -> str:
    config = _content(classroom).widget_config
    assert config is not None
    return str(config["kind"])


def _page(classroom: Classroom) -> str:
    return _content(classroom).html or ""
