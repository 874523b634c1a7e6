"""What a learner can read or hear in a classroom, as JSON values: the ground of its meaning.

No ids, times, addresses, geometry, colours, scripts or styles. Prose is NFC with white space
folded; code and formulas keep theirs. Names of agents and what they are told are no text of the
lesson. Everything is whole: nothing is cut.
"""

import hashlib
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

from etude.classroom.actions import (
    Action,
    Discussion,
    Speech,
    WbDrawChart,
    WbDrawCode,
    WbDrawLatex,
    WbDrawTable,
    WbDrawText,
    WbEditCode,
    WidgetAnnotation,
    WidgetHighlight,
    WidgetReveal,
    WidgetSetState,
)
from etude.classroom.markup import visible_text
from etude.classroom.model import (
    InteractiveContent,
    PblContent,
    PracticeContent,
    QuizContent,
    Scene,
    SlideContent,
    Stage,
)
from etude.classroom.plain import plain
from etude.classroom.projects import Milestone, Project
from etude.classroom.slides import (
    ChartData,
    ChartElement,
    CodeElement,
    Element,
    ImageElement,
    LatexElement,
    ShapeElement,
    TableElement,
    TextElement,
    Whiteboard,
)
from etude.events.canonical import canonical

Json = Any

_UNSAID: Final = frozenset(
    {
        *("background", "bottom", "camera", "color", "colors", "colour", "colours", "css", "fill"),
        *("font", "fontsize", "height", "href", "html", "icon", "id", "left", "lighting"),
        *("opacity", "position", "right", "rotate", "rotation", "script", "src", "stroke", "style"),
        *("theme", "timestamp", "top", "url", "width", "x", "y", "z"),
    }
)
"""Keys of a widget's configuration that say how it looks or what it is called inside."""
_NAMES_IDS: Final = frozenset(
    ["from", "to", "source", "target", "parent", "parentid", "children", "revealorder", "targetid"]
)


def stage_text(stage: Stage) -> Json:
    """Return what the header says, and its boards."""
    return {
        "title": prose(stage.name),
        "description": prose(stage.description),
        "language": prose(stage.language_directive or ""),
        "boards": [board_text(board) for board in stage.whiteboard],
    }


def scene_text(scene: Scene) -> Json:
    """Return what a scene says."""
    return {
        "type": scene.type,
        "title": prose(scene.title),
        "content": content_text(scene),
        "boards": [board_text(board) for board in scene.whiteboards],
        "script": [said for action in scene.actions if (said := action_text(action)) is not None],
    }


def content_text(scene: Scene) -> Json:
    """Return what a scene's content says, by its type."""
    content = scene.content
    if isinstance(content, SlideContent):
        return board_text(content.canvas)
    if isinstance(content, QuizContent):
        return quiz_text(content)
    if isinstance(content, InteractiveContent):
        return activity_text(content)
    if isinstance(content, PblContent):
        return project_text(content.project_v2)
    return practice_text(content)


def board_text(board: Whiteboard) -> Json:
    """Return what a slide or board says, in painter's order."""
    return [said for element in board.elements if (said := element_text(element)) is not None]


def element_text(element: Element) -> Json:  # noqa: PLR0911 - one line a kind
    """Return what an element says; None if it says nothing."""
    if isinstance(element, TextElement):
        return markup(element.content) or None
    if isinstance(element, ShapeElement):
        return (markup(element.text.content) or None) if element.text else None
    if isinstance(element, TableElement):
        return [[markup(cell.text) for cell in row] for row in element.data]
    if isinstance(element, ChartElement):
        return chart_text(element.data)
    if isinstance(element, LatexElement):
        return verbatim(element.latex)
    if isinstance(element, CodeElement):
        lines = [verbatim(line.content) for line in element.lines]
        return {"type": element.language, "code": lines}
    if isinstance(element, ImageElement):
        return prose(element.alt) if element.alt else None
    return None


def chart_text(data: ChartData) -> Json:
    """Return what a chart says: its words and its numbers."""
    return {
        "labels": [prose(label) for label in data.labels],
        "legends": [prose(legend) for legend in data.legends],
        "series": [list(numbers) for numbers in data.series],
    }


def quiz_text(content: QuizContent) -> Json:
    """Return what a quiz asks, offers and explains."""
    return [
        {
            "type": question.type,
            "question": prose(question.question),
            "options": [[prose(one.value), prose(one.label)] for one in question.options],
            "answer": [prose(one) for one in question.answer],
            "analysis": prose(question.analysis or ""),
            "judged": prose(question.comment_prompt or ""),
            "points": question.points,
        }
        for question in content.questions
    ]


def activity_text(content: InteractiveContent) -> Json:
    """Return what an activity says: the words of its page, and of its configuration."""
    return {
        "type": content.widget_type,
        "page": markup(content.html or ""),
        "config": spoken(content.widget_config or {}),
    }


