"""A registry of courseware in memory, with practice scenes of any sentences, as wrong as wished."""

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from etude.courseware.freezing import freeze
from etude.courseware.loading import Registered
from etude.courseware.source_files import hash_files
from etude.practice.assigned import CoursewarePin
from etude.rubric.library import RubricLibrary, rubric_json
from etude.testing.courseware import document, lay_out, wav

COURSEWARE_ID = "cw_harbour"


def scene(
    *sentences: str, ratio: float = 1.3, rubric: str = "follow-read-en", title: str = "Read aloud"
) -> dict[str, Any]:
    """Return a practice scene of some sentences; sound `n` of `lay_out_scenes` is the nth's."""
    body = RubricLibrary.load().get(rubric)
    clips = [
        {"text": text, "audioRef": f"audio/s{number}.wav"}
        for number, text in enumerate(sentences, 1)
    ]
    content = {
        "type": "practice",
        "app": "follow_read",
        "clips": clips,
        "listen_ratio": ratio,
        "rubric": msgspec.json.decode(rubric_json(body)),
    }
    return {"type": "practice", "title": title, "content": content}


def with_scenes(classroom_id: str, *scenes: dict[str, Any]) -> dict[str, Any]:
    """Return a sound classroom whose practice scenes are these, named `p1`, `p2` …."""
    plain = document(classroom_id)
    plain["scenes"] = [one for one in plain["scenes"] if one["type"] != "practice"]
    for number, one in enumerate(scenes, 1):
        order = len(plain["scenes"]) + 1
        plain["scenes"].append(one | {"id": f"p{number}", "stageId": classroom_id, "order": order})
    return plain


def lay_out_scenes(root: Path, plain: dict[str, Any], *, number: int = 0) -> None:
    """Write the classroom and its sounds as the library keeps them; `number` makes them others."""
    classroom = lay_out(root, plain, number=number)
    counts = [len(one["content"].get("clips", ())) for one in plain["scenes"]]
    for clip in range(1, max(counts) + 1):
        sound = wav(0.3 + clip / 100, pitch=100 + 10 * number + clip)
        (root / classroom.id / "audio" / f"s{clip}.wav").write_bytes(sound)


class SceneRegistry:
    """What a gateway asks for courseware.

    Attributes:
        bundles: by version; a test may damage them.
        asked: what was asked for, in order.
        fault: raised instead of any answer.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the classrooms below `folder`."""
        self._folder = folder
        self._registered: dict[int, Registered] = {}
        self.bundles: dict[int, bytes] = {}
        self.asked: list[str] = []
        self.fault: Exception | None = None

    def publish(self, version: int, *scenes: dict[str, Any]) -> CoursewarePin:
        """Publish a version with these scenes; return the pin of the first."""
        root = self._folder / str(version)
        plain = with_scenes("harbour", *scenes)
        lay_out_scenes(root, plain, number=version)
        classroom = lay_out(root, plain, number=version)
        frozen = freeze(classroom, hash_files(root / classroom.id), COURSEWARE_ID)
        self.bundles[version] = b"".join(frozen.blocks())
        self._registered[version] = Registered(
            courseware_id=COURSEWARE_ID, version=version, content_hash=frozen.content_hash
        )
        return CoursewarePin(
            courseware_id=COURSEWARE_ID,
            version=version,
            content_hash=frozen.content_hash,
            scene_id="p1",
        )

    def damage(self, version: int, at: int) -> None:
        """Change one bit of a stored bundle."""
        content = bytearray(self.bundles[version])
        content[at] ^= 1
        self.bundles[version] = bytes(content)

    def ask(self, courseware_id: str, version: int) -> Registered | None:
        """Answer as the registry."""
        self.asked.append(f"ask {courseware_id} {version}")
        if self.fault is not None:
            raise self.fault
        return self._registered.get(version)

    def download(self, registered: Registered, into: BinaryIO) -> None:
        """Give a bundle."""
        self.asked.append(f"download {registered.version}")
        into.write(self.bundles[registered.version])
