"""The agents that OpenMAIC ships: their ids mean nothing elsewhere, so they are written out."""

from typing import Any, Final

from etude.classroom.model import Role
from etude.i18n import text

_COLOURS: Final = ("#2b6cb0", "#2f855a", "#c05621", "#6b46c1", "#b83280", "#285e61")
_PRIORITIES: Final[dict[Role, int]] = {"teacher": 10, "assistant": 7, "student": 5}
_DEFAULT: Final = ("default-1", "default-3")


def filled_roster(document: dict[str, Any]) -> bool:
    """Write the roster of a document out if it has none; return whether it was."""
    stage = document.get("stage")
    if not isinstance(stage, dict) or stage.get("generatedAgentConfigs"):
        return False
    named = stage.get("agentIds")
    ids = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    roles = [role_of(one) for one in ids]
    if roles.count("teacher") != 1 or len(ids) < len(_DEFAULT) or len(set(ids)) < len(ids):
        ids = list(_DEFAULT)
    stage["generatedAgentConfigs"] = [
        preset(one, at, locale_of(stage)) for at, one in enumerate(ids)
    ]
    stage["agentIds"] = ids
    return True


def role_of(preset_id: str) -> Role:
    """Return the role of a preset."""
    if preset_id == "default-1":
        return "teacher"
    return "assistant" if preset_id == "default-2" else "student"


def preset(preset_id: str, at: int, locale: str) -> dict[str, Any]:
    """Return the agent that a preset means, as the document has it."""
    role = role_of(preset_id)
    name = text(f"classroom.agent.{role}", locale)
    return {
        "id": preset_id,
        "name": name,
        "role": role,
        "persona": "",
        "avatar": f"/avatars/{role}.png",
        "color": _COLOURS[at % len(_COLOURS)],
        "priority": _PRIORITIES[role],
    }


def locale_of(stage: dict[str, Any]) -> str:
    """Return the language to fill things in with: Chinese if the title has Chinese characters."""
    name = stage.get("name")
    chinese = isinstance(name, str) and any("一" <= one <= "鿿" for one in name)
    return "zh-CN" if chinese else "en"
