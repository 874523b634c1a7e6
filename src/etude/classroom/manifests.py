"""The manifest of a `.maic.zip` (format 1) and the document, each made of the other.

The format has no ids of scenes, stage and agents: agents are named by their place in the roster. It
has no place for the boards and modes of the stage.
"""

from datetime import datetime
from typing import Any, Final

from etude.classroom.versions import OPENMAIC_VERSION

FORMAT_VERSION: Final = 1
_STAGE: Final = {
    "name": "name",
    "description": "description",
    "language": "languageDirective",
    "style": "style",
    "videoManifest": "videoManifest",
    "createdAt": "createdAt",
    "updatedAt": "updatedAt",
}
"""Key in the manifest's stage → key in the document's."""

Document = dict[str, Any]


def document_of(manifest: Document, classroom_id: str, now: datetime) -> Document:
    """Return the plain document, of OpenMAIC's version, that a manifest says."""
    stage = manifest.get("stage")
    found = stage if isinstance(stage, dict) else {}
    now_ms = int(now.timestamp() * 1000)
    made: Document = {"createdAt": now_ms, "updatedAt": now_ms}
    made |= {key: found[name] for name, key in _STAGE.items() if found.get(name) is not None}
    made |= {key: value for key, value in found.items() if key not in _STAGE}
    agents = [dict(one) for one in _mappings(manifest.get("agents"))]
    for index, agent in enumerate(agents):
        agent["id"] = _agent_id(index)
    made |= {"id": classroom_id, "generatedAgentConfigs": agents}
    made["agentIds"] = [agent["id"] for agent in agents]
    return {
        "id": classroom_id,
        "dslVersion": OPENMAIC_VERSION,
        "createdAt": now.isoformat(),
        "stage": made,
        "scenes": [
            _scene_of(scene, index, classroom_id)
            for index, scene in enumerate(_mappings(manifest.get("scenes")))
        ],
    }


def manifest_of(document: Document, files: dict[str, Document], exported_at: datetime) -> Document:
    """Return the manifest of a plain document.

    Args:
        document: of OpenMAIC's version, its references being paths in the archive.
        files: path in the archive → what the index says of it.
        exported_at: when.
    """
    stage = document["stage"]
    places = {agent["id"]: at for at, agent in enumerate(stage["generatedAgentConfigs"])}
    return {
        "formatVersion": FORMAT_VERSION,
        "exportedAt": exported_at.isoformat(),
        "appVersion": "etude",
        "stage": {name: stage[key] for name, key in _STAGE.items() if key in stage},
        "agents": [
            {key: value for key, value in agent.items() if key != "id"}
            for agent in stage["generatedAgentConfigs"]
        ],
        "scenes": [_packed(scene, places) for scene in document["scenes"]],
        "mediaIndex": files,
    }


def _scene_of(packed: Document, index: int, classroom_id: str) -> Document:
    scene = {key: value for key, value in packed.items() if key not in {"actions", "multiAgent"}}
    scene |= {"id": f"scene-{index + 1}", "stageId": classroom_id}
    scene.setdefault("order", index + 1)
    scene["actions"] = [
        _action_of(action, at) for at, action in enumerate(_mappings(packed.get("actions")))
    ]
    talk = packed.get("multiAgent")
    if isinstance(talk, dict):
        indices = talk.get("agentIndices")
        scene["multiAgent"] = {
            **{key: value for key, value in talk.items() if key != "agentIndices"},
            "agentIds": [_agent_id(one) for one in indices] if isinstance(indices, list) else [],
        }
    return scene


def _action_of(packed: Document, at: int) -> Document:
    action = dict(packed)
    action.setdefault("id", f"action-{at + 1}")
    if "agentIndex" in action:
        action["agentId"] = _agent_id(action.pop("agentIndex"))
    return action


def _packed(scene: Document, places: dict[str, int]) -> Document:
    packed = {key: value for key, value in scene.items() if key not in {"id", "stageId"}}
    packed["actions"] = [_packed_action(action, places) for action in scene.get("actions", [])]
    talk = scene.get("multiAgent")
    if talk is not None:
        packed["multiAgent"] = {
            **{key: value for key, value in talk.items() if key != "agentIds"},
            "agentIndices": [places[one] for one in talk.get("agentIds", [])],
        }
    return packed


def _packed_action(action: Document, places: dict[str, int]) -> Document:
    packed = dict(action)
    if "agentId" in packed:
        packed["agentIndex"] = places[packed.pop("agentId")]
    return packed


def _agent_id(index: object) -> str:
    return f"agent-{index + 1}" if isinstance(index, int) else "agent-0"


def _mappings(value: object) -> list[Document]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
