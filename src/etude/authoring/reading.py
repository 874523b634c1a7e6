"""Reading material: a Markdown syllabus, lists of words or sentences, a folder of `NN.txt`.

What a file is follows from its lines, not only from its name: a `.md` file, or one with `##`
headings, is a syllabus; one whose lines mostly say `word = meaning` is a word list; every other one
is a list of sentences, one a line. Several files are read as one, in the order of their names.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from etude.authoring.errors import (
    LessonMaterialTooLittleError,
    LessonMaterialTooMuchError,
    MaterialLineTooLongError,
    MaterialTooLittleError,
    MaterialTooMuchError,
    MaterialTwiceError,
    MaterialUnreadableError,
)
from etude.authoring.lists import read_list
from etude.authoring.markdown import is_prose, read_markdown, read_text
from etude.authoring.material import (
    LEAST_UNITS,
    MOST_IN_A_THING,
    MOST_LINES,
    MOST_UNITS,
    Fact,
    Language,
    Material,
    Syllabus,
    Unit,
)
from etude.authoring.units import arranged, whole
from etude.authoring.wording import key, language_of

MOST_CHARACTERS: Final = 400_000
LEAST_ITEMS: Final = 8
MOST_IN_A_UNIT: Final = 60
LEAST_IN_A_LESSON: Final = 3
_NUMBERED: Final = re.compile(r"^(\d{1,3})\.txt$")
_MARKDOWN: Final = (".md", ".markdown")
ReadFile = Callable[[Material, int], Syllabus]
_SYLLABUS: Final = re.compile(r"^#{2,3} ", re.MULTILINE)


def read_material(
    materials: Sequence[Material],
    *,
    language: Language | None = None,
    sounds: Collection[str] = (),
) -> Syllabus:
    """Return the syllabus that files of material say, in 4 to 15 units.

    Args:
        materials: the files.
        language: of the material; by its letters if left out.
        sounds: names of recordings: `03.mp3` belongs to the sentence in `03.txt`, or to the third
            sentence of a list.

    Raises:
        MaterialTwiceError: two files have one name.
        MaterialUnreadableError: a file is too long, or no text.
        MaterialLineTooLongError: a sentence, word or meaning of it is.
        MaterialTooLittleError, MaterialTooMuchError: it gives no course of 4 to 15 modules.
    """
    with_sounds = _with_sounds(_read(materials, language, read_as_course), sounds)
    units = arranged(with_sounds)
    _check_size(units)
    _check_lengths(with_sounds)
    return msgspec.structs.replace(with_sounds, units=units)


def read_lesson(
    materials: Sequence[Material],
    *,
    language: Language | None = None,
    sounds: Collection[str] = (),
) -> Syllabus:
    """Return the syllabus of a lesson on its own: one unit, whatever the headings of its material.

    Args and errors are those of `read_material`, but for:

    Raises:
        LessonMaterialTooLittleError, LessonMaterialTooMuchError: it gives no lesson.
    """
    with_sounds = _with_sounds(_read(materials, language, read_as_lesson), sounds)
    unit = whole(with_sounds)
    items = _different([unit])
    if items < LEAST_IN_A_LESSON:
        raise LessonMaterialTooLittleError(items=items, least=LEAST_IN_A_LESSON)
    if unit.size > MOST_IN_A_UNIT:
        raise LessonMaterialTooMuchError(items=unit.size, most=MOST_IN_A_UNIT)
    _check_lengths(with_sounds)
    return msgspec.structs.replace(with_sounds, units=(unit,))


def _read(materials: Sequence[Material], language: Language | None, of_file: ReadFile) -> Syllabus:
    ordered = sorted(materials, key=lambda one: one.name)
    _check(ordered)
    spoken = language or language_of("\n".join(one.text for one in ordered))
    if ordered and all(_NUMBERED.match(one.name) for one in ordered):
        return _numbered(ordered, spoken)
    return _joined(ordered, spoken, of_file)


def read_as_course(one: Material, at: int) -> Syllabus:
    """Read a file whose headings begin lessons."""
    if one.name.lower().endswith(_MARKDOWN) or _SYLLABUS.search(one.text):
        return read_markdown(one.text, at)
    return Syllabus(title="", language="en", units=read_list(one.text, at))


def read_as_lesson(one: Material, at: int) -> Syllabus:
    """Read a file whose headings begin topics; paragraphs are told, lists are learnt."""
    if one.name.lower().endswith(_MARKDOWN) or is_prose(one.text):
        return read_text(one.text, at)
    return Syllabus(title="", language="en", units=read_list(one.text, at))


def _check(materials: Sequence[Material]) -> None:
    names = [one.name for one in materials]
    for name in names:
        if names.count(name) > 1:
            raise MaterialTwiceError(file=name)
    for one in materials:
        if len(one.text) > MOST_CHARACTERS or one.text.count("\n") > MOST_LINES:
            raise MaterialUnreadableError(file=one.name, reason="too long")
        if "\0" in one.text:
            raise MaterialUnreadableError(file=one.name, reason="no text")


def _check_size(units: Sequence[Unit]) -> None:
    items = _different(units)
    if items < LEAST_ITEMS or len(units) < LEAST_UNITS or not all(unit.size for unit in units):
        raise MaterialTooLittleError(items=items, least=LEAST_ITEMS)
    if len(units) > MOST_UNITS or any(unit.size > MOST_IN_A_UNIT for unit in units):
        items = sum(unit.size for unit in units)
        raise MaterialTooMuchError(items=items, most=MOST_IN_A_UNIT * MOST_UNITS)


def _different(units: Sequence[Unit]) -> int:
    """Return how many things there are to learn: what is said twice is one."""
    return len({key(thing) for unit in units for thing in unit.things()})


def _check_lengths(syllabus: Syllabus) -> None:
    """Refuse a sentence or meaning that no slide, option or clip can hold."""
    for said, ref in (found for unit in syllabus.units for found in unit.texts()):
        if len(said) > MOST_IN_A_THING:
            raise MaterialLineTooLongError(
                file=syllabus.files[ref.file],
                line=ref.line,
                characters=len(said),
                most=MOST_IN_A_THING,
            )


def _numbered(materials: Sequence[Material], language: Language) -> Syllabus:
    """Read a folder of `NN.txt`, a sentence each; the lines after the first one are its gloss."""
    joined = Syllabus(title="", language=language, units=(), files=tuple(m.name for m in materials))
    sentences: list[Fact] = []
    for at, one in enumerate(materials):
        read = read_list(one.text, at, first_only=True)
        stem = one.name.removesuffix(".txt")
        sentences += [
            msgspec.structs.replace(fact, sound=stem) for unit in read for fact in unit.sentences
        ]
    if not sentences:
        return joined
    unit = Unit(title="", ref=sentences[0].ref, sentences=tuple(sentences))
    return msgspec.structs.replace(joined, units=(unit,))


def _joined(materials: Sequence[Material], language: Language, of_file: ReadFile) -> Syllabus:
    head = Syllabus(title="", language=language, units=(), files=tuple(m.name for m in materials))
    units: list[Unit] = []
    for at, one in enumerate(materials):
        read = of_file(one, at)
        head = _headed(head, read)
        units += read.units
    return msgspec.structs.replace(head, units=tuple(units))


def title_of_file(name: str) -> str:
    """Return a file's name as a title: `everyday-english.txt` is Everyday english."""
    stem = re.sub(r"[-_]+", " ", name.rpartition(".")[0] or name).strip()
    return stem[:1].upper() + stem[1:] if key(stem) else ""


def _headed(head: Syllabus, read: Syllabus) -> Syllabus:
    """Keep what the first file says of the course as a whole."""
    if head.title:
        return head
    return msgspec.structs.replace(
        head,
        title=read.title,
        summary=read.summary,
        audience=read.audience,
        goals=read.goals,
        ref=read.ref,
    )


def _with_sounds(syllabus: Syllabus, sounds: Collection[str]) -> Syllabus:
    """Give each sentence its recording: by the number it has in the material."""
    by_stem = _by_stem(sounds)
    units, number = [], 0
    for unit in syllabus.units:
        sentences = []
        for fact in unit.sentences:
            number += 1
            stems = [fact.sound] if fact.sound else [f"{number:02d}", f"{number:03d}", str(number)]
            found = next((by_stem[stem] for stem in stems if stem in by_stem), None)
            sentences.append(msgspec.structs.replace(fact, sound=found))
        units.append(msgspec.structs.replace(unit, sentences=tuple(sentences)))
    return msgspec.structs.replace(syllabus, units=tuple(units))


def _by_stem(sounds: Collection[str]) -> Mapping[str, str]:
    return {name.rpartition(".")[0]: name for name in sorted(sounds, reverse=True)}
