"""Lists: a sentence a line, or a word and its meaning a line; `# heading` begins a unit.

    # At home                        # Fruit
    My mother is in the garden.      apple = a round fruit = I eat an apple.
    The **cat** sleeps.              pear = a sweet fruit

Separators of a word list are a tab, `=`, a dash with spaces around it, or a wide colon. A third
column is a sentence that uses the word. In a list of sentences, ` // ` comes before what the
sentence means.
"""

import re
from collections.abc import Sequence
from typing import Final

from etude.authoring.markdown import plain_fact
from etude.authoring.material import Fact, Ref, Term, Unit
from etude.authoring.wording import key

_SEPARATOR: Final = re.compile(r"\t+|\s*=\s*|\s+[-–—]\s+|\s*：\s*")  # noqa: RUF001 - a dash is meant
_HEADING: Final = re.compile(r"^#+\s*(.+?)\s*#*$")
_NUMBER: Final = re.compile(r"^\s*(?:\d{1,3}[.)、]|[-*•])\s+")
_LONGEST_TERM: Final = 60
_TERM_WORDS: Final = 5


def read_list(text: str, file: int, *, first_only: bool = False) -> tuple[Unit, ...]:
    """Return the units of a list; without headings it is one unit without a title.

    Args:
        text: the list.
        file: its place among the files.
        first_only: a sentence is the whole file: its first line; the others are its gloss.
    """
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1)
        if line.strip()
    ]
    if first_only:
        return _one_sentence(lines, file)
    as_words = _is_word_list([line for _, line in lines if not _HEADING.match(line)])
    units: list[Unit] = []
    title, at, body = "", Ref(file, 1), list[tuple[int, str]]()
    for number, line in lines:
        if heading := _HEADING.match(line):
            units += _unit(title, at, body, as_words=as_words)
            at = Ref(file, number)
            title, body = plain_fact(heading[1], at).text, []
        else:
            body.append((number, line))
    units += _unit(title, at, body, as_words=as_words)
    return tuple(units)


def _one_sentence(lines: Sequence[tuple[int, str]], file: int) -> tuple[Unit, ...]:
    if not lines:
        return ()
    number, line = lines[0]
    gloss = " ".join(text for _, text in lines[1:])[:500]
    fact = plain_fact(f"{line} // {gloss}" if gloss else line, Ref(file, number))
    if not fact.text:
        return ()
    return (Unit(title="", ref=fact.ref, sentences=(fact,)),)


def _unit(
    title: str, at: Ref, body: Sequence[tuple[int, str]], *, as_words: bool
) -> tuple[Unit, ...]:
    if not body:
        return ()
    terms: list[Term] = []
    sentences: list[Fact] = []
    for number, line in body:
        ref = Ref(at.file, number)
        bare = _NUMBER.sub("", line)
        term = read_term(bare, ref) if as_words else None
        if term is None:
            sentences += [fact for fact in (plain_fact(bare, ref),) if fact.text]
        else:
            terms.append(term)
            if key(term.example):
                sentences.append(plain_fact(term.example, ref, marked=(term.term,)))
    made = Unit(title=title, ref=at, terms=tuple(terms), sentences=tuple(sentences))
    return (made,)


def read_term(line: str, ref: Ref) -> Term | None:
    """Return the word and meaning that a line says; None if it says none."""
    parts = [part.strip(" *_`") for part in _SEPARATOR.split(line, maxsplit=2)]
    if len(parts) < 2 or not key(parts[0]) or not key(parts[1]):  # noqa: PLR2004 - word and meaning
        return None
    if len(parts[0]) > _LONGEST_TERM or len(parts[0].split()) > _TERM_WORDS:
        return None
    example = parts[2] if len(parts) > 2 else ""  # noqa: PLR2004 - the third column
    return Term(term=parts[0], meaning=parts[1], ref=ref, example=example)


def _is_word_list(lines: Sequence[str]) -> bool:
    terms = sum(read_term(_NUMBER.sub("", line), Ref(0, 0)) is not None for line in lines)
    return terms * 2 > len(lines)
