"""What the scenes of one module are made from, and the scene that each of them becomes."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol, TypeVar

import msgspec

from etude.authoring.framework import CourseFramework, ModuleSpec
from etude.authoring.material import Fact, Ref, Syllabus, Unit, outline_id
from etude.authoring.outline.drawing import PALETTES, Canvas, Palette
from etude.authoring.outline.truths import Truths, truths_of
from etude.authoring.wording import content_words, is_chinese
from etude.classroom.actions import Action, Speech
from etude.classroom.model import Content, Scene, SceneType
from etude.i18n import text

Thing = TypeVar("Thing")
_KEY_POINTS: Final = 20


class Sound(msgspec.Struct, frozen=True, kw_only=True):
    """A sound of the classroom."""

    reference: str
    duration_ms: int


class Sounds(Protocol):
    """Where the sounds of a classroom come from."""

    def speech(self, words: str) -> str | None:
        """Return the reference of spoken words; None: nothing is spoken in this course."""

    def clip(self, fact: Fact) -> Sound | None:
        """Return the sound of a sentence to repeat; None: it has none."""


class Silence:
    """No sound at all."""

    def speech(self, words: str) -> str | None:
        """Return None."""
        del words
        return None

    def clip(self, fact: Fact) -> Sound | None:
        """Return None."""
        del fact
        return None


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A scene before it has a number.

    Attributes:
        says: what the teacher says, in order.
        refs: the lines of the material that it stands on.
        points: what it teaches, for the digest.
    """

    title: str
    content: Content
    refs: tuple[Ref, ...]
    says: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One module of a course: its material and what was confirmed for it."""

    syllabus: Syllabus
    at: int
    spec: ModuleSpec
    framework: CourseFramework
    index: int
    """The module's place in the course; `at` is the unit's in the material."""
    known: tuple[str, ...] = ()
    """Words of the material that were found in the modules before, by their digests."""

    @property
    def unit(self) -> Unit:
        """What the module is made of."""
        return self.syllabus.units[self.at]

    @property
    def alone(self) -> bool:
        """Whether the lesson is no part of a course."""
        return len(self.framework.modules) == 1

    @property
    def palette(self) -> Palette:
        """The module's colours."""
        return PALETTES[self.index % len(PALETTES)]

    @property
    def terms(self) -> tuple[str, ...]:
        """Every word that the material explains."""
        return tuple(term.term for unit in self.syllabus.units for term in unit.terms)

    @property
    def truths(self) -> Truths:
        """What is right by the material, of which nothing may be called wrong."""
        return truths_of(self.syllabus)

    def phrase(self, name: str, **params: object) -> str:
        """Return a phrase in the language of the course."""
        return text(f"authoring.{name}", self.syllabus.language, **params)

    def list_of(self, parts: Iterable[str]) -> str:
        """Join words as the language does."""
        return self.phrase("list_and").join(parts)

    def canvas(self, name: str) -> Canvas:
        """Begin a slide of this module."""
        return Canvas(f"c-{name}", self.palette)

    def source(self, refs: Iterable[Ref], note: str = "") -> dict[str, Any]:
        """Return what is kept beside a slide: the lines it stands on, a note for the teacher."""
        told: dict[str, Any] = {"source": self.syllabus.place(refs)}
        return told | ({"note": self.phrase(f"note.{note}")} if note else {})

    def focus(self, fact: Fact) -> str:
        """Return the word that a sentence is about, as it stands there; empty if there is none."""
        if found := self.explained(fact):
            return found
        found_words = content_words(fact.text, self.terms)
        inside = [one for one in found_words if not fact.text.startswith(one)]
        return max(inside or found_words, key=len, default="")

    def explained(self, fact: Fact) -> str:
        """Return the word of a sentence that is emphasised or explained; empty if there is none."""
        for word in (*fact.marked, *self.terms):
            if found := _as_it_stands(word, fact.text):
                return found
        return ""


def _as_it_stands(word: str, sentence: str) -> str:
    """Return a word as a sentence has it, with its ending; empty if it is not there."""
    if not word:
        return ""
    pattern = re.escape(word) if is_chinese(word) else rf"(?<!\w){re.escape(word)}\w{{0,3}}(?!\w)"
    match = re.search(pattern, sentence, re.IGNORECASE)
    return match.group() if match else ""


def scene_of(drawn: Drawn, number: int, classroom_id: str, sounds: Sounds) -> Scene:
    """Give a scene its number, its place in the classroom and its sounds."""
    kind: SceneType = drawn.content.__struct_config__.tag  # type: ignore[assignment]  # the tag is the type
    actions: list[Action] = []
    for at, words in enumerate(drawn.says, 1):
        reference = sounds.speech(words)
        if reference is not None:
            actions.append(Speech(id=f"say-{number}-{at}", text=words, audio_ref=reference))
    return Scene(
        id=f"scene-{number:02d}",
        stage_id=classroom_id,
        type=kind,
        title=drawn.title[:300],
        order=number,
        content=drawn.content,
        actions=tuple(actions),
        outline_id=outline_id(drawn.refs),
        key_points=drawn.points[:_KEY_POINTS],
    )


def in_parts(things: Sequence[Thing], most: int) -> list[Sequence[Thing]]:
    """Return things in parts of about the same size, none larger than `most`."""
    if not things:
        return []
    count = -(-len(things) // most)
    edges = [round(len(things) * at / count) for at in range(count + 1)]
    return [things[low:high] for low, high in pairwise(edges)]


def mixed(things: Iterable[Thing], seed: str, name: Callable[[Thing], str] = str) -> list[Thing]:
    """Return things in an order that looks random and is always the same for the same seed."""

    def draw(thing: Thing) -> bytes:
        return hashlib.sha256(f"{seed}\0{name(thing)}".encode()).digest()

    return sorted(things, key=draw)
