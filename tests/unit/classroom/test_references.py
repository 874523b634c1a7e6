"""Files that a classroom refers to: found in a stable order, changed in one go."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.classroom.loading import read_classroom, read_object
from etude.classroom.model import Classroom
from etude.classroom.plain import plain
from etude.classroom.references import (
    Slot,
    fits,
    is_file,
    is_placeholder,
    is_remote,
    rewrite,
    slots,
    slots_of,
)

SOURCE = (Path(__file__).parent / "tides.json").read_bytes()
IMAGE = {"id": "i", "type": "image", "left": 0, "top": 0, "width": 9, "height": 9}
VIDEO = {
    **IMAGE,
    "type": "video",
    "src": "media/v.mp4",
    "mediaRef": "gen_vid_1",
    "poster": "media/p.png",
}
BOARD = {
    "id": "b",
    "elements": [{**IMAGE, "src": "media/board.png"}],
    "background": {"type": "image", "image": {"src": "media/back.png"}},
}


def rich() -> dict[str, Any]:
    """Return a document with a reference in every kind of slot."""
    document = read_object(SOURCE)
    document["dslVersion"] = "0.3.0"
    document["stage"] |= {
        "whiteboard": [BOARD],
        "videoManifest": {"gen_vid_1": {"type": "video", "prompt": "A tide."}},
    }
    for scene in document["scenes"]:
        for action in scene["actions"]:
            if action.pop("audioUrl", None):
                action["audioRef"] = f"audio/{action.pop('audioId')}.mp3"
    first = document["scenes"][0]
    first["content"]["canvas"]["elements"][1]["src"] = "https://x.example/bulges.png"
    first["content"]["canvas"]["elements"] += [
        {**VIDEO, "id": "v"},
        {**IMAGE, "id": "s", "type": "audio", "src": "audio/waves.mp3"},
    ]
    first["whiteboards"] = [{"id": "b2", "elements": [{**IMAGE, "src": "gen_img_2"}]}]
    return document


def test_every_slot_is_found_in_the_order_of_freezing() -> None:
    """Boards of the stage, then scene by scene, then films and faces."""
    classroom = read_classroom(msgspec.json.encode(rich()))
    assert [(slot.kind, slot.reference) for slot in slots_of(classroom)] == [
        ("background", "media/back.png"),
        ("image", "media/board.png"),
        ("image", "https://x.example/bulges.png"),
        ("video", "media/v.mp4"),
        ("video", "gen_vid_1"),
        ("poster", "media/p.png"),
        ("sound", "audio/waves.mp3"),
        ("image", "gen_img_2"),
        ("speech", "audio/tts_s1_a2.mp3"),
        ("speech", "audio/tts_s2_b1.mp3"),
        ("speech", "audio/tts_s3_c1.mp3"),
        ("prompt", "gen_vid_1"),
        ("avatar", "/avatars/teacher.png"),
        ("avatar", "/avatars/curious.png"),
    ]


def test_references_are_changed_in_one_go() -> None:
    """Each slot gets what it is given; keys of the films that were asked for follow."""
    classroom = read_classroom(msgspec.json.encode(rich()))

    def change(slot: Slot) -> str | None:
        if slot.kind == "poster":
            return None
        return f"{slot.folder}/new.png" if slot.kind != "avatar" else slot.reference

    document = plain(classroom)
    rewrite(document, change)
    changed = msgspec.convert(document, Classroom)
    assert {slot.reference for slot in slots_of(changed) if slot.kind != "avatar"} == {
        "media/new.png",
        "audio/new.png",
    }
    assert list(changed.stage.video_manifest) == ["media/new.png"]
    same = plain(classroom)
    rewrite(same, lambda slot: slot.reference)
    assert same == plain(classroom)


@pytest.mark.parametrize(
    "document", [{}, {"stage": 3, "scenes": {}}, {"scenes": [1, {"content": []}]}]
)
def test_nonsense_has_no_slots(document: Any) -> None:
    """A document that is none yet is walked through without a fall."""
    assert list(slots(document)) == []


@pytest.mark.parametrize(
    ("reference", "file", "remote", "placeholder"),
    [
        ("media/a.png", True, False, False),
        ("audio/tts_s1-a.v2.mp3", True, False, False),
        ("media/..png", False, False, False),
        ("media/a", False, False, False),
        ("media/a/b.png", False, False, False),
        ("media/a.png\n", False, False, False),
        ("MEDIA/a.png", False, False, False),
        ("media/月.png", False, False, False),
        ("https://x.example/a b", False, False, False),
        ("https://x.example/a", False, True, False),
        ("//x.example/a", False, False, False),
        ("file:///etc/passwd", False, False, False),
        ("gen_img_x-1", False, False, True),
        ("img_3", False, False, True),
        ("gen_img_", False, False, False),
    ],
)
def test_forms_of_references(
    reference: str,
    *,
    file: bool,
    remote: bool,
    placeholder: bool,
) -> None:
    """A file of the folder, an address of the web, something still to be made: never two."""
    assert (is_file(reference), is_remote(reference), is_placeholder(reference)) == (
        file,
        remote,
        placeholder,
    )


@pytest.mark.parametrize(
    "face", ["/avatars/x.png", "🙂", "media/face.png", "https://x.example/f.png"]
)
def test_a_face_is_a_picture_or_a_sign(face: str) -> None:
    """Faces may be OpenMAIC's own, an emoji, a file or an address."""
    assert fits(Slot((), "avatar", face))
    assert not fits(Slot((), "speech", face))


def test_one_form_for_one_meaning() -> None:
    """A default that was written out and one that was not give the same plain form."""
    document = rich()
    spelled = plain(read_classroom(msgspec.json.encode(document)), spelled_out=True)
    again = read_classroom(msgspec.json.encode(spelled))
    assert plain(again) == plain(read_classroom(msgspec.json.encode(document)))
