"""What the teacher does in a scene: actions from a model's list, or usual ones without it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from etude.authoring.model.answers import json_of, mistake, refused
from etude.authoring.wording import is_chinese
from etude.classroom.actions import Action, Discussion, Laser, Speech, Spotlight
from etude.classroom.model import Agent, QuizContent

MOST: Final = 16
MOST_SAID: Final = 1000
_SHORTEST_HAN: Final = 2
_SHORTEST_LATIN: Final = 4


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What actions may be about.

    Attributes:
        elements: ids of what is on the slide; empty where there is none.
        agents: who may begin a discussion.
        hidden: what must not be said: the answers of a quiz.
    """

    scene: str
    elements: tuple[str, ...]
    agents: tuple[Agent, ...]
    hidden: tuple[str, ...] = ()


def read_actions(text: str, stage: Stage, prefix: str) -> tuple[Action, ...]:
    """Return the actions in an answer; what is wrong with one is mended, or the action goes.

    Raises:
        ModelAnswerRefusedError: nothing is said at all.
    """
    value = json_of(text)
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list)), [])
    made: list[Action] = []
    for one in value[:MOST]:
        if isinstance(one, dict):
            made += _action(one, stage, f"{prefix}-{len(made) + 1}")
    talks = [one for one in made if isinstance(one, Discussion)]
    others = [one for one in made if not isinstance(one, Discussion)]
    if not any(isinstance(one, Speech) for one in others):
        raise refused([mistake("/", "nothing_is_said")])
    return (*others, *talks[:1])


def _action(one: dict[str, Any], stage: Stage, name: str) -> Iterator[Action]:
    kind = one.get("type")
    if kind in {"text", "speech"}:
        said = one.get("text") or one.get("content")
        if isinstance(said, str) and said.strip() and not _leaks(said, stage):
            yield Speech(id=name, text=" ".join(said.split())[:MOST_SAID])
    elif kind in {"spotlight", "laser"} and stage.elements:
        wanted = one.get("elementId")
        element = wanted if wanted in stage.elements else stage.elements[0]
        made = Spotlight if kind == "spotlight" else Laser
        yield made(id=name, element_id=element)
    elif kind == "discussion" and stage.scene != "quiz":
        topic = one.get("topic")
        if isinstance(topic, str) and topic.strip():
            prompt = one.get("prompt")
            yield Discussion(
                id=name,
                topic=topic.strip()[:300],
                prompt=prompt[:2000] if isinstance(prompt, str) else None,
                agent_id=_student(one.get("agentId"), stage.agents),
            )


def _student(wanted: object, agents: Sequence[Agent]) -> str | None:
    students = [one.id for one in agents if one.role == "student"]
    if isinstance(wanted, str) and wanted in {one.id for one in agents}:
        return wanted
    return students[0] if students else None


def _leaks(said: str, stage: Stage) -> bool:
    folded = " ".join(said.casefold().split())
    return any(_says(folded, " ".join(one.casefold().split())) for one in stage.hidden)


def _says(said: str, answer: str) -> bool:
    """Whether words give an answer away; "no" in a sentence does not."""
    if is_chinese(answer):
        return len(answer) >= _SHORTEST_HAN and answer in said
    whole = rf"(?<!\w){re.escape(answer)}(?!\w)"
    return len(answer) >= _SHORTEST_LATIN and re.search(whole, said) is not None


def answers_of(content: object) -> tuple[str, ...]:
    """Return the texts of a quiz's right options."""
    if not isinstance(content, QuizContent):
        return ()
    return tuple(
        option.label
        for question in content.questions
        for option in question.options
        if option.value in question.answer
    )


def usual_actions(said: Sequence[str], prefix: str) -> tuple[Action, ...]:
    """Return actions that say lines, one after the other."""
    return tuple(
        Speech(id=f"{prefix}-{at}", text=" ".join(line.split())[:MOST_SAID])
        for at, line in enumerate(said, 1)
        if line.strip()
    )
