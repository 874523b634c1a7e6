"""Evidence of what a classroom is, computed from the classroom itself.

What each hash covers: `docs/classroom.md §Evidence`.

    digest = output_digest(classroom, library.media_hashes(classroom.id))

`semantic_hash` changes with what a learner can read or hear and with nothing else;
`source_revision_hash` changes with everything but what learners did.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from etude.classroom.learner_text import markup, prose, scene_text, stage_text
from etude.classroom.markup import headings
from etude.classroom.model import (
    SCENE_TYPES,
    Classroom,
    InteractiveContent,
    PblContent,
    PracticeContent,
    QuizContent,
    Scene,
    SceneType,
    SlideContent,
)
from etude.classroom.plain import plain
from etude.classroom.projects import RUNTIME
from etude.classroom.slides import TextElement
from etude.events.canonical import canonical

DIGEST_VERSION: Final = 2
MAX_SCENES: Final = 60
MAX_KEY_CONTENT: Final = 600
MAX_CONCEPTS: Final = 80
MAX_CONCEPT: Final = 120
MAX_TITLE: Final = 120
MAX_BYTES: Final = 24 << 10
_SHRINKING: Final = (600, 300, 150, 80, 40, 0)


class _Evidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class StageDigest(_Evidence, frozen=True, kw_only=True):
    """The header."""

    title: str
    description: str
    language: str


class SceneDigest(_Evidence, frozen=True, kw_only=True):
    """A scene; `key_content` is the beginning of what it says."""

    title: str
    order: int
    type: SceneType
    key_content: str


class AssessmentDigest(_Evidence, frozen=True, kw_only=True):
    """A quiz: how many questions of which types, worth how much."""

    title: str
    questions: int
    types: tuple[str, ...]
    points: float


class ExperienceDigest(_Evidence, frozen=True, kw_only=True):
    """An activity."""

    title: str
    widget_type: str | None


class PracticeDigest(_Evidence, frozen=True, kw_only=True):
    """A lesson to practise."""

    title: str
    clips: int
    listen_ratio: float


class OutputDigest(_Evidence, frozen=True, kw_only=True):
    """What a classroom turned out to be, in at most 24 KiB."""

    digest_version: int
    classroom_id: str
    created_at: datetime
    stage: StageDigest
    scene_count: int
    counts: dict[SceneType, int]
    scenes: tuple[SceneDigest, ...]
    covered_concepts: tuple[str, ...]
    assessments: tuple[AssessmentDigest, ...]
    interactive_experiences: tuple[ExperienceDigest, ...]
    practices: tuple[PracticeDigest, ...]
    semantic_hash: str
    source_revision_hash: str


def output_digest(
    classroom: Classroom, media: Mapping[str, str], *, terms: Iterable[str] = ()
) -> OutputDigest:
    """Return the digest of a classroom.

    Args:
        classroom: as it is stored, not as it was planned.
        media: `media/x.png` → hex sha256, for every file in its folder.
        terms: the course's terminology; those that the classroom says count as covered.
    """
    stage = classroom.stage
    scenes = classroom.in_order
    whole = OutputDigest(
        digest_version=DIGEST_VERSION,
        classroom_id=classroom.id,
        created_at=classroom.created_at,
        stage=StageDigest(
            title=prose(stage.name),
            description=prose(stage.description)[:1000],
            language=prose(stage.language_directive or "")[:1000],
        ),
        scene_count=len(scenes),
        counts={kind: sum(scene.type == kind for scene in scenes) for kind in SCENE_TYPES},
        scenes=tuple(_scene_digest(scene) for scene in scenes[:MAX_SCENES]),
        covered_concepts=covered_concepts(classroom, terms),
        assessments=tuple(_assessments(scenes))[:MAX_SCENES],
        interactive_experiences=tuple(_experiences(scenes))[:MAX_SCENES],
        practices=tuple(_practices(scenes))[:MAX_SCENES],
        semantic_hash=semantic_hash(classroom),
        source_revision_hash=source_revision_hash(classroom, media),
    )
    return _shrunk(whole)


def semantic_hash(classroom: Classroom) -> str:
    """Return the hash of what a learner can read or hear."""
    return _hash(
        {
            "digestVersion": DIGEST_VERSION,
            "stage": stage_text(classroom.stage),
            "scenes": [scene_text(scene) for scene in classroom.in_order],
        }
    )


def source_revision_hash(classroom: Classroom, media: Mapping[str, str]) -> str:
    """Return the hash of everything that is stored, its files with it, but not what learners did.

    In which version of the document it is written is no part of it: an upgrade changes nothing.

    Args:
        classroom: as it is stored.
        media: `media/x.png` → hex sha256, for every file in its folder.
    """
    document = plain(_without_runtime(classroom))
    del document["dslVersion"]
    files = [[path, digest] for path, digest in sorted(media.items())]
    return _hash({"digestVersion": DIGEST_VERSION, "classroom": document, "files": files})


def covered_concepts(classroom: Classroom, terms: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what was covered, as first seen: points of outlines, headings, terms that are said."""
    found: dict[str, None] = {}
    for scene in classroom.in_order:
        for concept in (*scene.key_points, *_headings(scene)):
            if said := prose(concept)[:MAX_CONCEPT]:
                found.setdefault(said)
    said_anywhere = _all_text([scene_text(scene) for scene in classroom.in_order]).casefold()
    for term in terms:
        if (word := prose(term)) and word.casefold() in said_anywhere:
            found.setdefault(word[:MAX_CONCEPT])
    return tuple(found)[:MAX_CONCEPTS]


