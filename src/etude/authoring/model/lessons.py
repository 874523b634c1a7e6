"""Lessons on their own that a model writes: their outline as a person reads and edits it."""

from collections.abc import Iterator, Sequence
from typing import Final

from etude.authoring.classrooms.records import LessonOutline, SceneOutline
from etude.authoring.errors import LessonOutlineInvalidError, LessonOutlineMistakeError
from etude.authoring.model.shapes import OutlinedScene, OutlinedType, Outlines, QuizPlan
from etude.authoring.wording import key

_MOST_SCENES: Final = 20


def outline_from(made: Outlines) -> LessonOutline:
    """Return what a model planned as an outline that can be edited."""
    return LessonOutline(
        title=made.title or made.scenes[0].title,
        language_directive=made.language_directive or "",
        scenes=tuple(
            SceneOutline(
                id=f"s{number:02d}",
                type=one.type,
                title=one.title,
                description=_described(one),
                key_points=one.key_points,
            )
            for number, one in enumerate(made.scenes, 1)
        ),
    )


def _described(one: OutlinedScene) -> str:
    """Return everything that is planned for a scene in words, for whoever edits it."""
    parts = [one.description]
    if one.activity and one.activity != one.description:
        parts.append(one.activity)
    return "\n".join(parts)[:1000]


def planned_from(outline: LessonOutline) -> tuple[OutlinedScene, ...]:
    """Return an outline, edited or not, as what scenes are written by."""
    return tuple(
        OutlinedScene(
            type=one.type,
            title=one.title[:120],
            description=one.description or one.title,
            key_points=tuple(point[:300] for point in one.key_points[:8]) or (one.title[:300],),
            quiz=QuizPlan(types=("single", "multiple", "short_answer"))
            if one.type == "quiz"
            else None,
            activity=one.description or None if one.type == "interactive" else None,
        )
        for one in outline.scenes
    )


def checked_edit(edited: LessonOutline, types: Sequence[OutlinedType]) -> LessonOutline:
    """Return an outline as a person edited it: scenes may be changed, added and left out.

    Raises:
        LessonOutlineInvalidError: its parts are the mistakes.
    """
    found = list(_mistakes(edited, types))
    if found:
        raise LessonOutlineInvalidError(*found, mistakes=len(found))
    return edited


def _mistakes(
    edited: LessonOutline, types: Sequence[OutlinedType]
) -> Iterator[LessonOutlineMistakeError]:
    ids: set[str] = set()
    titles: set[str] = set()
    for at, one in enumerate(edited.scenes):
        if one.id in ids:
            yield _mistake(f"scenes[{at}].id", "twice", one.id)
        if key(one.title) in titles:
            yield _mistake(f"scenes[{at}].title", "twice", one.title)
        if one.type not in types:
            yield _mistake(f"scenes[{at}].type", "no_sound", one.type)
        ids.add(one.id)
        titles.add(key(one.title))
    if len(edited.scenes) > _MOST_SCENES:
        yield _mistake("scenes", "too_many", str(_MOST_SCENES))
    if not any(one.type == "interactive" for one in edited.scenes):
        yield _mistake("scenes", "no_activity")


def _mistake(path: str, rule: str, detail: str = "") -> LessonOutlineMistakeError:
    return LessonOutlineMistakeError(path=path, rule=rule, detail=detail[:200])
