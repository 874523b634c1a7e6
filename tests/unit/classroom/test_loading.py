"""A classroom on its way in and out: typed, checked, every mistake named by its path."""

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.classroom.errors import (
    ClassroomInvalidError,
    ClassroomNotJsonError,
    ClassroomTooLongError,
    ClassroomTooNewError,
    ClassroomVersionUnknownError,
)
from etude.classroom.loading import MAX_BYTES, MAX_TOLD, read_classroom, write_classroom
from etude.classroom.model import DSL_VERSION, QuizContent
from etude.classroom.plain import plain
from etude.errors import EtudeError
from etude.i18n import LOCALES, text

SOURCE = (Path(__file__).parent / "tides.json").read_bytes()
CLASSROOM = read_classroom(SOURCE)
PLAIN = plain(CLASSROOM)
PRACTICE = {
    "id": "sc_5",
    "stageId": "demo_tides01",
    "type": "practice",
    "title": "Say it",
    "order": 5,
    "content": {
        "type": "practice",
        "app": "follow_read",
        "clips": [{"text": "The tide is in.", "audioRef": "audio/c1.wav", "durationMs": 1800}],
        "listen_ratio": 1.3,
        "rubric": {"id": "reading-en", "version": "v1"},
    },
}


def encoded(document: Any) -> bytes:
    return msgspec.json.encode(document)


def changed(path: str, to: Any) -> dict[str, Any]:
    """Return the example with another value at a place; `...` takes it out."""
    document = copy.deepcopy(PLAIN)
    document["scenes"].append(copy.deepcopy(PRACTICE))
    *way, last = path.split(".")
    place: Any = document
    for name in way:
        place = place[int(name)] if isinstance(place, list) else place[name]
    key: Any = int(last) if isinstance(place, list) else last
    if to is ...:
        del place[key]
    else:
        place[key] = to
    return document


def mistakes_in(document: Any) -> list[tuple[str, str]]:
    """Return code and path of every mistake; each can be said in every language."""
    with pytest.raises(ClassroomInvalidError) as caught:
        read_classroom(encoded(document))
    for part in caught.value.parts:
        for locale in LOCALES:
            assert str(part.params["path"]) in text(f"error.{part.code}", locale, **part.params)
    return [(part.code, str(part.params["path"])) for part in caught.value.parts]


def test_the_example_is_read_and_written_again() -> None:
    """What OpenMAIC wrote is read, written in the newest version, and read the same."""
    data = write_classroom(CLASSROOM)
    assert msgspec.json.decode(data)["dslVersion"] == DSL_VERSION
    assert read_classroom(data) == CLASSROOM
    assert write_classroom(read_classroom(data)) == data
    quiz = CLASSROOM.scenes[2].content
    assert isinstance(quiz, QuizContent)
    assert quiz.questions[0].answer == ("B",)


def test_five_types_of_scenes() -> None:
    """A practice scene stands beside OpenMAIC's four."""
    document = copy.deepcopy(PLAIN)
    document["scenes"].append(PRACTICE)
    classroom = read_classroom(encoded(document))
    assert [scene.type for scene in classroom.scenes] == [
        "slide",
        "interactive",
        "quiz",
        "pbl",
        "practice",
    ]
    assert read_classroom(write_classroom(classroom)) == classroom


ELEMENT = "scenes.0.content.canvas.elements"


