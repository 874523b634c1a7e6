"""What the types of a classroom cannot say: names that refer, answers that are options, forms.

Each rule yields its mistakes; nothing stops at the first one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from etude.classroom.action_rules import action_mistakes, tag_of
from etude.classroom.chart_rules import chart_mistakes, ragged
from etude.classroom.errors import (
    ClassroomActivityEmptyError,
    ClassroomLinkError,
    ClassroomMarkupError,
    ClassroomMistakeError,
    ClassroomNameUnknownError,
    ClassroomNoInstructorError,
    ClassroomNotSameError,
    ClassroomQuizAnswerError,
    ClassroomQuizOptionsError,
    ClassroomReferenceError,
    ClassroomTeachersError,
    ClassroomTwiceError,
)
from etude.classroom.free_json import json_mistakes
from etude.classroom.markup import first_unsafe, is_web_link
from etude.classroom.model import (
    Classroom,
    InteractiveContent,
    PblContent,
    PracticeContent,
    QuizContent,
    QuizQuestion,
    Scene,
    SlideContent,
    Stage,
)
from etude.classroom.projects import Project
from etude.classroom.references import fits, slots_of
from etude.classroom.slides import (
    ChartElement,
    Element,
    LatexElement,
    Link,
    ShapeElement,
    Slide,
    TableElement,
    TextElement,
    Whiteboard,
)
from etude.documents.reading import Path, spell

_LEAST_OPTIONS: Final = 2

_Mistakes = Iterator[ClassroomMistakeError]


def mistakes_of(classroom: Classroom) -> _Mistakes:
    """Yield every mistake of a classroom whose shape is right."""
    yield from _stage(classroom)
    slides = {
        scene.content.canvas.id
        for scene in classroom.scenes
        if isinstance(scene.content, SlideContent)
    }
    yield from _twice(("scenes",), "id", (scene.id for scene in classroom.scenes))
    for index, scene in enumerate(classroom.scenes):
        path: Path = ("scenes", index)
        yield from _scene(classroom, scene, path)
        for board, canvas in _canvases(scene, path):
            yield from _canvas(canvas, board, slides)
    for index, canvas in enumerate(classroom.stage.whiteboard):
        yield from _canvas(canvas, ("stage", "whiteboard", index), slides)
    yield from action_mistakes(classroom)
    for slot in slots_of(classroom):
        if not fits(slot):
            place = spell(slot.path)
            yield ClassroomReferenceError(
                path=place, reference=slot.reference[:100], kind=slot.kind
            )


def _stage(classroom: Classroom) -> _Mistakes:
    stage = classroom.stage
    if stage.id != classroom.id:
        yield ClassroomNotSameError(path="stage.id", wanted=classroom.id)
    yield from _roster(stage)
    yield from _twice(("stage", "whiteboard"), "id", (board.id for board in stage.whiteboard))


def _roster(stage: Stage) -> _Mistakes:
    path: Path = ("stage", "generatedAgentConfigs")
    agents = stage.generated_agent_configs
    teachers = sum(agent.role == "teacher" for agent in agents)
    if teachers != 1:
        yield ClassroomTeachersError(path=spell(path), teachers=teachers)
    yield from _twice(path, "id", (agent.id for agent in agents))
    known = {agent.id for agent in agents}
    for index, one in enumerate(stage.agent_ids):
        if one not in known:
            yield ClassroomNameUnknownError(path=spell(("stage", "agentIds", index)), name=one)


def _scene(classroom: Classroom, scene: Scene, path: Path) -> _Mistakes:
    if scene.stage_id != classroom.id:
        yield ClassroomNotSameError(path=spell((*path, "stageId")), wanted=classroom.id)
    kind = tag_of(type(scene.content))
    if scene.type != kind:
        yield ClassroomNotSameError(path=spell((*path, "type")), wanted=kind)
    yield from _twice((*path, "whiteboards"), "id", (board.id for board in scene.whiteboards))
    if scene.multi_agent is not None:
        known = {agent.id for agent in classroom.stage.generated_agent_configs}
        for index, one in enumerate(scene.multi_agent.agent_ids):
            if one not in known:
                place = spell((*path, "multiAgent", "agentIds", index))
                yield ClassroomNameUnknownError(path=place, name=one)
    yield from _content(scene, (*path, "content"))


def _content(scene: Scene, path: Path) -> _Mistakes:
    content = scene.content
    if isinstance(content, QuizContent):
        yield from _twice((*path, "questions"), "id", (one.id for one in content.questions))
        for index, question in enumerate(content.questions):
            yield from _question(question, (*path, "questions", index))
    elif isinstance(content, InteractiveContent):
        if not (content.html or "").strip() and not content.url:
            yield ClassroomActivityEmptyError(path=spell(path))
        if content.url and not is_web_link(content.url):
            yield ClassroomLinkError(path=spell((*path, "url")), target=content.url[:100])
        yield from json_mistakes(content.widget_config, (*path, "widgetConfig"))
    elif isinstance(content, PblContent):
        yield from _project(content.project_v2, (*path, "projectV2"))
    elif isinstance(content, PracticeContent):
        yield from json_mistakes(content.rubric, (*path, "rubric"))


def _question(question: QuizQuestion, path: Path) -> _Mistakes:
    choice = question.type != "short_answer"
    options = len(question.options)
    if (options < _LEAST_OPTIONS) if choice else options:
        yield ClassroomQuizOptionsError(path=spell((*path, "options")), options=options)
    values = [option.value for option in question.options]
    yield from _twice((*path, "options"), "value", values)
    if not choice:
        return
    answer = question.answer
    ungraded = question.has_answer is False and not answer
    counted = len(answer) == 1 if question.type == "single" else len(answer) >= 1
    if not ungraded and (
        not counted or not set(answer) <= set(values) or len(set(answer)) < len(answer)
    ):
        yield ClassroomQuizAnswerError(path=spell((*path, "answer")))


def _project(project: Project, path: Path) -> _Mistakes:
    if all(role.type != "instructor" for role in project.roles):
        yield ClassroomNoInstructorError(path=spell((*path, "roles")))
    yield from _twice((*path, "roles"), "id", (role.id for role in project.roles))
    yield from _twice((*path, "milestones"), "id", (one.id for one in project.milestones))
    for index, milestone in enumerate(project.milestones):
        at: Path = (*path, "milestones", index)
        yield from _twice((*at, "microtasks"), "id", (task.id for task in milestone.microtasks))
        yield from json_mistakes(list(milestone.documents), (*at, "documents"))
    for name in ("submissions", "evaluations", "threads", "engagement_events", "runtime_events"):
        yield from json_mistakes(list(getattr(project, name)), (*path, _camel(name)))
    for name in ("internal_assessment", "proficiency_assessment"):
        yield from json_mistakes(getattr(project, name), (*path, _camel(name)))


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(one.title() for one in others)


def _canvases(scene: Scene, path: Path) -> Iterator[tuple[Path, Whiteboard]]:
    if isinstance(scene.content, SlideContent):
        yield (*path, "content", "canvas"), scene.content.canvas
    for index, board in enumerate(scene.whiteboards):
        yield (*path, "whiteboards", index), board


def _canvas(canvas: Whiteboard, path: Path, slides: set[str]) -> _Mistakes:
    yield from _twice((*path, "elements"), "id", (element.id for element in canvas.elements))
    yield from json_mistakes(list(canvas.animations), (*path, "animations"))
    if isinstance(canvas, Slide):
        yield from json_mistakes(canvas.section_tag, (*path, "sectionTag"))
    for index, element in enumerate(canvas.elements):
        yield from _element(element, (*path, "elements", index), slides)


def _element(element: Element, path: Path, slides: set[str]) -> _Mistakes:
    if element.link is not None:
        yield from _link(element.link, (*path, "link", "target"), slides)
    for place, markup in _markup(element, path):
        if (found := first_unsafe(markup)) is not None:
            yield ClassroomMarkupError(path=spell(place), found=found)
    if isinstance(element, ChartElement):
        yield from chart_mistakes(element.data, (*path, "data"))
    elif isinstance(element, TableElement):
        for index, row in enumerate(element.data):
            if len(row) > len(element.col_widths):
                yield ragged((*path, "data", index), len(row), len(element.col_widths))


def _link(link: Link, path: Path, slides: set[str]) -> _Mistakes:
    if link.type == "web" and not is_web_link(link.target):
        yield ClassroomLinkError(path=spell(path), target=link.target[:100])
    if link.type == "slide" and link.target not in slides:
        yield ClassroomNameUnknownError(path=spell(path), name=link.target[:100])


def _markup(element: Element, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(element, TextElement):
        yield (*path, "content"), element.content
    elif isinstance(element, ShapeElement) and element.text is not None:
        yield (*path, "text", "content"), element.text.content
    elif isinstance(element, LatexElement) and element.html is not None:
        yield (*path, "html"), element.html
    elif isinstance(element, TableElement):
        for row, cells in enumerate(element.data):
            for column, cell in enumerate(cells):
                yield (*path, "data", row, column, "text"), cell.text


def _twice(path: Path, key: str, names: Iterable[str]) -> _Mistakes:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield ClassroomTwiceError(path=spell((*path, index, key)), name=name)
        seen.add(name)
