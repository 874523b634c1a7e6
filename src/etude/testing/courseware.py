"""A classroom with one of everything, and its files: what courseware is made of in tests."""

import copy
import io
import wave
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.classroom.digest import DIGEST_VERSION
from etude.classroom.loading import classroom_from, write_classroom
from etude.classroom.model import DSL_VERSION, Classroom
from etude.courseware.gates import ContinuityRef, CourseSource, ModuleSource, look
from etude.rubric.library import RubricLibrary, rubric_json

PNG: Final = b"\x89PNG\r\n\x1a\n" + b"picture" * 9
PAGE: Final = (
    "<!doctype html><html><head><title>Move the Moon</title></head><body>"
    '<img src="media/moon.png" alt="Moon"><input id="a" type="range"><output id="o"></output>'
    "<script>const a=document.getElementById('a');a.oninput=()=>{o.textContent=a.value+' m'}"
    "</script></body></html>"
)


def wav(seconds: float = 0.2, pitch: int = 0) -> bytes:
    """Return a WAV of quiet noise; another `pitch` is another file."""
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes([pitch % 256, 0]) * int(8000 * seconds))
    return target.getvalue()


def document(classroom_id: str = "tides01", title: str = "Why tides come twice") -> dict[str, Any]:
    """Return a sound classroom with all five types of scene, as plain JSON."""
    moment = 1_796_025_600_000
    agent = {"persona": "Calm.", "avatar": "🌊", "color": "#2b6cb0", "priority": 5}
    canvas = {
        "id": "cv_1",
        "background": {"type": "image", "image": {"src": "media/moon.png"}},
        "elements": [
            {
                "id": "t1",
                "type": "text",
                "left": 60,
                "top": 40,
                "width": 880,
                "height": 60,
                "content": "<p>One Moon, two bulges</p>",
            }
        ],
    }
    scenes: list[dict[str, Any]] = [
        {
            "type": "slide",
            "content": {"type": "slide", "canvas": canvas},
            "actions": [
                {"id": "a1", "type": "speech", "text": "The sea swells.", "audioRef": "audio/1.wav"}
            ],
        },
        {"type": "interactive", "content": {"type": "interactive", "html": PAGE}},
        {"type": "quiz", "content": {"type": "quiz", "questions": [_QUESTION]}},
        {"type": "pbl", "content": {"type": "pbl", "projectV2": _PROJECT}},
        {"type": "practice", "content": _practice()},
    ]
    for number, scene in enumerate(scenes, 1):
        scene |= {"id": f"sc_{number}", "stageId": classroom_id, "order": number}
        scene["title"] = f"Scene {number}"
    made = {
        "id": classroom_id,
        "dslVersion": DSL_VERSION,
        "createdAt": datetime.fromtimestamp(moment / 1000, UTC).isoformat(),
        "stage": {
            "id": classroom_id,
            "name": title,
            "createdAt": moment,
            "updatedAt": moment,
            "languageDirective": "British English.",
            "whiteboard": [{"id": "wb_1", "elements": [_PICTURE]}],
            "interactiveMode": True,
            "generatedAgentConfigs": [
                {
                    **agent,
                    "id": "ag_t",
                    "name": "Ms Reef",
                    "role": "teacher",
                    "voiceConfig": _VOICE,
                },
                {**agent, "id": "ag_s", "name": "Tomas", "role": "student"},
            ],
        },
        "scenes": scenes,
    }
    return copy.deepcopy(made)  # a test may change every part of it


_VOICE: Final = {"providerId": "piper", "voiceId": "en_GB-alba"}
_PICTURE: Final = {
    "id": "p1",
    "type": "image",
    "left": 0,
    "top": 0,
    "width": 100,
    "height": 100,
    "src": "media/moon.png",
}
_QUESTION: Final = {
    "id": "q1",
    "type": "single",
    "question": "How many high waters in a lunar day?",
    "options": [{"label": "One", "value": "A"}, {"label": "Two", "value": "B"}],
    "answer": ["B"],
}
_PROJECT: Final = {
    "title": "Plan a berth",
    "roles": [{"id": "r_i", "type": "instructor", "name": "Ms Reef"}],
    "milestones": [
        {
            "id": "m1",
            "title": "Read",
            "status": "completed",
            "microtasks": [{"id": "t1", "title": "Mark"}],
        }
    ],
    "submissions": [{"by": "somebody"}],
}


def _practice() -> dict[str, Any]:
    rubric = RubricLibrary.load().get("follow-read-en")
    return {
        "type": "practice",
        "app": "follow_read",
        "clips": [{"text": "The sea swells.", "audioRef": "audio/2.wav"}],
        "listen_ratio": 1.3,
        "rubric": msgspec.json.decode(rubric_json(rubric)),
    }


def lay_out(
    root: Path, plain: dict[str, Any], *, media_bytes: int = 0, number: int = 0
) -> Classroom:
    """Write a classroom and its files below `root` as the library keeps them; return it.

    Args:
        root: the folder of classrooms.
        plain: the document.
        media_bytes: size of a film that is written besides; 0 = none. It is not referred to unless
            the document does so.
        number: makes the sounds others.
    """
    classroom = classroom_from(plain)
    folder = root / classroom.id
    for name in ("media", "audio"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "media" / "moon.png").write_bytes(PNG)
    (folder / "audio" / "1.wav").write_bytes(wav(pitch=1 + number))
    (folder / "audio" / "2.wav").write_bytes(wav(pitch=2 + number))
    if media_bytes:
        (folder / "media" / "film.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(media_bytes))
    (root / f"{classroom.id}.json").write_bytes(write_classroom(classroom))
    return classroom


def course(root: Path, course_id: str = "harbour", modules: int = 2) -> CourseSource:
    """Lay out a course's classrooms below `root`; return it as its record would have it.

    Args:
        root: the folder of classrooms.
        course_id: which course.
        modules: how many.
    """
    made: list[ModuleSource] = []
    refs: list[ContinuityRef] = []
    for index in range(modules):
        classroom_id = f"{course_id}_{index}"
        lay_out(root, document(classroom_id, f"Module {index}"), number=10 * index)
        made.append(module(root, classroom_id, tuple(refs)))
        refs.append(
            ContinuityRef(
                module_index=index,
                classroom_id=classroom_id,
                semantic_hash=made[-1].semantic_hash or "",
            )
        )
    planned = tuple(one.module_id for one in made)
    return CourseSource(course_id=course_id, title="Harbour", planned=planned, modules=tuple(made))


def module(root: Path, classroom_id: str, refs: tuple[ContinuityRef, ...]) -> ModuleSource:
    """Return a module as its record has it right after it was generated."""
    looked = look(root, classroom_id)
    return ModuleSource(
        module_id=f"cw_{classroom_id}",
        title=looked.classroom.stage.name,
        description="A module.",
        succeeded=True,
        classroom_id=classroom_id,
        semantic_hash=looked.semantic_hash,
        source_revision_hash=looked.source_revision_hash,
        digest_version=DIGEST_VERSION,
        continuity=refs,
    )
