"""Finishing a lesson that a model wrote: sounds, the whole classroom, every gate of publishing."""

import threading
from collections.abc import Iterator, Sequence

import msgspec

from etude.authoring.authors import Voice
from etude.authoring.draft_sounds import DraftSounds, Recording, Speak
from etude.authoring.material import Fact, Language, Ref
from etude.authoring.model.briefs import Brief
from etude.authoring.model.errors import ModelAnswerRefusedError
from etude.authoring.model.writing import Written
from etude.authoring.outline.module import classroom_of
from etude.authoring.outline.practice import LISTEN_RATIO, rubric_for
from etude.authoring.wording import key, language_of
from etude.classroom.actions import Action, Speech
from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.library import Draft
from etude.classroom.loading import classroom_from
from etude.classroom.model import Classroom, Clip, PracticeContent, Scene, SceneType
from etude.classroom.plain import plain
from etude.courseware.errors import FreezeRefusedError
from etude.courseware.freezing import completed
from etude.courseware.source_files import hash_files


def finish(
    brief: Brief,
    written: Sequence[Written],
    draft: Draft,
    recording: Recording,
    voice: Voice | None,
    stop: threading.Event,
) -> Classroom:
    """Return the classroom, with its sounds in the draft; blocks.

    Raises:
        ModelAnswerRefusedError: it breaks a rule of classrooms or a gate of publishing.
    """
    speak = None if voice is None else _speaker(voice, brief.language)
    sounds = DraftSounds(recording, brief.sounds, draft, speak, stop)
    scenes = tuple(_scenes(brief, written, sounds))
    made = classroom_of(
        brief.lesson,
        scenes,
        brief.classroom_id,
        brief.created_at,
        task_engine_mode=brief.task_engine_mode,
    )
    return _gated(made, draft)


def _speaker(voice: Voice, language: Language) -> Speak:
    """Return what speaks each text in its own language: a course may teach another one's words."""

    def speak(words: str) -> tuple[bytes, int]:
        own = language_of(words)
        return voice.speak(words, own if voice.knows(own) else language)

    return speak


def _gated(made: Classroom, draft: Draft) -> Classroom:
    try:
        checked = classroom_from(plain(made))
        completed(checked, hash_files(draft.folder))
    except (ClassroomInvalidError, FreezeRefusedError) as error:
        raise ModelAnswerRefusedError(
            *error.parts, stage="classroom", mistakes=len(error.parts)
        ) from error
    return checked


def _scenes(brief: Brief, written: Sequence[Written], sounds: DraftSounds) -> Iterator[Scene]:
    number = 0
    for one in written:
        content = one.content or _practice(brief, one, sounds)
        if content is None:
            continue  # no sentence has a sound
        number += 1
        kind: SceneType = content.__struct_config__.tag  # type: ignore[assignment]  # the tag is the type
        yield Scene(
            id=f"scene-{number:02d}",
            stage_id=brief.classroom_id,
            type=kind,
            title=one.title,
            order=number,
            content=content,
            actions=tuple(_spoken(one.actions, sounds)),
            outline_id=f"m{brief.lesson.index}.s{number}",
            key_points=one.points[:20],
        )


def _spoken(actions: Sequence[Action], sounds: DraftSounds) -> Iterator[Action]:
    for one in actions:
        if not isinstance(one, Speech):
            yield one
        elif (reference := sounds.speech(one.text)) is not None:
            yield msgspec.structs.replace(one, audio_ref=reference)


def _practice(brief: Brief, one: Written, sounds: DraftSounds) -> PracticeContent | None:
    clips = []
    for sentence in one.sentences:
        fact = brief.recorded.get(key(sentence)) or Fact(text=sentence, ref=Ref(0, 1))
        sound = sounds.clip(fact)
        if sound is not None:
            clips.append(
                Clip(text=fact.text, audio_ref=sound.reference, duration_ms=sound.duration_ms)
            )
    if not clips:
        return None
    return PracticeContent(
        app="follow_read",
        clips=tuple(clips),
        listen_ratio=LISTEN_RATIO,
        rubric=rubric_for(brief.language),
    )
