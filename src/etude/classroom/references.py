"""Where pictures, films and sounds are referred to, and which forms a reference may have.

A file of the classroom is `media/<name>` or `audio/<name>`, relative to the classroom's folder: no
address of a server is kept, so a classroom can move. While it is being made, a slot may hold an
address of the web, or the placeholder of something that is still to be made (`gen_img_…`); neither
can be published.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from etude.classroom.model import Classroom
from etude.classroom.plain import plain

SlotKind = Literal[
    "image", "background", "poster", "video", "sound", "speech", "clip", "prompt", "avatar"
]
Path = tuple[str | int, ...]

FILE_NAME: Final = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,150}\.[a-z0-9]{2,5}"
_FILE: Final = re.compile(rf"^(media|audio)/{FILE_NAME}$(?!\n)")
_REMOTE: Final = re.compile(r"^https?://[^\s<>\"'\\]{1,1990}$(?!\n)", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"^(gen_(img|vid)_[A-Za-z0-9_-]{1,100}|img_[0-9]{1,6})$(?!\n)")
_AVATAR: Final = re.compile(r"^(/avatars/[A-Za-z0-9._-]{1,100}|[^\s<>\"'\\/:]{0,16})$(?!\n)")
_ONLY_FILES: Final = frozenset({"speech", "clip"})


class Slot(msgspec.Struct, frozen=True):
    """A place that refers to a file."""

    path: Path
    kind: SlotKind
    reference: str

    @property
    def folder(self) -> str:
        """The folder that a file for this slot belongs in."""
        return "audio" if self.kind in {"speech", "clip", "sound"} else "media"


def is_file(reference: str) -> bool:
    """Whether a reference is a file of the classroom."""
    return _FILE.match(reference) is not None


def is_remote(reference: str) -> bool:
    """Whether a reference is an address of the web."""
    return _REMOTE.match(reference) is not None


def is_placeholder(reference: str) -> bool:
    """Whether a reference stands for something that is still to be made."""
    return _PLACEHOLDER.match(reference) is not None


def fits(slot: Slot) -> bool:
    """Whether the slot's reference has a form that it may have."""
    if slot.kind in _ONLY_FILES:
        return is_file(slot.reference) and slot.reference.startswith("audio/")
    if slot.kind == "avatar" and _AVATAR.match(slot.reference):
        return True
    return any(judge(slot.reference) for judge in (is_file, is_remote, is_placeholder))


def slots_of(classroom: Classroom) -> tuple[Slot, ...]:
    """Return every slot that refers to something, in the order in which files are frozen."""
    return tuple(slots(plain(classroom)))


def slots(document: Any) -> Iterator[Slot]:  # noqa: ANN401 - a document of JSON, perhaps not sound
    """Yield the slots of a document as plain JSON, sound or not.

    Boards of the stage first, then each scene (its slide, boards, speech, clips), the films that
    were asked for, and the faces.
    """
    stage = _mapping(document, "stage")
    yield from _boards(stage, "whiteboard", ("stage",))
    for at, scene in _items(document, "scenes"):
        path: Path = ("scenes", at)
        content = _mapping(scene, "content")
        yield from _canvas(_mapping(content, "canvas"), (*path, "content", "canvas"))
        yield from _boards(scene, "whiteboards", path)
        for index, action in _items(scene, "actions"):
            if action.get("type") == "speech":
                yield from _slot(action, "audioRef", (*path, "actions", index), "speech")
        for index, clip in _items(content, "clips"):
            yield from _slot(clip, "audioRef", (*path, "content", "clips", index), "clip")
    for reference in _mapping(stage, "videoManifest"):
        yield Slot(("stage", "videoManifest", reference), "prompt", reference)
    yield from _faces(document, stage)


def rewrite(document: Any, change: Callable[[Slot], str | None]) -> None:  # noqa: ANN401 - as `slots`
    """Change every reference of a plain document in place; None takes it away."""
    for slot in list(slots(document)):
        reference = change(slot)
        if reference == slot.reference:
            continue
        *way, last = slot.path
        holder = document
        for step in way:
            holder = holder[step]
        value = holder.pop(last)
        if reference is not None and slot.kind == "prompt":
            holder[reference] = copy.deepcopy(value)
        elif reference is not None:
            holder[last] = reference


def _faces(document: Any, stage: dict[str, Any]) -> Iterator[Slot]:  # noqa: ANN401 - as `slots`
    for index, agent in _items(stage, "generatedAgentConfigs"):
        yield from _slot(agent, "avatar", ("stage", "generatedAgentConfigs", index), "avatar")
    for at, scene in _items(document, "scenes"):
        scenario = _mapping(_mapping(_mapping(scene, "content"), "projectV2"), "scenario")
        for index, character in _items(scenario, "characters"):
            path: Path = ("scenes", at, "content", "projectV2", "scenario", "characters", index)
            yield from _slot(character, "avatar", path, "avatar")


def _boards(holder: dict[str, Any], key: str, path: Path) -> Iterator[Slot]:
    for index, board in _items(holder, key):
        yield from _canvas(board, (*path, key, index))


def _canvas(canvas: dict[str, Any], path: Path) -> Iterator[Slot]:
    background = _mapping(_mapping(canvas, "background"), "image")
    yield from _slot(background, "src", (*path, "background", "image"), "background")
    for index, element in _items(canvas, "elements"):
        at: Path = (*path, "elements", index)
        kind = element.get("type")
        if kind == "image":
            yield from _slot(element, "src", at, "image")
        elif kind == "shape":
            yield from _slot(element, "pattern", at, "image")
        elif kind == "audio":
            yield from _slot(element, "src", at, "sound")
        elif kind == "video":
            yield from _slot(element, "src", at, "video")
            yield from _slot(element, "mediaRef", at, "video")
            yield from _slot(element, "poster", at, "poster")


def _slot(holder: dict[str, Any], key: str, path: Path, kind: SlotKind) -> Iterator[Slot]:
    reference = holder.get(key)
    if isinstance(reference, str) and reference:
        yield Slot((*path, key), kind, reference)


def _mapping(holder: Any, key: str) -> dict[str, Any]:  # noqa: ANN401 - as `slots`
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def _items(holder: Any, key: str) -> Iterable[tuple[int, dict[str, Any]]]:  # noqa: ANN401 - as `slots`
    found = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(found, list | tuple):
        return [(index, one) for index, one in enumerate(found) if isinstance(one, dict)]
    return []