@pytest.mark.parametrize(
    ("path", "to", "code", "told"),
    [
        ("stage.nam", "x", "KEY_UNKNOWN", "stage.nam"),
        ("scenes.1.title", ..., "KEY_MISSING", "scenes[1]"),
        ("scenes.0.order", "first", "NOT_A", "scenes[0].order"),
        ("scenes.0.order", -1, "OUT_OF_BOUNDS", "scenes[0].order"),
        ("scenes", [], "EMPTY", "scenes"),
        ("createdAt", "2026-11-30T08:00:00", "OUT_OF_BOUNDS", "createdAt"),
        ("id", "../etc", "OUT_OF_BOUNDS", "id"),
        ("stage.id", "other", "NOT_SAME", "stage.id"),
        ("scenes.1.stageId", "other", "NOT_SAME", "scenes[1].stageId"),
        ("scenes.1.type", "quiz", "NOT_SAME", "scenes[1].type"),
        ("scenes.1.id", "sc_1", "TWICE", "scenes[1].id"),
        (
            "stage.generatedAgentConfigs.1.role",
            "teacher",
            "TEACHERS",
            "stage.generatedAgentConfigs",
        ),
        (
            "stage.generatedAgentConfigs.0.role",
            "student",
            "TEACHERS",
            "stage.generatedAgentConfigs",
        ),
        ("stage.generatedAgentConfigs.1", ..., "OUT_OF_BOUNDS", "stage.generatedAgentConfigs"),
        (
            "stage.generatedAgentConfigs.1.avatar",
            "javascript:x",
            "REFERENCE",
            "stage.generatedAgentConfigs[1].avatar",
        ),
        ("stage.agentIds", ["nobody"], "NAME_UNKNOWN", "stage.agentIds[0]"),
        (f"{ELEMENT}.1.id", "text_a1", "TWICE", "scenes[0].content.canvas.elements[1].id"),
        (
            f"{ELEMENT}.1.src",
            "media/../../secret.png",
            "REFERENCE",
            "scenes[0].content.canvas.elements[1].src",
        ),
        (
            f"{ELEMENT}.1.src",
            "/etc/passwd",
            "REFERENCE",
            "scenes[0].content.canvas.elements[1].src",
        ),
        (
            f"{ELEMENT}.1.src",
            "data:text/html,x",
            "REFERENCE",
            "scenes[0].content.canvas.elements[1].src",
        ),
        (f"{ELEMENT}.1.type", "imag", "NOT_ONE_OF", "scenes[0].content.canvas.elements[1].type"),
        (
            f"{ELEMENT}.0.content",
            "<p onclick='x()'>a</p>",
            "MARKUP",
            "scenes[0].content.canvas.elements[0].content",
        ),
        (
            f"{ELEMENT}.0.link",
            {"type": "web", "target": "javascript:x"},
            "LINK",
            "scenes[0].content.canvas.elements[0].link.target",
        ),
        (
            f"{ELEMENT}.0.link",
            {"type": "slide", "target": "nowhere"},
            "NAME_UNKNOWN",
            "scenes[0].content.canvas.elements[0].link.target",
        ),
        (
            f"{ELEMENT}.0.defaultColor",
            "url(//x)",
            "OUT_OF_BOUNDS",
            "scenes[0].content.canvas.elements[0].defaultColor",
        ),
        ("scenes.0.actions.0.elementId", "gone", "NAME_UNKNOWN", "scenes[0].actions[0].elementId"),
        ("scenes.0.actions.0.id", "a2", "TWICE", "scenes[0].actions[1].id"),
        ("scenes.0.actions.5.agentId", "gone", "NAME_UNKNOWN", "scenes[0].actions[5].agentId"),
        (
            "scenes.0.actions.1.audioRef",
            "https://x.example/a.mp3",
            "REFERENCE",
            "scenes[0].actions[1].audioRef",
        ),
        (
            "scenes.1.actions.0",
            {"id": "z", "type": "laser", "elementId": "text_a1"},
            "ACTION_MISPLACED",
            "scenes[1].actions[0]",
        ),
        (
            "scenes.1.actions.0",
            {"id": "z", "type": "wb_delete", "elementId": "a1"},
            "NAME_UNKNOWN",
            "scenes[1].actions[0].elementId",
        ),
        (
            "scenes.0.actions.3",
            {
                "id": "z",
                "type": "wb_draw_chart",
                "chartType": "bar",
                "x": 0,
                "y": 0,
                "width": 9,
                "height": 9,
                "data": {"labels": ["a", "b"], "legends": ["l"], "series": [[1]]},
            },
            "RAGGED",
            "scenes[0].actions[3].data.series[0]",
        ),
        ("scenes.1.content.html", " ", "ACTIVITY_EMPTY", "scenes[1].content"),
        (
            "scenes.1.content.widgetConfig",
            {"deep": 2**60},
            "CONFIG",
            "scenes[1].content.widgetConfig.deep",
        ),
        (
            "scenes.2.content.questions.0.answer",
            ["C"],
            "QUIZ_ANSWER",
            "scenes[2].content.questions[0].answer",
        ),
        (
            "scenes.2.content.questions.0.answer",
            ["A", "B"],
            "QUIZ_ANSWER",
            "scenes[2].content.questions[0].answer",
        ),
        (
            "scenes.2.content.questions.0.options",
            [{"label": "Two", "value": "B"}],
            "QUIZ_OPTIONS",
            "scenes[2].content.questions[0].options",
        ),
        (
            "scenes.2.content.questions.1.options",
            [{"label": "Two", "value": "B"}],
            "QUIZ_OPTIONS",
            "scenes[2].content.questions[1].options",
        ),
        (
            "scenes.3.content.projectV2.roles.1.type",
            "mentor",
            "NO_INSTRUCTOR",
            "scenes[3].content.projectV2.roles",
        ),
        (
            "scenes.3.content.projectV2.milestones.0.microtasks",
            [],
            "EMPTY",
            "scenes[3].content.projectV2.milestones[0].microtasks",
        ),
        ("scenes.4.content.listen_ratio", 2, "OUT_OF_BOUNDS", "scenes[4].content.listen_ratio"),
        ("scenes.4.content.clips", [], "EMPTY", "scenes[4].content.clips"),
        (
            "scenes.4.content.clips.0.audioRef",
            "media/c1.wav",
            "REFERENCE",
            "scenes[4].content.clips[0].audioRef",
        ),
    ],
)
def test_each_mistake_is_named_by_its_path(path: str, to: Any, code: str, told: str) -> None:
    """One thing changed for the worse is one mistake, at its place."""
    assert (f"CLASSROOM_{code}", told) in mistakes_in(changed(path, to))


