"""Evidence: one hash for what a classroom says, another for everything that is stored."""

import copy
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.classroom.digest import (
    DIGEST_VERSION,
    MAX_BYTES,
    output_digest,
    semantic_hash,
    source_revision_hash,
)
from etude.classroom.loading import read_classroom
from etude.classroom.model import Classroom
from etude.classroom.plain import plain

CLASSROOM = read_classroom((Path(__file__).parent / "tides.json").read_bytes())
MEDIA = {"media/bulges.png": "0" * 64}
PRACTICE = {
    "id": "sc_5",
    "stageId": "demo_tides01",
    "type": "practice",
    "title": "Say it",
    "order": 5,
    "content": {
        "type": "practice",
        "app": "follow_read",
        "clips": [
            {"text": "The tide is in.", "audioRef": "audio/c1.wav", "durationMs": 1800},
            {"text": "The tide is out."},
        ],
        "listen_ratio": 1.3,
        "rubric": {"id": "reading-en", "version": "v1"},
    },
}
Change = Callable[[dict[str, Any]], object]


def made(change: Change = lambda _: None) -> Classroom:
    """Return the example, with a practice scene and a table, changed."""
    document = copy.deepcopy(plain(CLASSROOM))
    document["scenes"].append(copy.deepcopy(PRACTICE))
    change(document)
    return read_classroom(msgspec.json.encode(document))


def at(path: str, to: Any) -> Change:
    """Return a change of one place."""

    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        place: Any = document
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place[name]
        place[int(last) if isinstance(place, list) else last] = to

    return change


CANVAS = "scenes.0.content.canvas"
WHOLE = made()


@pytest.mark.parametrize(
    "change",
    [
        at(f"{CANVAS}.elements.0.left", 61),
        at(f"{CANVAS}.elements.0.id", "text_z9"),
        at(f"{CANVAS}.elements.0.defaultColor", "#ff0000"),
        at(
            f"{CANVAS}.elements.0.content",
            '<p style="color: red">One <em>Moon, two</em> bulges</p>',
        ),
        at(f"{CANVAS}.elements.1.src", "media/other.png"),
        at(f"{CANVAS}.elements.2.html", "<span>…</span>"),
        at(f"{CANVAS}.theme.fontName", "Serif"),
        at(f"{CANVAS}.background.color", "#eeeeee"),
        at("scenes.0.actions.1.audioRef", "audio/other.mp3"),
        at("scenes.0.actions.1.speed", 1.5),
        at("scenes.0.actions.3.x", 300),
        at("scenes.0.actions.0.dimOpacity", 0.5),
        at("scenes.0.order", 0),
        at("scenes.0.updatedAt", 1796025600001),
        at("scenes.1.content.widgetConfig.color", "#123456"),
        at("stage.updatedAt", 1796025600009),
        at("stage.style", "dark"),
        at("stage.generatedAgentConfigs.0.persona", "Strict."),
        at("createdAt", "2026-12-01T08:00:00Z"),
        at("scenes.3.content.projectV2.roles.1.systemPrompt", "Coach at length."),
        at("scenes.4.content.clips.0.audioRef", "audio/c9.wav"),
        at("scenes.4.content.clips.0.durationMs", 1900),
    ],
)
def test_how_it_looks_is_no_meaning(change: Change) -> None:
    """Layout, colours, ids, times, sounds and scripts: another revision, the same meaning."""
    other = made(change)
    assert semantic_hash(other) == semantic_hash(WHOLE)
    assert source_revision_hash(other, MEDIA) != source_revision_hash(WHOLE, MEDIA)


def test_script_and_style_are_no_meaning() -> None:
    """What a page does and how it looks shows in the revision alone."""
    page = plain(WHOLE)["scenes"][1]["content"]["html"]
    other = made(at("scenes.1.content.html", page.replace("toFixed(2)", "toFixed(3)")))
    assert semantic_hash(other) == semantic_hash(WHOLE)
    assert source_revision_hash(other, MEDIA) != source_revision_hash(WHOLE, MEDIA)


