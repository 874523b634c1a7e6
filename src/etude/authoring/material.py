"""What a course is made of, as it was read: units with terms, facts, steps and sentences.

Everything keeps the place it was read from, so that each slide can say which line it stands on.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

Language = Literal["en", "zh-CN"]

LEAST_UNITS: Final = 4
MOST_UNITS: Final = 15
MOST_LINES: Final = 1_500
MOST_IN_A_THING: Final = 1_000
"""Characters of one sentence, word or meaning: what a clip holds, and more than a slide does."""


class Ref(msgspec.Struct, frozen=True, order=True):
    """A line of the material: which file (from 0), which line (from 1)."""

    file: int
    line: int


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the material: its name without folder, and its text."""

    name: str
    text: str


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence.

    Attributes:
        text: without markup.
        ref: where it stands.
        marked: the words that its author emphasised.
        gloss: what it means in another language, if that was given.
        sound: the name of its recording in the material.
    """

    text: str
    ref: Ref
    marked: tuple[str, ...] = ()
    gloss: str = ""
    sound: str | None = None


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A word with its meaning, and perhaps a sentence that uses it."""

    term: str
    meaning: str
    ref: Ref
    example: str = ""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Some facts, or some steps in their order, under a heading."""

    title: str
    facts: tuple[Fact, ...]


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What one module is made of.

    Attributes:
        sections: what there is to know.
        steps: sequences, whose order matters.
        sentences: to be listened to and repeated.
        questions: to talk about.
        tasks: of the project.
    """

    title: str
    ref: Ref
    goals: tuple[Fact, ...] = ()
    terms: tuple[Term, ...] = ()
    sections: tuple[Section, ...] = ()
    steps: tuple[Section, ...] = ()
    sentences: tuple[Fact, ...] = ()
    questions: tuple[Fact, ...] = ()
    tasks: tuple[Fact, ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact of every section."""
        return tuple(fact for section in self.sections for fact in section.facts)

    @property
    def size(self) -> int:
        """How many things there are to learn."""
        steps = sum(len(one.facts) for one in self.steps)
        return len(self.terms) + len(self.facts) + steps + len(self.sentences)

    def things(self) -> Iterator[str]:
        """Yield the words, facts, steps and sentences that there are to learn."""
        yield from (term.term for term in self.terms)
        yield from (fact.text for one in self.steps for fact in one.facts)
        yield from (fact.text for fact in (*self.facts, *self.sentences))

    def texts(self) -> Iterator[tuple[str, Ref]]:
        """Yield every text of the unit, and where it stands."""
        for term in self.terms:
            yield from ((text, term.ref) for text in (term.term, term.meaning, term.example))
        told = (fact for one in (*self.sections, *self.steps) for fact in one.facts)
        for fact in (*self.goals, *told, *self.sentences, *self.questions, *self.tasks):
            yield from ((text, fact.ref) for text in (fact.text, fact.gloss))

    def refs(self) -> Iterator[Ref]:
        """Yield every line that the unit was read from."""
        yield self.ref
        for facts in (self.goals, self.facts, self.sentences, self.questions, self.tasks):
            yield from (fact.ref for fact in facts)
        yield from (term.ref for term in self.terms)
        yield from (fact.ref for one in self.steps for fact in one.facts)


class Syllabus(msgspec.Struct, frozen=True, kw_only=True):
    """The material as a whole; `title`, `summary` and `audience` are empty if it says none."""

    title: str
    language: Language
    units: tuple[Unit, ...]
    summary: str = ""
    audience: str = ""
    goals: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ref: Ref = Ref(0, 1)

    def place(self, refs: Iterable[Ref]) -> str:
        """Return `water.md:12-18` for lines of the material, as a person reads it."""
        by_file: dict[int, list[int]] = {}
        for ref in refs:
            by_file.setdefault(ref.file, []).append(ref.line)
        parts = []
        for file, lines in sorted(by_file.items()):
            low, high = min(lines), max(lines)
            parts.append(f"{self.files[file]}:{low}" + (f"-{high}" if high > low else ""))
        return ", ".join(parts)


def outline_id(refs: Iterable[Ref]) -> str:
    """Return lines of the material as an id: `f0.L12-14_f1.L3`, cut to what an id may have."""
    runs: list[list[int]] = []
    for ref in sorted(set(refs)):
        if runs and runs[-1][0] == ref.file and runs[-1][2] == ref.line - 1:
            runs[-1][2] = ref.line
        else:
            runs.append([ref.file, ref.line, ref.line])
    said = [f"f{f}.L{a}" + (f"-{b}" if b > a else "") for f, a, b in runs]
    while len("_".join(said)) > 128:  # noqa: PLR2004 - the bound of `etude.classroom.fields.Id`
        said.pop()
    return "_".join(said)
