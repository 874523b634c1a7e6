"""The lesson that a module carries for toys, phones and the page: sentences with their sound."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from etude.authoring.material import Fact, Language, Unit
from etude.authoring.outline.lesson import Drawn, Lesson, Sounds
from etude.authoring.wording import is_chinese, key
from etude.classroom.model import Clip, PracticeContent
from etude.rubric.library import RubricLibrary, rubric_json

LISTEN_RATIO: Final = 1.2
_MOST: Final = 30
_MOST_FACTS: Final = 8
_LONGEST_FACT_WORDS: Final = 14
_LONGEST_FACT_HAN: Final = 24


def to_repeat(unit: Unit) -> tuple[Fact, ...]:
    """Return what learners listen to and repeat: the sentences, else short facts and examples."""
    if unit.sentences:
        return unit.sentences[:_MOST]
    found: dict[str, Fact] = {}
    for term in unit.terms:
        if term.example:
            found.setdefault(key(term.example), Fact(text=term.example, ref=term.ref))
    for fact in unit.facts:
        if _is_short(fact.text):
            found.setdefault(key(fact.text), fact)
    return tuple(found.values())[:_MOST_FACTS]


def practice(lesson: Lesson, sounds: Sounds) -> Drawn | None:
    """Return the practice scene; None if no sentence has a sound."""
    kept = list(_clips(to_repeat(lesson.unit), sounds))
    if not kept:
        return None
    return Drawn(
        title=lesson.phrase("practice.title"),
        content=PracticeContent(
            app="follow_read",
            clips=tuple(clip for clip, _ in kept),
            listen_ratio=LISTEN_RATIO,
            rubric=rubric_for(lesson.syllabus.language),
        ),
        refs=tuple(fact.ref for _, fact in kept),
        says=(lesson.phrase("say.practice"),),
        points=tuple(clip.text for clip, _ in kept),
    )


def _clips(facts: tuple[Fact, ...], sounds: Sounds) -> Iterator[tuple[Clip, Fact]]:
    for fact in facts:
        sound = sounds.clip(fact)
        if sound is not None:
            clip = Clip(text=fact.text, audio_ref=sound.reference, duration_ms=sound.duration_ms)
            yield clip, fact


def rubric_for(language: Language) -> dict[str, Any]:
    """Return the rubric that reading aloud in a language is judged by, to be embedded."""
    name = "follow-read-zh" if language == "zh-CN" else "follow-read-en"
    rubric: dict[str, Any] = msgspec.json.decode(rubric_json(RubricLibrary.load().get(name)))
    return rubric


def _is_short(text: str) -> bool:
    if is_chinese(text):
        return len(text) <= _LONGEST_FACT_HAN
    return len(text.split()) <= _LONGEST_FACT_WORDS
