"""Rules of a scene's script: what an action refers to is there, in a scene of the right type."""

from collections.abc import Iterator
from typing import Final

import msgspec

from etude.classroom.actions import (
    Action,
    Discussion,
    Laser,
    PlayVideo,
    Spotlight,
    WbDelete,
    WbDrawChart,
    WbDrawCode,
    WbDrawLatex,
    WbDrawLine,
    WbDrawShape,
    WbDrawTable,
    WbDrawText,
    WbEditCode,
    WidgetAnnotation,
    WidgetHighlight,
    WidgetReveal,
    WidgetSetState,
)
from etude.classroom.chart_rules import chart_mistakes
from etude.classroom.errors import (
    ClassroomActionMisplacedError,
    ClassroomMistakeError,
    ClassroomNameUnknownError,
    ClassroomTwiceError,
)
from etude.classroom.free_json import json_mistakes
from etude.classroom.model import Classroom, Scene, SceneType, SlideContent
from etude.documents.reading import Path, spell

_DRAWING: Final = (
    WbDrawText,
    WbDrawShape,
    WbDrawChart,
    WbDrawLatex,
    WbDrawTable,
    WbDrawLine,
    WbDrawCode,
)
_ONLY_IN: Final[dict[type[Action], SceneType]] = {
    Spotlight: "slide",
    Laser: "slide",
    PlayVideo: "slide",
    WidgetHighlight: "interactive",
    WidgetAnnotation: "interactive",
    WidgetReveal: "interactive",
    WidgetSetState: "interactive",
}

_Mistakes = Iterator[ClassroomMistakeError]


def action_mistakes(classroom: Classroom) -> _Mistakes:
    """Yield the mistakes of every script; what is on the board stays there from scene to scene."""
    agents = {agent.id for agent in classroom.stage.generated_agent_configs}
    on_board = {one.id for board in classroom.stage.whiteboard for one in board.elements}
    for scene in classroom.in_order:
        at = next(i for i, one in enumerate(classroom.scenes) if one is scene)
        on_board |= {one.id for board in scene.whiteboards for one in board.elements}
        seen: set[str] = set()
        for index, action in enumerate(scene.actions):
            path: Path = ("scenes", at, "actions", index)
            if action.id in seen:
                yield ClassroomTwiceError(path=spell((*path, "id")), name=action.id)
            seen.add(action.id)
            yield from _action(action, scene, path, on_board)
            if isinstance(action, Discussion) and action.agent_id is not None:
                yield from _known(action.agent_id, agents, (*path, "agentId"))
            if isinstance(action, _DRAWING):
                on_board |= {action.id, action.element_id or action.id}


def _action(action: Action, scene: Scene, path: Path, on_board: set[str]) -> _Mistakes:
    wanted = _ONLY_IN.get(type(action))
    if wanted is not None and scene.type != wanted:
        yield ClassroomActionMisplacedError(
            path=spell(path), action=tag_of(type(action)), scene=scene.type
        )
    elif isinstance(action, Spotlight | Laser | PlayVideo):
        yield from _known(action.element_id, _elements(scene, action), (*path, "elementId"))
    elif isinstance(action, WbDelete | WbEditCode):
        yield from _known(action.element_id, on_board, (*path, "elementId"))
    elif isinstance(action, WbDrawChart):
        yield from chart_mistakes(action.data, (*path, "data"))
    elif isinstance(action, WidgetSetState):
        yield from json_mistakes(action.state, (*path, "state"))


def _elements(scene: Scene, action: Action) -> set[str]:
    if not isinstance(scene.content, SlideContent):
        return set()
    elements = scene.content.canvas.elements
    if isinstance(action, PlayVideo):
        return {one.id for one in elements if tag_of(type(one)) == "video"}
    return {one.id for one in elements}


def _known(name: str, known: set[str], path: Path) -> _Mistakes:
    if name not in known:
        yield ClassroomNameUnknownError(path=spell(path), name=name)


def tag_of(kind: type[msgspec.Struct]) -> str:
    """Return the word by which a part of a union is named in the document."""
    return str(kind.__struct_config__.tag)
