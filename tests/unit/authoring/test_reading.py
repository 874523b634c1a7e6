"""Reading material: what files become which units, and which are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.authoring.errors import (
    MaterialTooLittleError,
    MaterialTooMuchError,
    MaterialTwiceError,
    MaterialUnreadableError,
)
from etude.authoring.material import Material, Ref, outline_id
from etude.authoring.reading import read_material
from etude.authoring.wording import content_words, joined, pieces, segments
from etude.errors import EtudeError


def folder(count: int, text: str = "Sentence number {n} is here.") -> list[Material]:
    return [Material(name=f"{n:02d}.txt", text=text.format(n=n)) for n in range(1, count + 1)]


def test_a_folder_of_sentences_becomes_four_units() -> None:
    """A folder of NN.txt is cut into four units; each sentence keeps its file and its sound."""
    read = read_material(folder(12), sounds=["01.mp3", "07.mp3"])
    assert [len(unit.sentences) for unit in read.units] == [3, 3, 3, 3]
    facts = [fact for unit in read.units for fact in unit.sentences]
    assert [fact.ref.file for fact in facts] == list(range(12))
    assert [fact.sound for fact in facts if fact.sound] == ["01.mp3", "07.mp3"]


def test_sounds_belong_to_sentences_of_a_list_by_number() -> None:
    """The third sentence of a list has 03.mp3."""
    text = "\n".join(f"Sentence {word} is here." for word in "abcdefghij")
    read = read_material([Material(name="list.txt", text=text)], sounds=["03.mp3"])
    facts = [fact for unit in read.units for fact in unit.sentences]
    assert [fact.sound for fact in facts] == [None, None, "03.mp3", *[None] * 7]


def test_a_word_list_has_terms_and_examples() -> None:
    """Tab, equals sign, dash and wide colon separate word, meaning and example."""
    lines = ["a1\tone\tSee a1 here.", "b2 = two", "c3 - three", "d4：four"] * 2  # noqa: RUF001 - a wide colon
    text = "\n".join(f"{line[0]}{at}{line[2:]}" for at, line in enumerate(lines))
    read = read_material([Material(name="w.txt", text=text)])
    terms = [term for unit in read.units for term in unit.terms]
    assert [term.meaning for term in terms] == ["one", "two", "three", "four"] * 2
    assert terms[0].example == "See a1 here."


def test_a_glossed_sentence() -> None:
    """What follows two slashes is the meaning; what is emphasised is the key word."""
    text = "\n".join(f"The **word{n}** stands. // 词{n}" for n in range(8))
    fact = read_material([Material(name="s.txt", text=text)]).units[0].sentences[0]
    assert (fact.text, fact.gloss, fact.marked) == ("The word0 stands.", "词0", ("word0",))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_little(count: int) -> None:
    """Fewer than eight things make no course of four modules."""
    with pytest.raises(MaterialTooLittleError):
        read_material(folder(count))


def test_too_much() -> None:
    """More than fifteen full modules are refused, never cut off silently."""
    text = "\n".join(f"Sentence number {n} is here." for n in range(1000))
    with pytest.raises(MaterialTooMuchError):
        read_material([Material(name="s.txt", text=text)])


def test_more_than_fifteen_headings_are_put_together() -> None:
    """Twenty short units become fifteen; nothing is lost."""
    text = "\n".join(f"# Unit {n}\nSentence {n} a.\nSentence {n} b." for n in range(20))
    read = read_material([Material(name="s.txt", text=text)])
    assert len(read.units) == 15
    assert sum(unit.size for unit in read.units) == 40


def test_files_that_cannot_be_used() -> None:
    """Two files of one name, a binary file and an endless one are refused by name."""
    with pytest.raises(MaterialTwiceError):
        read_material([*folder(8), Material(name="01.txt", text="x")])
    with pytest.raises(MaterialUnreadableError):
        read_material([Material(name="a.txt", text="\0")])
    with pytest.raises(MaterialUnreadableError):
        read_material([Material(name="a.txt", text="x" * 500_000)])


def test_numbered_lists_are_sequences() -> None:
    """A numbered list of a syllabus is an order to learn; bullets are facts."""
    body = (
        "## {n}\n\n### How\n1. First {n}\n2. Then {n}\n3. Last {n}\n\n### What\n- A fact of {n}.\n"
    )
    text = "# Course\n\n" + "\n".join(body.format(n=name) for name in ("A", "B", "C", "D"))
    unit = read_material([Material(name="s.md", text=text)]).units[0]
    assert [fact.text for fact in unit.steps[0].facts] == ["First A", "Then A", "Last A"]
    assert [fact.text for fact in unit.facts] == ["A fact of A."]


@given(st.text(max_size=2000))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a file says, it gives units or a typed error."""
    for name in ("a.md", "a.txt", "01.txt"):
        try:
            read = read_material([Material(name=name, text=text)])
        except EtudeError:
            continue
        assert 4 <= len(read.units) <= 15


@given(st.text(alphabet="春天的花园里有小鸟我们在说话，。abc", max_size=60))  # noqa: RUF001 - Chinese marks
def test_segments_lose_nothing(text: str) -> None:
    """Segments of a text, put together, are the text."""
    assert "".join(segments(text)) == text


def test_pieces_give_the_sentence() -> None:
    """Pieces of a sentence, joined, are the sentence without its end mark."""
    for text in ("花园里的花都开了。", "The cat sleeps."):
        assert joined(pieces(text), text) == text[:-1]
    assert content_words("The cat sleeps on my bed.") == ("cat", "sleeps", "bed")


def test_outline_ids_are_bounded() -> None:
    """Any number of lines gives an id of at most 128 characters, runs of lines in one."""
    assert outline_id([Ref(0, 3), Ref(0, 4), Ref(1, 9)]) == "f0.L3-4_f1.L9"
    assert len(outline_id(Ref(0, 2 * n) for n in range(200))) <= 128