def practice_text(content: PracticeContent) -> Json:
    """Return what is practised: texts, ratio, the embedded rubric's hash (`docs/rules.md 34`)."""
    return {
        "type": content.app,
        "texts": [prose(clip.text) for clip in content.clips],
        "ratio": content.listen_ratio,
        "rubric": None if content.rubric is None else rubric_hash(content.rubric),
    }


def rubric_hash(rubric: dict[str, Any]) -> str:
    """Return the hash of an embedded rubric."""
    return f"sha256:{hashlib.sha256(canonical(normal(rubric))).hexdigest()}"


def project_text(project: Project) -> Json:
    """Return what a project says to its learners; what was done in it is no part of it."""
    scenario = project.scenario
    return {
        "texts": _prose_of(project, "title description learning_objective gains tags"),
        "scenario": None
        if scenario is None
        else {
            "texts": _prose_of(scenario, "setting goal rules learner_role"),
            "characters": [
                _prose_of(one, "name persona situation boundaries opening_line")
                for one in scenario.characters
            ],
        },
        "roles": [
            {"type": role.type, "texts": _prose_of(role, "name description")}
            for role in project.roles
        ],
        "milestones": [
            _milestone_text(one) for one in sorted(project.milestones, key=lambda one: one.order)
        ],
    }


def _milestone_text(milestone: Milestone) -> Json:
    check = milestone.synthesis_check
    return {
        "texts": _prose_of(milestone, "title description briefing completion_criteria debrief"),
        "type": milestone.scenario_stage,
        "check": prose(check.core_concept) if check else "",
        "documents": [spoken(document) for document in milestone.documents],
        "tasks": [
            _prose_of(task, "title description hints completion_criteria success_when skill_focus")
            for task in sorted(milestone.microtasks, key=lambda task: task.order)
        ],
    }


def action_text(action: Action) -> Json:
    """Return what an action says or writes; None if it says nothing."""
    if isinstance(action, Speech):
        return {"speech": prose(action.text)}
    if isinstance(action, Discussion):
        return {"discussion": [prose(action.topic), prose(action.prompt or "")]}
    if isinstance(action, WidgetSetState):
        return {"state": spoken(action.state), "said": prose(action.content or "")}
    if isinstance(action, WidgetHighlight | WidgetAnnotation | WidgetReveal):
        return {"widget": prose(action.content)} if action.content else None
    return _written(action)


def _written(action: Action) -> Json:  # noqa: PLR0911 - one line a kind
    """Return what an action writes on the board."""
    if isinstance(action, WbDrawText):
        return {"board": verbatim(action.content)}
    if isinstance(action, WbDrawLatex):
        return {"formula": verbatim(action.latex)}
    if isinstance(action, WbDrawTable):
        return {"table": [[prose(cell) for cell in row] for row in action.data]}
    if isinstance(action, WbDrawChart):
        return {"chart": chart_text(action.data)}
    if isinstance(action, WbDrawCode):
        return {"type": action.language, "code": verbatim(action.code)}
    if isinstance(action, WbEditCode):
        return {"type": action.operation, "edit": verbatim(action.content or "")}
    return None


def spoken(config: Json) -> Json:
    """Return a configuration without what only says how it looks; ids become their place."""
    places: dict[str, str] = {}
    for one in _walk(config):
        if isinstance(one, dict) and isinstance(one.get("id"), str):
            places.setdefault(one["id"], f"#{len(places)}")
    return _spoken(config, places)


def _spoken(value: Json, places: dict[str, str]) -> Json:
    if isinstance(value, dict):
        return {
            normal(key): _placed(inner, places)
            if key.lower() in _NAMES_IDS
            else _spoken(inner, places)
            for key, inner in value.items()
            if key.lower() not in _UNSAID
        }
    if isinstance(value, list | tuple):
        return [_spoken(inner, places) for inner in value]
    return prose(value) if isinstance(value, str) else value


def _placed(value: Json, places: dict[str, str]) -> Json:
    """Return a reference by the place of what it refers to: another id is no other meaning."""
    if isinstance(value, str):
        return places.get(value, prose(value))
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return [_placed(one, places) for one in value]
    return _spoken(value, places)


def _walk(value: Json) -> Iterator[Json]:
    yield value
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        for one in inner:
            yield from _walk(one)


def _prose_of(part: Any, names: str) -> Json:  # noqa: ANN401 - a part of a project
    return [
        [prose(one) for one in value] if isinstance(value, tuple) else prose(value or "")
        for value in (getattr(part, name) for name in names.split())
    ]


def markup(source: str) -> str:
    """Return the words of HTML, NFC, white space folded."""
    return prose(visible_text(source))


def prose(words: str) -> str:
    """Return words as NFC with white space folded."""
    return " ".join(unicodedata.normalize("NFC", words).split())


def verbatim(words: str) -> str:
    """Return words as NFC; white space means something in code."""
    return unicodedata.normalize("NFC", words)


def normal(value: Json) -> Json:
    """Return JSON with every text, also of keys, as NFC."""
    if isinstance(value, str):
        return verbatim(value)
    if isinstance(value, dict):
        return {verbatim(key): normal(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [normal(inner) for inner in value]
    return plain(value)