def _hash(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _without_runtime(classroom: Classroom) -> Classroom:
    scenes = tuple(
        msgspec.structs.replace(scene, content=_design(scene.content))
        if isinstance(scene.content, PblContent)
        else scene
        for scene in classroom.scenes
    )
    return msgspec.structs.replace(classroom, scenes=scenes)


def _design(content: PblContent) -> PblContent:
    project = content.project_v2
    empty = {name: None if "assessment" in name else () for name in RUNTIME}
    return PblContent(project_v2=msgspec.structs.replace(project, **empty))


def _scene_digest(scene: Scene) -> SceneDigest:
    said = scene_text(scene)
    return SceneDigest(
        title=said["title"][:MAX_TITLE],
        order=scene.order,
        type=scene.type,
        key_content=_all_text([said["content"], said["boards"], said["script"]])[:MAX_KEY_CONTENT],
    )


def _all_text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return " ".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield what is said; what kind of thing says it is not."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in {"type", "rubric"}:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _headings(scene: Scene) -> Iterator[str]:
    if not isinstance(scene.content, SlideContent):
        return
    yield scene.title
    for element in scene.content.canvas.elements:
        if isinstance(element, TextElement):
            if element.text_type in {"title", "subtitle", "itemTitle"}:
                yield markup(element.content)
            yield from headings(element.content)


def _assessments(scenes: Iterable[Scene]) -> Iterator[AssessmentDigest]:
    for scene in scenes:
        if isinstance(scene.content, QuizContent):
            questions = scene.content.questions
            yield AssessmentDigest(
                title=prose(scene.title)[:MAX_TITLE],
                questions=len(questions),
                types=tuple(sorted({question.type for question in questions})),
                points=sum(question.points for question in questions),
            )


def _experiences(scenes: Iterable[Scene]) -> Iterator[ExperienceDigest]:
    for scene in scenes:
        if isinstance(scene.content, InteractiveContent):
            kind = scene.content.widget_type
            yield ExperienceDigest(title=prose(scene.title)[:MAX_TITLE], widget_type=kind)


def _practices(scenes: Iterable[Scene]) -> Iterator[PracticeDigest]:
    for scene in scenes:
        if isinstance(scene.content, PracticeContent):
            yield PracticeDigest(
                title=prose(scene.title)[:MAX_TITLE],
                clips=len(scene.content.clips),
                listen_ratio=scene.content.listen_ratio,
            )


def _shrunk(whole: OutputDigest) -> OutputDigest:
    """Cut the content of scenes, then their list, then the concepts, until it is short enough."""
    for most in _SHRINKING:
        scenes = tuple(
            msgspec.structs.replace(scene, key_content=scene.key_content[:most])
            for scene in whole.scenes
        )
        shorter = msgspec.structs.replace(whole, scenes=scenes)
        if _fits(shorter):
            return shorter
    while not _fits(shorter):
        if shorter.scenes:
            shorter = msgspec.structs.replace(shorter, scenes=shorter.scenes[:-10])
        elif shorter.covered_concepts:
            concepts = shorter.covered_concepts[:-10]
            shorter = msgspec.structs.replace(shorter, covered_concepts=concepts)
        else:
            shorter = msgspec.structs.replace(
                shorter,
                assessments=shorter.assessments[:10],
                interactive_experiences=shorter.interactive_experiences[:10],
                practices=shorter.practices[:10],
            )
            break
    return shorter


def _fits(digest: OutputDigest) -> bool:
    return len(msgspec.json.encode(digest)) <= MAX_BYTES