@pytest.mark.parametrize(
    "change",
    [
        at("stage.name", "Why tides come once a day"),
        at("stage.description", "Module 3"),
        at("stage.languageDirective", "Teach in Chinese."),
        at("scenes.0.title", "Three bulges"),
        at(f"{CANVAS}.elements.0.content", "<p>One Moon, three bulges</p>"),
        at(f"{CANVAS}.elements.1.alt", "Two bulges"),
        at(f"{CANVAS}.elements.2.latex", "T = 12"),
        at("scenes.0.actions.1.text", "The sea sinks."),
        at("scenes.0.actions.3.content", "Low, high"),
        at("scenes.0.actions.5.topic", "Why not?"),
        at("scenes.1.content.html", "<p>Turn it</p>"),
        at("scenes.1.content.widgetType", "game"),
        at("scenes.1.content.widgetConfig.concept", "tidal force"),
        at("scenes.1.content.widgetConfig.variables.0.max", 180),
        at("scenes.1.actions.1.state.angle", 91),
        at("scenes.2.content.questions.0.question", "How many low waters?"),
        at("scenes.2.content.questions.0.options.1.label", "Three"),
        at("scenes.2.content.questions.0.answer", ["A"]),
        at("scenes.2.content.questions.0.analysis", "Because."),
        at("scenes.2.content.questions.0.points", 3),
        at("scenes.2.content.questions.1.commentPrompt", "Anything goes."),
        at("scenes.3.content.projectV2.description", "Choose any window."),
        at("scenes.3.content.projectV2.milestones.0.microtasks.0.hints", ["Look up."]),
        at("scenes.4.content.clips.1.text", "The tide is far out."),
        at("scenes.4.content.listen_ratio", 1.4),
        at("scenes.4.content.rubric.version", "v2"),
        at("scenes.4.order", 0),
        lambda document: document["scenes"][4]["content"]["clips"].reverse(),
        lambda document: document["scenes"][2]["content"]["questions"].reverse(),
        lambda document: document["scenes"].pop(),
    ],
)
def test_what_it_says_is_its_meaning(change: Change) -> None:
    """Any word that a learner reads or hears, and the order of things, changes both hashes."""
    other = made(change)
    assert semantic_hash(other) != semantic_hash(WHOLE)
    assert source_revision_hash(other, MEDIA) != source_revision_hash(WHOLE, MEDIA)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80))
def test_forms_of_unicode_mean_the_same(words: str) -> None:
    """Composed or not, and however it is spaced: the same words; other words: another hash."""
    text = f"The sea {words}"
    said = semantic_hash(made(at("scenes.0.actions.1.text", unicodedata.normalize("NFC", text))))
    apart = unicodedata.normalize("NFD", text).replace(" ", "  ")
    assert semantic_hash(made(at("scenes.0.actions.1.text", apart))) == said
    assert semantic_hash(made(at("scenes.0.actions.1.text", text + "!"))) != said


@given(st.integers(min_value=0, max_value=3000))
def test_hashes_look_beyond_what_the_digest_shows(place: int) -> None:
    """One letter changed anywhere in a long text changes the hash, also where the digest is cut."""
    long = "a" * 3001
    changed = f"{long[:place]}b{long[place + 1 :]}"
    one = made(at("scenes.0.actions.1.text", long))
    other = made(at("scenes.0.actions.1.text", changed))
    assert semantic_hash(one) != semantic_hash(other)


def test_every_file_counts() -> None:
    """A file overwritten, added or taken away is another revision of the same meaning."""
    base = source_revision_hash(WHOLE, MEDIA)
    assert source_revision_hash(WHOLE, {"media/bulges.png": "1" * 64}) != base
    assert source_revision_hash(WHOLE, {**MEDIA, "audio/a.mp3": "0" * 64}) != base
    assert source_revision_hash(WHOLE, {}) != base
    assert source_revision_hash(WHOLE, dict(reversed({**MEDIA, "audio/a.mp3": "0"}.items()))) == (
        source_revision_hash(WHOLE, {**MEDIA, "audio/a.mp3": "0"})
    )


def test_what_learners_did_counts_nowhere() -> None:
    """Submissions, threads and assessments are not part of any hash."""
    project = "scenes.3.content.projectV2"

    def work(document: dict[str, Any]) -> None:
        at(f"{project}.submissions", [{"text": "mine"}])(document)
        at(f"{project}.threads", [{"agentId": "r_i", "messages": [{"text": "hello"}]}])(document)
        at(f"{project}.internalAssessment", {"level": 3})(document)

    other = made(work)
    assert semantic_hash(other) == semantic_hash(WHOLE)
    assert source_revision_hash(other, MEDIA) == source_revision_hash(WHOLE, MEDIA)


def test_ids_inside_a_widget_are_no_meaning() -> None:
    """Nodes called otherwise are the same diagram; an edge elsewhere is another one."""

    def diagram(first: str, second: str, start: str) -> Change:
        nodes = [{"id": first, "label": "Moon"}, {"id": second, "label": "Sea"}]
        edges = [{"from": start, "to": second, "label": "pulls"}]
        return at("scenes.1.content.widgetConfig", {"nodes": nodes, "edges": edges})

    drawn = semantic_hash(made(diagram("n1", "n2", "n1")))
    assert semantic_hash(made(diagram("x", "y", "x"))) == drawn
    assert semantic_hash(made(diagram("n1", "n2", "n2"))) != drawn


