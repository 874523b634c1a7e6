"""What is right by the material: nothing of it is called wrong, and nothing has two right answers.

Material repeats itself: a word with two meanings, two words with one, a sentence twice, a step that
comes again. Whoever asks, pairs or orders asks here first.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from etude.authoring.material import Fact, Section, Syllabus, Unit
from etude.authoring.wording import key, sense

_ENDING: Final = 3
"""Letters that a word may have more than the one that is explained: `cats`, `walking`."""


class Truths:
    """The truths of one syllabus."""

    def __init__(self, syllabus: Syllabus) -> None:
        """Read them."""
        self._parent: dict[str, str] = {}
        self._words: set[str] = set()
        self._said: set[str] = set()
        self._anagrams: dict[str, set[str]] = defaultdict(set)
        self._next: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._orders: dict[tuple[str, tuple[str, ...]], set[tuple[str, ...]]] = defaultdict(set)
        for unit in syllabus.units:
            for term in unit.terms:
                self._tie(term.term, term.meaning)
                self._words.add(sense(term.term))
            for fact in unit.sentences:
                if fact.gloss:
                    self._tie(fact.text, fact.gloss)
            for text in _told(unit):
                self._said.add(key(text))
                self._anagrams[_letters(key(text))].add(key(text))
            for section in unit.steps:
                self._walk(section)

    def family(self, text: str) -> str:
        """Return what all words and meanings have in common that the material ties together.

        `cat = a pet`, `kitten = a pet` and `cat = 猫` make one family: any of it may be right where
        another one is.
        """
        own = sense(text)
        if own not in self._parent:
            stems = [own[:-cut] for cut in range(1, _ENDING + 1) if own.isascii()]
            own = next((stem for stem in stems if stem in self._words), own)
        return self._root(own)

    def says(self, sentence: str) -> bool:
        """Whether the material has this sentence, however it is written."""
        return key(sentence) in self._said

    def rearranged(self, sentence: str) -> bool:
        """Whether the material has another sentence of the same letters: `A sees B`, `B sees A`."""
        return len(self._anagrams[_letters(key(sentence))]) > 1

    def after(self, section: Section, step: Fact) -> set[str]:
        """Return the keys of all steps that come right after one under this heading."""
        return self._next[key(section.title), key(step.text)]

    def orders(self, section: Section) -> set[tuple[str, ...]]:
        """Return the keys of all orders that the material has for these steps."""
        return self._orders[_steps_of(section)]

    def _walk(self, section: Section) -> None:
        keys = [key(fact.text) for fact in section.facts]
        self._orders[_steps_of(section)].add(tuple(keys))
        for step, following in itertools.pairwise(keys):
            self._next[key(section.title), step].add(following)

    def _tie(self, one: str, other: str) -> None:
        first, second = self._root(sense(one)), self._root(sense(other))
        self._parent[first] = second
        self._parent.setdefault(second, second)

    def _root(self, word: str) -> str:
        while self._parent.get(word, word) != word:
            word = self._parent[word]
        return word


@lru_cache(maxsize=4)
def truths_of(syllabus: Syllabus) -> Truths:
    """Return the truths of a syllabus."""
    return Truths(syllabus)


def _told(unit: Unit) -> Iterator[str]:
    """Yield every sentence of a unit."""
    yield from (fact.text for fact in (*unit.sentences, *unit.facts))
    yield from (fact.text for section in unit.steps for fact in section.facts)
    yield from (term.example for term in unit.terms if term.example)


def _letters(text: str) -> str:
    return "".join(sorted(text))


def _steps_of(section: Section) -> tuple[str, tuple[str, ...]]:
    return key(section.title), tuple(sorted(key(fact.text) for fact in section.facts))
