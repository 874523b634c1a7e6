"""Units: how material is cut and joined."""

from etude.authoring.material import Fact, Ref, Syllabus, Term, Unit
from etude.authoring.units import arranged

REF = Ref(file=0, line=1)


def test_what_cannot_be_cut_ends_the_cutting() -> None:
    """One word and one sentence stay together; too few units are told by whoever needs more."""
    unit = Unit(
        title="Greetings",
        ref=REF,
        terms=(Term(term="hello", meaning="a greeting", ref=REF),),
        sentences=(Fact(text="Hello, Anna.", ref=REF),),
    )
    assert arranged(Syllabus(title="", language="en", units=(unit,))) == (unit,)


def test_the_longest_that_can_be_cut_is_cut() -> None:
    """Beside one that cannot, the other gives the units that are wanted."""
    whole = Unit(
        title="Greetings",
        ref=REF,
        terms=tuple(Term(term=f"w{n}", meaning="a word", ref=REF) for n in range(4)),
    )
    lone = Unit(title="Lone", ref=REF, sentences=(Fact(text="Bye.", ref=REF),))
    found = arranged(Syllabus(title="", language="en", units=(whole, lone)))
    assert [len(one.terms) for one in found] == [1, 1, 2, 0]
