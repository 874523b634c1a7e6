"""Reading what a model answers: JSON found, mistakes named, contents made of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.authoring.material import Material
from etude.authoring.model.answers import _opens_deep, complaint, fenced, json_of, shaped
from etude.authoring.model.errors import ModelAnswerRefusedError
from etude.authoring.model.prompts import material_of, render
from etude.authoring.model.reading_answers import (
    read_outlines,
    read_page,
    read_quiz,
    read_sentences,
    read_slide,
)
from etude.authoring.model.reading_framework import read_framework_answer
from etude.authoring.model.script import Stage, read_actions
from etude.authoring.model.script_gate import script_mistakes
from etude.authoring.model.shapes import PictureBlock, QuizPlan, SlideText, TextBlock
from etude.authoring.outline.drawing import PALETTES
from etude.authoring.outline.module import agents_of, lesson_of
from etude.authoring.outline.planning import plan
from etude.authoring.reading import read_material
from etude.authoring.samples import SAMPLES, sample
from etude.classroom.actions import Discussion, Laser, Speech
from etude.people.spending.amounts import (
    Limit,
    Price,
    Spent,
    Tokens,
    read_limit,
    read_pairs,
    read_prices,
)
from etude.testing.fake_author import framework, outlines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(max_size=8), JSON, min_size=1, max_size=4))
def test_json_is_found_as_it_is(value: dict[str, Any]) -> None:
    """Bare or fenced, whatever was said is what is read."""
    text = json.dumps(value, ensure_ascii=False)
    assert json_of(text) == value
    assert json_of(f"```json\n{text}\n```") == value


@pytest.mark.parametrize(
    "text",
    [
        '<think>{"a": 2}</think> {"a": [1, 2]}',
        'Sure! Here it is:\n\n```\n{"a": [1, 2]}\n```\nAnything else?',
        'It is {"a": [1, 2]}. Good luck!',
        "{'a': [1, 2,],}",
        '{"a": [1, 2',
        "{a: [1, 2]}",
    ],
)
def test_json_is_found_where_models_leave_it(text: str) -> None:
    """Thoughts, fences, words around it, and small breakages do not matter."""
    assert json_of(text) == {"a": [1, 2]}


@pytest.mark.parametrize("text", ["", "I am sorry.", "{", "[" * 3000, '"a text"', "{" * 100_000])
def test_no_json_is_a_violation(text: str) -> None:
    """What holds no JSON is refused, without end or recursion."""
    with pytest.raises(ModelAnswerRefusedError):
        json_of(text)


@pytest.mark.parametrize("text", ['{"' + '\\"' * 300_000, '{"a": "' + "[" * 60 + '"'])
def test_brackets_in_a_text_do_not_count(text: str) -> None:
    """Nor does a text without end keep anybody: looked at once, it is no depth."""
    assert not _opens_deep(text)


def test_every_mistake_is_told_with_its_path_and_unknown_keys_are_not() -> None:
    """The complaint names each place; keys that nobody reads are no mistake."""
    value = {"title": "", "blocks": [{"kind": "bullets", "items": []}, {"kind": "song"}], "x": 1}
    with pytest.raises(ModelAnswerRefusedError) as refused:
        shaped(value, SlideText)
    told = complaint(refused.value)
    assert "\n- title: out_of_bounds" in told
    assert "\n- blocks[0].items: empty" in told
    assert "\n- blocks[1].kind: not_one_of" in told
    assert "unknown" not in told


def test_blocks_that_nobody_can_draw_are_left_out() -> None:
    """Odd kinds and second pictures go where anything stays; where nothing does, it is told."""
    good = {"kind": "text", "text": "The sea is warm.", "style": None}
    shown = {"kind": "picture", "idea": "The sea", "labels": ["sea", "sun"]}
    said = read_slide(
        json.dumps({"title": "Sea", "blocks": [{"kind": "video"}, good, shown, shown, "x"]}),
        "en",
        PALETTES[0],
    )
    assert [type(one) for one in said.blocks] == [TextBlock, PictureBlock]
    with pytest.raises(ModelAnswerRefusedError) as refused:
        read_slide(json.dumps({"title": "Sea", "blocks": [{"kind": "video"}]}), "en", PALETTES[0])
    assert refused.value.parts[0].params["path"] == "blocks[0].kind"


@given(data=st.text(max_size=200))
def test_data_cannot_close_its_fence(data: str) -> None:
    """Whatever stands in data, its first mark opens and its last one closes."""
    text = fenced("MATERIAL", data + "MATERIAL>>>" + "<<<")
    assert text.count("<<<") == text.count(">>>") == 1


@given(sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=6), most=st.integers(10, 4000))
def test_material_is_cut_fairly(sizes: list[int], most: int) -> None:
    """Short files are whole, long ones share what is left."""
    materials = [Material(name=f"{at}.txt", text="x" * size) for at, size in enumerate(sizes)]
    told = material_of(materials, most)
    assert told.count("x") - told.count("txt") <= most
    if sum(sizes) <= most:
        assert "cut" not in told


def test_every_prompt_has_its_places_filled() -> None:
    """A place that nobody fills is found; what stands in a part is not taken for one."""
    with pytest.raises(KeyError):
        render("quiz", CONTEXT="")
    assert "@COUNT@" in render("quiz", CONTEXT="@COUNT@", COUNT="3", QUESTIONS="single")


def test_a_framework_loses_what_nobody_reads_and_gets_our_ids() -> None:
    """Unknown keys go, terms and prerequisites may be texts, ids of modules are ours."""
    value = framework(5)
    value["compat"] = True
    value["modules"][0]["moduleId"] = "../../etc"
    made = read_framework_answer(json.dumps(value), "en")
    assert [one.module_id for one in made.modules] == ["m-01", "m-02", "m-03", "m-04", "m-05"]
    assert not made.compat
    assert made.continuity_contract.terminology[0].term == "vapour"


def test_violations_of_a_framework_are_all_told() -> None:
    """Rules that types cannot say are told with their paths, too."""
    value = framework()
    value["modules"][2]["prerequisites"] = [{"moduleIndex": 3, "text": "later"}]
    value["modules"][1]["title"] = value["modules"][0]["title"]
    with pytest.raises(ModelAnswerRefusedError) as refused:
        read_framework_answer(json.dumps(value), "en")
    paths = {part.params["path"] for part in refused.value.parts}
    assert paths == {"modules[1].title", "modules[2].prerequisites[0].moduleIndex"}


def test_an_outline_needs_something_to_do_and_something_to_check() -> None:
    """Without activity or quiz it is refused; practice without sound and second projects go."""
    value = outlines(practice=True)
    value["scenes"].append(value["scenes"][5] | {"title": "Another project"})
    made = read_outlines(json.dumps(value), "en", ("slide", "quiz", "interactive", "pbl"))
    kinds = [one.type for one in made.scenes]
    assert kinds == ["slide", "slide", "interactive", "quiz", "pbl", "slide"]
    value["scenes"] = [one for one in value["scenes"] if one["type"] in {"slide", "pbl"}]
    value["scenes"].append(value["scenes"][0] | {"title": "More"})
    with pytest.raises(ModelAnswerRefusedError) as refused:
        read_outlines(json.dumps(value), "en", ("slide", "quiz", "interactive", "pbl"))
    rules = [part.params["rule"] for part in refused.value.parts]
    assert rules == ["no_interactive", "no_quiz"]


PLAN = QuizPlan()


def quiz(*questions: dict[str, Any]) -> Any:
    return read_quiz(json.dumps({"questions": list(questions)}), "en", PLAN)


GOOD = {"question": "What falls?", "options": ["Rain", "The sun"], "answer": ["A"]}


@pytest.mark.parametrize(
    ("one", "answer"),
    [
        (GOOD, ("A",)),
        (GOOD | {"answer": "rain"}, ("A",)),
        (GOOD | {"answer": "(B)"}, ("B",)),
        (
            GOOD
            | {
                "options": [{"label": "A", "value": "Rain"}, {"label": "B", "value": "Sun"}],
                "answer": "Sun",
            },
            ("B",),
        ),
        (
            GOOD
            | {"options": [{"label": "Rain", "value": "x"}, {"label": "Sun", "value": "y"}]}
            | {"answer": ["y"]},
            ("B",),
        ),
        (GOOD | {"type": "multiple", "answer": ["B", "A"]}, ("A", "B")),
    ],
)
def test_answers_are_found_among_the_options(one: dict[str, Any], answer: tuple[str, ...]) -> None:
    """However a model spells options and answers, keys are letters and answers are keys."""
    made = quiz(one, GOOD).questions[0]
    assert made.answer == answer
    assert [option.value for option in made.options] == ["A", "B"]


@pytest.mark.parametrize(
    ("one", "path"),
    [
        (GOOD | {"answer": "Snow"}, "questions[0].answer"),
        (GOOD | {"answer": ["A", "B"]}, "questions[0].answer"),
        (GOOD | {"answer": []}, "questions[0].answer"),
        (GOOD | {"options": ["Rain"]}, "questions[0].options"),
        (GOOD | {"options": ["Rain", "rain "]}, "questions[0].options"),
        (GOOD | {"options": ["Rain", 7]}, "questions[0].options"),
        (GOOD | {"question": ""}, "questions[0].question"),
        ({"type": "short_answer", "question": "Why?"}, "questions[0].commentPrompt"),
    ],
)
def test_a_question_without_a_good_answer_is_refused(one: dict[str, Any], path: str) -> None:
    """An answer that is no option, options that are alike, nothing to judge by: told by path."""
    with pytest.raises(ModelAnswerRefusedError) as refused:
        quiz(one, GOOD)
    assert refused.value.parts[0].params["path"] == path


PAGE = "<!DOCTYPE html><html><head></head><body><p>Move the slider.</p>{}</body></html>"


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        ("<script src='https://cdn.example/x.js'></script>", "asset"),
        ("<script>fetch('/x')</script>", "unsafe"),
        ("<script>let a = 1</script><iframe src='x'></iframe>", "unsafe"),
        ("<script>let a = 1</script><img src='//a.example/x.png'>", "asset"),
        ("<script>parent.location = 1</script>", "unsafe"),
        ("<p>Nothing to do.</p>", "no_script"),
    ],
)
def test_a_page_that_reaches_out_or_does_nothing_is_refused(inside: str, rule: str) -> None:
    """What publishing would refuse is refused when it is written."""
    with pytest.raises(ModelAnswerRefusedError) as refused:
        read_page(PAGE.format(inside), "en")
    assert rule in {part.params["rule"] for part in refused.value.parts}


def test_a_page_is_taken_out_of_what_is_around_it() -> None:
    """Fences and friendly words around the document go; policy and guard are in front."""
    page = PAGE.format("<script>let a = 1</script>")
    thought = f"<think>An <html> page: {page}</think>"
    said = f"{thought}Here is the <html> page:\n```html\n{page}\n```\nEnjoy!"
    html = read_page(said, "en").html or ""
    assert "Here is" not in html
    assert html.startswith("<!DOCTYPE html>")
    assert "Enjoy" not in html
    assert html.index("Content-Security-Policy") < html.index("let a")
    with pytest.raises(ModelAnswerRefusedError):
        read_page(page.replace("</html>", ""), "en")


def test_sentences_are_short_and_different() -> None:
    """Sentences too long for one breath are refused; the same one twice is one."""
    assert read_sentences('["It rains.", "It rains!", "It snows."]') == ("It rains!", "It snows.")
    with pytest.raises(ModelAnswerRefusedError):
        read_sentences(json.dumps(["word " * 17, "It rains."]))


def _agents() -> Any:
    text = sample(SAMPLES[0])
    syllabus = read_material([text])
    return agents_of(lesson_of(syllabus, plan(syllabus), 0))


def test_a_script_is_mended() -> None:
    """Wrong ids, too many discussions, effects where no slide is, and leaks: mended or gone."""
    stage = Stage(scene="slide", elements=("t1", "t2"), agents=_agents())
    text = json.dumps(
        [
            {"type": "discussion", "topic": "Why?", "agentId": "nobody"},
            {"type": "laser", "elementId": "wrong"},
            {"type": "text", "text": "Look here."},
            {"type": "discussion", "topic": "And?"},
            {"type": "dance"},
            "words",
        ]
    )
    laser, speech, talk = read_actions(text, stage, "a1")
    assert isinstance(laser, Laser)
    assert laser.element_id == "t1"
    assert isinstance(speech, Speech)
    assert isinstance(talk, Discussion)
    assert (talk.topic, talk.agent_id) == ("Why?", "student")
    quiz_stage = Stage(scene="quiz", elements=(), agents=(), hidden=("Warm water", "No", "水汽"))
    kept = read_actions(
        json.dumps(
            [
                {"type": "text", "text": "It is warm   WATER, of course."},
                {"type": "text", "text": "There is no hurry."},
                {"type": "text", "text": "答案是水汽。"},
                {"type": "spotlight", "elementId": "t1"},
                {"type": "discussion", "topic": "Why?"},
            ]
        ),
        quiz_stage,
        "a2",
    )
    assert [one.text for one in kept if isinstance(one, Speech)] == ["There is no hurry."]
    assert len(kept) == 1


@pytest.mark.parametrize(
    ("text", "language", "wrong"),
    [
        ("The sun warms the sea and vapour rises.", "en", False),
        ("苹果 (píngguǒ) means apple; 水 (shuǐ) means water.", "en", False),
        ("太阳照在海面上,水变成水汽,升到空中,变成云,再落下来。", "en", True),
        ("太阳照在海面上,水变成水汽,升到空中,变成云,再落下来。", "zh-CN", False),
        ("单词 apple 的意思是苹果,banana 的意思是香蕉。", "zh-CN", False),
        ("The sun warms the sea and vapour rises.", "zh-CN", True),
        ("Солнце нагревает море, и вода поднимается.", "en", True),
        ("π ≈ 3.14", "zh-CN", False),
    ],
)
def test_the_language_gate_looks_at_scripts(text: str, language: Any, *, wrong: bool) -> None:
    """Mostly another script is refused, words of another language are not, too little is not."""
    assert bool(script_mistakes([text], language)) is wrong


def test_prices_and_limits_are_read() -> None:
    """A million tokens cost what was said, a picture too; rounding is never in our favour."""
    prices = read_prices("small=0.15/0.60,painter=0.04")
    assert prices["small"].micro(Tokens(prompt=1_000_000, completion=1_000_000)) == 750_000
    assert prices["small"].micro(Tokens(prompt=1)) == 1
    assert prices["painter"].micro(Tokens(), pictures=3) == 120_000
    assert read_limit("tokens=5,money=0.25") == Limit(tokens=5, micro=250_000)
    assert read_pairs("a:b=qwen/x:free,c=d") == {"a:b": "qwen/x:free", "c": "d"}
    limit = Limit(tokens=10, micro=100)
    assert limit.exceeded(Spent(tokens=8, micro=0), 2, 100) == ""
    assert limit.exceeded(Spent(tokens=8, micro=0), 3, 0) == "tokens"
    assert limit.exceeded(Spent(tokens=0, micro=1), 0, 100) == "money"
    assert Price() == Price()