def test_hashes_stay_what_they_were() -> None:
    """Stored evidence stays good: the hashes of the example are these, whatever changes inside."""
    assert semantic_hash(CLASSROOM) == (
        "sha256:ae74fe2d89e795a01e48cebf8c74201ca2e24df3a16bd230dfafc62d504897fb"
    )
    assert source_revision_hash(CLASSROOM, MEDIA) == (
        "sha256:bc0c96c621beb23ccc075fab66bcbaa75dd41b6ab077c28f131b0bf78938f71f"
    )


def test_the_digest_says_what_there_is() -> None:
    """Counts, scenes, concepts, quizzes, activities and lessons, from the classroom itself."""
    digest = output_digest(WHOLE, MEDIA, terms=["spring tide", "Neap Tide"])
    assert digest.digest_version == DIGEST_VERSION
    assert digest.scene_count == 5
    assert digest.counts == {"slide": 1, "quiz": 1, "interactive": 1, "pbl": 1, "practice": 1}
    assert [scene.title for scene in digest.scenes] == [scene.title for scene in WHOLE.scenes]
    assert "the far side" in digest.scenes[0].key_content
    assert digest.covered_concepts == ("Two bulges", "Neap Tide")
    assert (digest.assessments[0].questions, digest.assessments[0].points) == (2, 3)
    assert digest.interactive_experiences[0].widget_type == "simulation"
    assert (digest.practices[0].clips, digest.practices[0].listen_ratio) == (2, 1.3)
    assert digest.semantic_hash == semantic_hash(WHOLE)
    assert digest.source_revision_hash == source_revision_hash(WHOLE, MEDIA)
    assert msgspec.json.decode(msgspec.json.encode(digest), type=type(digest)) == digest


def test_a_digest_is_bounded() -> None:
    """200 wordy scenes give at most 24 KiB, whose hash is still that of the whole."""

    def many(document: dict[str, Any]) -> None:
        scene = document["scenes"][2]
        document["scenes"] = [
            {**copy.deepcopy(scene), "id": f"s{index}", "title": f"潮{index} " + "汐" * 200}
            for index in range(200)
        ]

    wordy = made(many)
    digest = output_digest(wordy, MEDIA)
    assert len(msgspec.json.encode(digest)) <= MAX_BYTES
    assert digest.scene_count == 200
    assert digest.semantic_hash == semantic_hash(wordy)


LAYOUT = frozenset({"left", "top", "width", "height", "x", "y", "viewportRatio", "durationMs"})
SAID = frozenset(
    {
        *("name", "title", "content", "text", "topic", "latex", "label", "question", "analysis"),
        *("description", "concept", "html"),
    }
)


def leaves(value: Any, keys: frozenset[str], path: str = "") -> list[str]:
    """Return the path of every value that stands under one of the keys."""
    found = []
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        at_key = f"{path}.{key}".removeprefix(".")
        if key in keys and isinstance(inner, str | int | float):
            found.append(at_key)
        found += leaves(inner, keys, at_key)
    return found


WHOLE_PLAIN = plain(WHOLE)
PLACED = leaves(WHOLE_PLAIN["scenes"], LAYOUT, "scenes")
WORDED = [
    path
    for path in leaves(WHOLE_PLAIN, SAID)
    if "generatedAgentConfigs" not in path and not path.endswith("elements.2.html")
]


@given(st.sampled_from(PLACED), st.integers(1, 99))
def test_no_place_or_size_is_a_meaning(path: str, moved: int) -> None:
    """Wherever a number says where or how large: the revision changes, the meaning does not."""
    other = made(at(path, moved))
    assert semantic_hash(other) == semantic_hash(WHOLE)
    same = plain(other) == WHOLE_PLAIN
    assert (source_revision_hash(other, {}) == source_revision_hash(WHOLE, {})) is same


@given(st.sampled_from(WORDED), st.sampled_from(["Neap", "潮", "é", "7"]))
def test_every_word_is_a_meaning(path: str, word: str) -> None:
    """Wherever a text is read or heard, one word more is another meaning."""
    place: Any = WHOLE_PLAIN
    for name in path.split("."):
        place = place[int(name)] if isinstance(place, list) else place[name]
    other = made(at(path, f"{place} {word}"))
    assert semantic_hash(other) != semantic_hash(WHOLE)


@given(st.permutations(range(5)))
def test_the_order_of_scenes_is_a_meaning(order: list[int]) -> None:
    """Scenes in another order are another lesson; where they stand in the file is not."""

    def shuffled(document: dict[str, Any]) -> None:
        document["scenes"] = [document["scenes"][index] for index in order]

    def renumbered(document: dict[str, Any]) -> None:
        for scene, number in zip(document["scenes"], order, strict=True):
            scene["order"] = number

    assert semantic_hash(made(shuffled)) == semantic_hash(WHOLE)
    same = order == sorted(order)
    assert (semantic_hash(made(renumbered)) == semantic_hash(WHOLE)) is same
