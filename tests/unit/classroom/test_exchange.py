"""To OpenMAIC and back: what arrives is sound, and what is lost is said."""

import copy
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from etude.classroom.archive import Archive
from etude.classroom.digest import semantic_hash
from etude.classroom.errors import ArchiveManifestError, ClassroomFolderError, ClassroomInvalidError
from etude.classroom.exporting import export_archive, export_document
from etude.classroom.importing import Imported, import_archive, import_document
from etude.classroom.loading import read_classroom
from etude.classroom.mending import Loss, LossCode
from etude.classroom.model import InteractiveContent
from etude.classroom.plain import plain
from etude.i18n import LOCALES, catalogue

SOURCE = (Path(__file__).parent / "tides.json").read_bytes()
NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
FILES = frozenset(
    ["media/bulges.png", "audio/tts_s1_a2.mp3", "audio/tts_s2_b1.mp3", "audio/tts_s3_c1.mp3"]
)
PRACTICE = {
    "id": "sc_5",
    "stageId": "demo_tides01",
    "type": "practice",
    "title": "Say it",
    "order": 5,
    "keyPoints": ["tide"],
    "content": {
        "type": "practice",
        "app": "follow_read",
        "clips": [{"text": "Is 1 < 2?", "audioRef": "audio/tts_s1_a2.mp3"}, {"text": "It is."}],
        "listen_ratio": 1.3,
    },
}


def taken(change: Any = lambda _: None, files: frozenset[str] = FILES) -> Imported:
    """Import the example, changed."""
    document = msgspec.json.decode(SOURCE)
    change(document)
    return import_document(msgspec.json.encode(document), classroom_id="demo_tides01", files=files)


