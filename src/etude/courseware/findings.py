"""What a classroom must have to be frozen, and a frozen one to be complete: one list for both."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from etude.classroom.actions import Discussion, Speech
from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.model import (
    Classroom,
    InteractiveContent,
    PblContent,
    PracticeContent,
    QuizContent,
    Scene,
)
from etude.classroom.projects import is_template
from etude.classroom.references import Slot, is_file, slots_of
from etude.courseware.errors import (
    AgentRosterMissingError,
    FindingError,
    InteractiveAssetUnresolvedError,
    InteractiveHtmlMissingError,
    InteractiveUnsafeError,
    MediaUnresolvedError,
    PblRuntimePresentError,
    PracticeAudioMissingError,
    PracticeRubricMissingError,
    SpeechAudioMissingError,
    SpeechAudioUrlLeftError,
)
from etude.courseware.manifest import Check, Completeness, LivePart
from etude.courseware.media_kinds import is_of_kind
from etude.documents.reading import Path, spell
from etude.errors import EtudeError
from etude.rubric.loading import rubric_from

Beginning = Callable[[str], bytes | None]
"""Returns the first bytes of a file of the classroom; None if there is none, or it is empty."""

CODES: Final = (
    "AGENT_ROSTER_MISSING",
    "INTERACTIVE_HTML_MISSING",
    "INTERACTIVE_ASSET_UNRESOLVED",
    "INTERACTIVE_UNSAFE",
    "INTERACTIVE_TOO_LARGE",
    "MEDIA_UNRESOLVED",
    "SPEECH_AUDIO_MISSING",
    "SPEECH_AUDIO_URL_LEFT",
    "PRACTICE_AUDIO_MISSING",
    "PRACTICE_RUBRIC_MISSING",
    "PBL_RUNTIME_PRESENT",
)
_LEAST_AGENTS: Final = 2
_MOST_CHECKS: Final = 1_000


def findings(classroom: Classroom, beginning: Beginning) -> Iterator[FindingError]:
    """Yield what is missing or wrong in a classroom that is to be frozen, or is.

    Pages of activities are not looked at here: `freezing` and `stored_findings` do.
    """
    yield from _roster(classroom)
    if not any(_has_page(scene) for scene in classroom.scenes):
        yield InteractiveHtmlMissingError(path="scenes")
    for index, scene in enumerate(classroom.scenes):
        yield from _scene(scene, ("scenes", index))
    for slot in slots_of(classroom):
        if not _is_resolved(slot, beginning):
            yield MediaUnresolvedError(path=spell(slot.path), reference=slot.reference[:100])


def unreadable_findings(error: ClassroomInvalidError) -> Iterator[FindingError]:
    """Yield what mistakes of a classroom that cannot be read mean for freezing it."""
    for part in error.parts:
        path = str(part.params.get("path", ""))
        if part.params.get("key") == "audioUrl" or path.endswith("audioUrl"):
            yield SpeechAudioUrlLeftError(path=path)
        elif path.startswith("stage.generatedAgentConfigs") or part.code == "CLASSROOM_TEACHERS":
            yield AgentRosterMissingError(path=path)
        elif part.code == "CLASSROOM_ACTIVITY_EMPTY":
            yield InteractiveHtmlMissingError(path=path)


def page_finding(kind: str, found: str, path: Path) -> FindingError:
    """Return what was found in a page of an activity as a finding."""
    error = InteractiveAssetUnresolvedError if kind == "asset" else InteractiveUnsafeError
    return error(path=spell(path), found=found)


def completeness(found: Iterable[FindingError]) -> Completeness:
    """Return what was checked, and where something is missing."""
    wrong = list(found)
    codes = {one.code for one in wrong}
    checks = [Check(code=code, ok=True) for code in CODES if code not in codes]
    checks += [Check(code=one.code, ok=False, path=str(one.params["path"])) for one in wrong]
    return Completeness(complete=not wrong, checks=tuple(checks[:_MOST_CHECKS]))


def live_parts(classroom: Classroom) -> tuple[LivePart, ...]:
    """Return the parts of a classroom that need a language model to be whole."""
    found: set[LivePart] = set()
    for scene in classroom.scenes:
        if any(isinstance(action, Discussion) for action in scene.actions):
            found.add("discussion")
        if isinstance(scene.content, PblContent):
            found.add("pbl")
        if isinstance(scene.content, QuizContent) and any(
            question.type == "short_answer" for question in scene.content.questions
        ):
            found.add("short_answer")
    return tuple(sorted(found))


def _roster(classroom: Classroom) -> Iterator[FindingError]:
    agents = classroom.stage.generated_agent_configs
    if sum(agent.role == "teacher" for agent in agents) != 1 or len(agents) < _LEAST_AGENTS:
        yield AgentRosterMissingError(path="stage.generatedAgentConfigs")


def _has_page(scene: Scene) -> bool:
    return isinstance(scene.content, InteractiveContent) and bool(
        (scene.content.html or "").strip()
    )


def _scene(scene: Scene, path: Path) -> Iterator[FindingError]:
    for index, action in enumerate(scene.actions):
        if isinstance(action, Speech) and (not action.audio_ref or action.audio_invalidated):
            yield SpeechAudioMissingError(path=spell((*path, "actions", index)))
    content, inside = scene.content, (*path, "content")
    if isinstance(content, InteractiveContent) and not _has_page(scene):
        yield InteractiveAssetUnresolvedError(path=spell((*inside, "html")), found=content.url[:80])
    elif isinstance(content, PblContent) and not is_template(content.project_v2):
        yield PblRuntimePresentError(path=spell((*inside, "projectV2")))
    elif isinstance(content, PracticeContent):
        yield from _practice(content, inside)


def _practice(content: PracticeContent, path: Path) -> Iterator[FindingError]:
    for index, clip in enumerate(content.clips):
        if not clip.audio_ref or not clip.duration_ms:
            yield PracticeAudioMissingError(path=spell((*path, "clips", index)))
    reason = _rubric_problem(msgspec.json.encode(content.rubric or {}).decode())
    if reason is not None:
        yield PracticeRubricMissingError(path=spell((*path, "rubric")), reason=reason)


@lru_cache(maxsize=32)
def _rubric_problem(text: str) -> str | None:
    """Return the code of what is wrong with a rubric; modules of a course share a few of them."""
    try:
        rubric_from(msgspec.json.decode(text), "rubric")
    except EtudeError as error:
        return error.code
    return None


def _is_resolved(slot: Slot, beginning: Beginning) -> bool:
    if slot.kind == "avatar" and not is_file(slot.reference):
        return "://" not in slot.reference  # a face of the player's own, or an emoji
    if not is_file(slot.reference):
        return False
    found = beginning(slot.reference)
    return bool(found) and is_of_kind(slot.reference, found or b"", slot.kind)
