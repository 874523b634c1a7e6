"""What a model is told: prompts in English that ask for the course's language, data fenced in."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from etude.authoring.material import Language, Material
from etude.authoring.model.answers import fenced
from etude.authoring.model.searching import Source
from etude.llm.chat import Message

LANGUAGES: Final[dict[Language, str]] = {"en": "English", "zh-CN": "Simplified Chinese"}
_PLACE: Final = re.compile(r"@([A-Z]+)@")
_CUT: Final = "\n[… cut]"
NOTHING: Final = "(none)"


def messages(task: str, language: Language, **parts: str) -> tuple[Message, ...]:
    """Return the conversation that asks for one thing."""
    return (
        Message("system", render("system", LANGUAGE=LANGUAGES[language])),
        Message("user", render(task, **parts)),
    )


def render(name: str, **parts: str) -> str:
    """Return a prompt with its places filled in; what stands in a part is not looked at."""
    return _PLACE.sub(lambda found: parts[found[1]], _file(name)).strip()


def material_of(materials: Sequence[Material], most: int) -> str:
    """Return material as data, each file by its name, cut to `most` characters altogether."""
    if not materials:
        return NOTHING
    told: list[tuple[str, str]] = []
    left = most
    for one in sorted(materials, key=lambda each: len(each.text)):
        room = left // (len(materials) - len(told))
        text = one.text if len(one.text) <= room else one.text[:room] + _CUT
        told.append((one.name, text))
        left -= min(len(one.text), room)
    return "\n".join(fenced("MATERIAL", f"{name}\n{text}") for name, text in sorted(told))


def sources_of(sources: Sequence[Source]) -> str:
    """Return what a search found as data."""
    if not sources:
        return NOTHING
    return fenced("SEARCH", "\n".join(f"{one.title}: {one.says}" for one in sources))


def listed(lines: Sequence[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines) or NOTHING


@cache
def _file(name: str) -> str:
    return files("etude.authoring.model").joinpath("prompts", f"{name}.txt").read_text("utf-8")