def test_all_mistakes_are_told_at_once() -> None:
    """A document with several mistakes is refused once, with all of them."""
    document = changed("scenes.2.content.questions.0.answer", ["C"])
    document["scenes"][0]["actions"][0]["elementId"] = "gone"
    document["stage"]["agentIds"] = ["nobody"]
    assert len(mistakes_in(document)) == 3


def test_mistakes_without_end_are_bounded() -> None:
    """A document of nothing but mistakes is refused in bounded time; the first ones are told."""
    document = changed("stage.style", "x")
    document |= {f"key{index}": index for index in range(50_000)}
    with pytest.raises(ClassroomInvalidError) as caught:
        read_classroom(encoded(document))
    assert len(caught.value.parts) == MAX_TOLD
    assert int(caught.value.params["mistakes"]) >= MAX_TOLD


def test_nothing_unsound_is_written() -> None:
    """Writing checks like reading: a defect of an author does not reach the disk."""
    scene = msgspec.structs.replace(CLASSROOM.scenes[0], stage_id="other")
    with pytest.raises(ClassroomInvalidError):
        write_classroom(msgspec.structs.replace(CLASSROOM, scenes=(scene,)))


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("0.3.1", ClassroomTooNewError),
        ("1.0.0", ClassroomTooNewError),
        ("0.1.9", ClassroomVersionUnknownError),
        ("new", ClassroomVersionUnknownError),
        (3, ClassroomVersionUnknownError),
        ("0.2.0\n", ClassroomVersionUnknownError),
    ],
)
def test_a_version_that_is_not_known_is_refused(version: Any, error: type[EtudeError]) -> None:
    """A later version needs an upgrade; one that never was is a mistake."""
    with pytest.raises(error):
        read_classroom(encoded({**PLAIN, "dslVersion": version}))


def test_an_old_document_is_brought_up() -> None:
    """0.2.0: addresses become files of the folder, a roster of presets is written out."""
    old = msgspec.json.decode(SOURCE)
    old["dslVersion"] = "0.2.0"
    old["stage"]["generatedAgentConfigs"] = []
    old["stage"]["agentIds"] = ["default-1", "default-2", "default-3"]
    old["scenes"][0]["actions"][5]["agentId"] = "default-3"
    classroom = read_classroom(encoded(old))
    roster = classroom.stage.generated_agent_configs
    assert [(one.id, one.role) for one in roster] == [
        ("default-1", "teacher"),
        ("default-2", "assistant"),
        ("default-3", "student"),
    ]
    document = plain(classroom)
    assert document["scenes"][0]["content"]["canvas"]["elements"][1]["src"] == "media/bulges.png"
    assert document["scenes"][0]["actions"][1]["audioRef"] == "audio/tts_s1_a2.mp3"
    assert "audioUrl" not in document["scenes"][0]["actions"][1]


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    """No JSON, another value, endless nesting: an error of ours."""
    with pytest.raises(ClassroomNotJsonError):
        read_classroom(data)


def test_a_document_has_a_length() -> None:
    """More than 32 MiB is not looked at."""
    with pytest.raises(ClassroomTooLongError):
        read_classroom(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("depth", "error"),
    [
        (63, None),
        (64, ClassroomInvalidError),
        (70, ClassroomInvalidError),
        (150, ClassroomNotJsonError),
        (900, ClassroomNotJsonError),
        (5000, ClassroomNotJsonError),
    ],
)
def test_deep_configuration_is_a_mistake(depth: int, error: type[EtudeError] | None) -> None:
    """Free JSON deeper than 64 is named, not followed; far deeper is no document at all."""
    document = changed("scenes.1.content.widgetConfig", {"a": "deep"})
    data = encoded(document).replace(b'"deep"', b"[" * depth + b"]" * depth)
    if error is None:
        assert read_classroom(data)
        return
    with pytest.raises(error) as caught:
        read_classroom(data)
    for part in caught.value.parts:
        assert part.code == "CLASSROOM_CONFIG"
        assert str(part.params["path"]).startswith("scenes[1].content.widgetConfig.a[0]")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return holder and key of every place of a document."""
    found = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        for key, inner in (
            one.items()
            if isinstance(one, dict)
            else enumerate(one)
            if isinstance(one, list)
            else ()
        ):
            found.append((one, key))
            waiting.append(inner)
    return found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.data())
def test_whatever_is_changed_loads_or_is_refused_by_name(data: st.DataObject) -> None:
    """Any value at any place: a classroom that survives its round trip, or one of our errors."""
    document = changed("stage.style", "x")
    holder, key = data.draw(st.sampled_from(places(document)))
    holder[key] = data.draw(JSON)
    try:
        classroom = read_classroom(encoded(document))
    except EtudeError:
        return
    assert read_classroom(write_classroom(classroom)) == classroom
