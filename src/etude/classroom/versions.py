"""The version line of the document: older ones are brought up on reading, later ones refused.

`0.2.0` is OpenMAIC's (its documents do not always say so). `0.3.0` is ours: files are referred to
by their place in the classroom's folder, a speech has an `audioRef` and no address, the roster is
whole, and there is the practice scene. A document is migrated before it is checked, step by step.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from etude.classroom.errors import ClassroomTooNewError, ClassroomVersionUnknownError
from etude.classroom.model import DSL_VERSION
from etude.classroom.presets import filled_roster
from etude.classroom.references import is_file, rewrite

OPENMAIC_VERSION: Final = "0.2.0"

_NUMBERS: Final = re.compile(r"^[0-9]{1,6}(\.[0-9]{1,6}){2}$(?!\n)")
_SERVED: Final = re.compile(
    r"^(?:https?://[^/]+)?/api/classroom-media/[^/]+/(media|audio)/([^/?#]+)"
)

Document = dict[str, Any]


def version_of(document: Document) -> str:
    """Return the version that a document says it is of; OpenMAIC's if it says none."""
    found = document.get("dslVersion", OPENMAIC_VERSION)
    return found if isinstance(found, str) else repr(found)[:40]


def migrate(document: Document) -> Document:
    """Bring a document up to the newest version, in place; one that is newest is not touched.

    Raises:
        ClassroomTooNewError: it is of a later version: only an upgrade helps.
        ClassroomVersionUnknownError: there never was such a version.
    """
    version = version_of(document)
    if _NUMBERS.match(version) is None:
        raise ClassroomVersionUnknownError(found=version[:40], known=DSL_VERSION)
    if _parts(version) > _parts(DSL_VERSION):
        raise ClassroomTooNewError(found=version, known=DSL_VERSION)
    while version != DSL_VERSION:
        step = _STEPS.get(version)
        if step is None:
            raise ClassroomVersionUnknownError(found=version, known=DSL_VERSION)
        version, change = step
        change(document)
        document["dslVersion"] = version
    return document


def served_file(reference: str) -> str | None:
    """Return `media/x.png` for OpenMAIC's serving address of that file; None for anything else."""
    match = _SERVED.match(reference)
    if match is None:
        return None
    file = f"{match.group(1)}/{unquote(match.group(2))}"
    return file if is_file(file) else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _from_openmaic(document: Document) -> None:
    """0.2.0 → 0.3.0."""
    for action in _actions(document):
        if action.get("type") == "speech":
            _name_sound(action)
    rewrite(document, lambda slot: served_file(slot.reference) or slot.reference)
    filled_roster(document)


def _name_sound(speech: Document) -> None:
    """A sound that is not beside the classroom is none: it is made again."""
    address = speech.pop("audioUrl", None)
    speech.pop("audioId", None)
    file = served_file(address) if isinstance(address, str) else None
    if file is not None:
        speech.setdefault("audioRef", file)


def _actions(document: Document) -> list[Document]:
    scenes = document.get("scenes")
    found = [
        action
        for scene in (scenes if isinstance(scenes, list) else [])
        if isinstance(scene, dict) and isinstance(scene.get("actions"), list)
        for action in scene["actions"]
    ]
    return [action for action in found if isinstance(action, dict)]


_STEPS: Final[Mapping[str, tuple[str, Callable[[Document], None]]]] = {
    OPENMAIC_VERSION: (DSL_VERSION, _from_openmaic),
}
"""By version: the next one, and how to get there."""