def codes(imported: Imported) -> list[tuple[str, str]]:
    return [(loss.path, loss.code) for loss in imported.losses]


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`; there may be more keys."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], one) for key, one in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


def test_the_example_goes_there_and_back() -> None:
    """Nothing of OpenMAIC's document is lost on import and export, and nothing changes again."""
    imported = taken()
    assert imported.losses == ()
    assert frozenset(imported.files) == FILES
    exported = export_document(imported.classroom)
    assert exported.losses == ()
    assert frozenset(exported.files) == FILES
    assert contains(exported.document, msgspec.json.decode(SOURCE))
    again = import_document(
        msgspec.json.encode(exported.document), classroom_id="demo_tides01", files=FILES
    )
    assert again == imported


def read(reference: str) -> Iterable[bytes]:
    yield reference.encode()


def test_an_archive_goes_there_and_back(tmp_path: Path) -> None:
    """A `.maic.zip` keeps what is said and tells what the format loses; same input, same bytes."""
    classroom = taken().classroom
    losses = export_archive(classroom, tmp_path / "a.zip", read, NOW)
    assert [(loss.path, loss.code) for loss in losses] == [
        ("stage.interactiveMode", "mode_dropped")
    ]
    export_archive(classroom, tmp_path / "b.zip", read, NOW)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with Archive.open(tmp_path / "a.zip") as archive:
        imported = import_archive(archive, classroom_id="fresh", now=NOW)
        contents = {ref: archive.read(entry, limit=99) for ref, entry in imported.files.items()}
    assert imported.losses == ()
    assert contents == {name: name.encode() for name in FILES}
    assert semantic_hash(imported.classroom) == semantic_hash(classroom)
    assert imported.classroom.id == imported.classroom.stage.id == "fresh"
    document = plain(imported.classroom)
    student = document["stage"]["generatedAgentConfigs"][1]
    assert document["scenes"][0]["actions"][5]["agentId"] == student["id"]


def test_practice_becomes_an_activity(tmp_path: Path) -> None:
    """It can be read and heard elsewhere; the loss is told; the sentences are escaped."""
    document = msgspec.json.decode(SOURCE)
    document["scenes"].append(PRACTICE)
    classroom = read_classroom(msgspec.json.encode(document))
    exported = export_document(classroom)
    assert [(loss.path, loss.code) for loss in exported.losses] == [
        ("scenes[4].keyPoints", "key_points_dropped"),
        ("scenes[4]", "practice_degraded"),
    ]
    scene = exported.document["scenes"][4]
    assert scene["type"] == scene["content"]["type"] == "interactive"
    assert "<li>Is 1 &lt; 2?</li>" in scene["content"]["html"]
    assert [action["text"] for action in scene["actions"]] == ["Is 1 < 2?", "It is."]
    assert scene["actions"][0]["audioUrl"].endswith("/audio/tts_s1_a2.mp3")
    back = import_document(
        msgspec.json.encode(exported.document), classroom_id="demo_tides01", files=FILES
    )
    assert isinstance(back.classroom.scenes[4].content, InteractiveContent)
    export_archive(classroom, tmp_path / "a.zip", read, NOW)


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A source that fails takes the half-written archive with it; one that is there stays."""

    def broken(_: str) -> Iterable[bytes]:
        yield b"half"
        raise OSError(5, "gone")

    with pytest.raises(ClassroomFolderError):
        export_archive(taken().classroom, tmp_path / "a.zip", broken, NOW)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.zip").write_bytes(b"mine")
    with pytest.raises(ClassroomFolderError):
        export_archive(taken().classroom, tmp_path / "a.zip", read, NOW)
    assert (tmp_path / "a.zip").read_bytes() == b"mine"


def test_what_is_not_known_is_left_out_and_told() -> None:
    """Foreign keys go, wherever they are."""

    def change(document: dict[str, Any]) -> None:
        document["outlines"] = [{"id": 1}]
        document["scenes"][0]["content"]["canvas"]["elements"][0]["shiny"] = True
        document["scenes"][0]["actions"][1]["mood"] = "calm"

    imported = taken(change)
    assert set(codes(imported)) == {
        ("outlines", "key_dropped"),
        ("scenes[0].content.canvas.elements[0].shiny", "key_dropped"),
        ("scenes[0].actions[1].mood", "key_dropped"),
    }
    assert imported.classroom == taken().classroom


def test_actions_and_elements_that_cannot_be_are_left_out() -> None:
    """A spotlight on nothing, an action of an unknown kind, an element of one."""

    def change(document: dict[str, Any]) -> None:
        document["scenes"][0]["actions"][0]["elementId"] = "gone"
        document["scenes"][0]["actions"].append({"id": "x", "type": "dance"})
        document["scenes"][1]["actions"].append({"id": "x", "type": "laser", "elementId": "a"})
        document["scenes"][0]["content"]["canvas"]["elements"].append({"id": "x", "type": "smell"})

    imported = taken(change)
    assert set(codes(imported)) == {
        ("scenes[0].actions[0]", "action_dropped"),
        ("scenes[0].actions[6]", "action_dropped"),
        ("scenes[1].actions[2]", "action_dropped"),
        ("scenes[0].content.canvas.elements[3]", "element_dropped"),
    }


def test_hostile_markup_is_cleaned() -> None:
    """Handlers and scripts go; words stay."""

    def change(document: dict[str, Any]) -> None:
        elements = document["scenes"][0]["content"]["canvas"]["elements"]
        elements[0]["content"] = "<p onclick='x()'>One <script>evil()</script>Moon</p>"
        elements[0]["link"] = {"type": "web", "target": "javascript:evil()"}

    imported = taken(change)
    path = "scenes[0].content.canvas.elements[0]"
    assert codes(imported) == [
        (f"{path}.content", "markup_cleaned"),
        (f"{path}.link", "link_dropped"),
    ]
    (scene, *_) = plain(imported.classroom)["scenes"]
    assert scene["content"]["canvas"]["elements"][0]["content"] == "<p>One Moon</p>"


@pytest.mark.parametrize(
    ("options", "answer", "resolved", "loss"),
    [
        (["One", "Two"], "Two", ("B",), "answer_rewritten"),
        (
            [{"label": "One", "value": "A"}, {"label": "Two", "value": "B"}],
            ["(b)"],
            ("B",),
            "rewritten",
        ),
        ([{"label": "A", "value": "One"}, {"label": "B", "value": "Two"}], ["B"], ("B",), None),
        (
            [{"label": "One", "value": "A"}, {"label": "Two", "value": "B"}],
            ["Three"],
            (),
            "dropped",
        ),
        ([{"label": "One", "value": "A"}, {"label": "one", "value": "B"}], ["ONE"], (), "dropped"),
    ],
)
def test_answers_are_resolved_where_there_is_one_way(
    options: list[Any], answer: Any, resolved: tuple[str, ...], loss: str | None
) -> None:
    """An answer becomes the value of the one option it names, else the question is ungraded."""

    def change(document: dict[str, Any]) -> None:
        question = document["scenes"][2]["content"]["questions"][0]
        question |= {"options": options, "answer": answer}

    imported = taken(change)
    question = plain(imported.classroom)["scenes"][2]["content"]["questions"][0]
    assert tuple(question.get("answer", ())) == resolved
    assert [code for _, code in codes(imported) if loss and loss in code] == [
        code for _, code in codes(imported)
    ]
    assert bool(codes(imported)) is (loss is not None)


def test_what_learners_did_stays_behind() -> None:
    """A project in use is taken as its design."""

    def change(document: dict[str, Any]) -> None:
        project = document["scenes"][3]["content"]["projectV2"]
        project["submissions"] = [{"text": "mine"}]
        project["milestones"][0]["microtasks"][0]["status"] = "completed"

    imported = taken(change)
    assert codes(imported) == [("scenes[3].content.projectV2", "runtime_dropped")]
    assert imported.classroom == taken().classroom


def test_files_that_are_not_there_are_told() -> None:
    """A picture without a file goes; a speech without one stays, without its sound."""
    imported = taken(files=frozenset({"audio/tts_s1_a2.mp3"}))
    assert ("scenes[0].content.canvas.elements[1].src", "media_missing") in codes(imported)
    assert ("scenes[1].actions[0].audioRef", "media_missing") in codes(imported)
    assert imported.files == {"audio/tts_s1_a2.mp3": "audio/tts_s1_a2.mp3"}
    elements = plain(imported.classroom)["scenes"][0]["content"]["canvas"]["elements"]
    assert [element["id"] for element in elements] == ["text_a1", "latex_c1"]


def test_a_roster_of_presets_is_written_out() -> None:
    """Agents that only OpenMAIC knows are written out, and that is told."""

    def change(document: dict[str, Any]) -> None:
        del document["stage"]["generatedAgentConfigs"]
        document["scenes"][0]["actions"].pop()

    imported = taken(change)
    assert codes(imported) == [("stage.generatedAgentConfigs", "roster_filled")]


def test_what_cannot_be_mended_is_refused() -> None:
    """A scene without a title is nobody's to guess."""
    with pytest.raises(ClassroomInvalidError) as caught:
        taken(lambda document: document["scenes"][0].pop("title"))
    assert str(caught.value.parts[0].params["path"]) == "scenes[0]"


def archived(folder: Path, manifest: Any, *names: str) -> Path:
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        if manifest is not None:
            archive.writestr("manifest.json", msgspec.json.encode(manifest))
        for name in names:
            archive.writestr(name, b"x")
    return path


@pytest.mark.parametrize("manifest", [None, {}, {"formatVersion": 2}, {"formatVersion": "1"}])
def test_an_archive_needs_a_manifest_that_is_known(tmp_path: Path, manifest: Any) -> None:
    """None, or one of another format, is refused by name."""
    with (
        Archive.open(archived(tmp_path, manifest, "a.png")) as archive,
        pytest.raises(ArchiveManifestError),
    ):
        import_archive(archive, classroom_id="x", now=NOW)


@pytest.mark.parametrize(
    "manifest",
    [
        {"formatVersion": 1},
        {"formatVersion": 1, "stage": [], "agents": {}, "scenes": 3, "mediaIndex": []},
        {"formatVersion": 1, "stage": {"name": "x"}, "agents": [], "scenes": [{}]},
        {
            "formatVersion": 1,
            "stage": {"name": "x"},
            "scenes": [{"multiAgent": {}, "actions": [{}]}],
        },
    ],
)
def test_a_manifest_of_nonsense_is_refused(tmp_path: Path, manifest: Any) -> None:
    """Whatever stands where something else should is a mistake with a path, not a crash."""
    with (
        Archive.open(archived(tmp_path, manifest)) as archive,
        pytest.raises(ClassroomInvalidError),
    ):
        import_archive(archive, classroom_id="x", now=NOW)


def test_files_get_names_that_a_folder_can_have(tmp_path: Path) -> None:
    """An entry with another name, or another kind, than a classroom keeps is renamed or refused."""
    document = export_document(taken().classroom).document
    scene = copy.deepcopy(document["scenes"][0])
    elements = scene["content"]["canvas"]["elements"]
    elements[1]["src"] = "media/月 1.png"
    elements.append({**elements[1], "id": "svg", "src": "media/evil.svg"})
    elements.append({**elements[1], "id": "gen", "src": "gen_img_7"})
    scene["actions"] = []
    manifest = {
        "formatVersion": 1,
        "stage": {"name": "潮汐"},
        "agents": document["stage"]["generatedAgentConfigs"],
        "scenes": [scene],
        "mediaIndex": {"media/asset-1.jpg": {"sourceRef": "gen_img_7", "type": "generated"}},
    }
    names = ("media/月 1.png", "media/evil.svg", "media/asset-1.jpg")
    with Archive.open(archived(tmp_path, manifest, *names)) as archive:
        imported = import_archive(archive, classroom_id="x", now=NOW)
    assert imported.files == {
        "media/m1.png": "media/月 1.png",
        "media/asset-1.jpg": "media/asset-1.jpg",
    }
    assert ("scenes[0].content.canvas.elements[3].src", "media_refused") in codes(imported)


def test_every_loss_has_its_words() -> None:
    """Each code is a sentence in each language, and no sentence is left over."""
    for locale in LOCALES:
        prefix = "classroom.loss."
        worded = {key.removeprefix(prefix) for key in catalogue(locale) if key.startswith(prefix)}
        assert worded == set(get_args(LossCode))


def test_a_loss_is_said_in_the_readers_language() -> None:
    """The place, and what happened there."""
    loss = Loss("scenes[2]", "practice_degraded")
    assert {loss.said(locale).startswith("scenes[2]") for locale in LOCALES} == {True}
    assert loss.said("en") != loss.said("zh-CN")
