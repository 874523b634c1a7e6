"""Documents that people write: every mistake with its line."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.documents import Document, DocumentInvalidError, Mistake, load, read
from etude.i18n import LOCALES, text


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    primitive: Literal["presence", "timing"]
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    positive: bool | float | str | None = None


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    id: Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]
    signals: dict[str, Inner]
    phases: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("one",)


GOOD = """\
id: violin
signals:
  bow: {primitive: presence, weight: 2, positive: true}
  pitch:
    primitive: timing
"""


def mistakes_of(document: str) -> list[tuple[str, int, str]]:
    with pytest.raises(DocumentInvalidError) as caught:
        load(document, Outer, file="x.yaml")
    found = []
    for part in caught.value.parts:
        for locale in LOCALES:
            assert "{" not in text(f"error.{part.code}", locale, **part.params)
        found.append((part.code, int(part.params["line"]), str(part.params["path"])))
    assert caught.value.params == {"file": "x.yaml", "mistakes": len(found)}
    return found


def test_a_good_document_is_read() -> None:
    """Values arrive as their types; whole numbers do for numbers."""
    assert load(GOOD, Outer, file="x.yaml") == Outer(
        id="violin",
        signals={
            "bow": Inner(primitive="presence", weight=2.0, positive=True),
            "pitch": Inner(primitive="timing"),
        },
    )


def test_every_mistake_is_named_with_its_line() -> None:
    """All at once: unknown key, missing key, wrong kind, wrong word, out of bounds, empty."""
    document = """\
id: Violin
signals:
  bow: {primitive: presense, wieght: 2}
  pitch:
    weight: -1
    positive: [1]
  tone: 7
phases: []
"""
    assert mistakes_of(document) == [
        ("DOCUMENT_OUT_OF_BOUNDS", 1, "id"),
        ("DOCUMENT_NOT_ONE_OF", 3, "signals.bow.primitive"),
        ("DOCUMENT_UNKNOWN_KEY", 3, "signals.bow.wieght"),
        ("DOCUMENT_MISSING", 4, "signals.pitch"),
        ("DOCUMENT_OUT_OF_BOUNDS", 5, "signals.pitch.weight"),
        ("DOCUMENT_NOT_A", 6, "signals.pitch.positive"),
        ("DOCUMENT_NOT_A", 7, "signals.tone"),
        ("DOCUMENT_EMPTY", 8, "phases"),
    ]


@pytest.mark.parametrize(
    ("document", "code", "line"),
    [
        ("a: [1", "DOCUMENT_SYNTAX", 1),
        ("id: a\nid: b\n", "DOCUMENT_SYNTAX", 2),
        ("a: &x 1\nb: *x\n", "DOCUMENT_ALIAS", 2),
        ("id: a\nsignals: {<<: {b: 1}}\n", "DOCUMENT_MERGE", 2),
        ("id: a\nsignals: {}\n1: b\n", "DOCUMENT_KEY_NOT_TEXT", 3),
        ("id: a\nsignals: {a: {primitive: timing, weight: .inf}}\n", "DOCUMENT_NO_JSON", 2),
        ("id: 2026-01-01\nsignals: {}\n", "DOCUMENT_NO_JSON", 1),
        ('id: a\nsignals: !!python/object/apply:os.system ["id"]\n', "DOCUMENT_NO_JSON", 2),
        ("id: a\nsignals: !!omap [a: 1]\n", "DOCUMENT_NO_JSON", 2),
        ("id: a\nsignals: !made {a: {primitive: timing}}\n", "DOCUMENT_NO_JSON", 2),
        ("", "DOCUMENT_NOT_A", 1),
        ("- 1\n", "DOCUMENT_NOT_A", 1),
        ("\0", "DOCUMENT_SYNTAX", 0),
        ("x" * (1 << 21), "DOCUMENT_TOO_LONG", 0),
        ("[" * 5000, "DOCUMENT_TOO_DEEP", 1),
    ],
)
def test_what_is_no_document_is_refused(document: str, code: str, line: int) -> None:
    """Broken, ambiguous or unbounded YAML is one mistake, never a crash."""
    found = mistakes_of(document)
    assert found[0][0] == code
    assert line in {0, found[0][1]}


def test_rules_of_the_reader_name_their_place() -> None:
    """A rule that a shape cannot say is told with the line of what breaks it."""

    def rules(document: Document, value: Outer) -> list[Mistake]:
        return [document.mistake(("signals", name), "twice", name=name) for name in value.signals]

    with pytest.raises(DocumentInvalidError) as caught:
        load(GOOD, Outer, file="x.yaml", rules=rules)
    assert [part.params["line"] for part in caught.value.parts] == [3, 4]


@given(st.text(max_size=200))
def test_no_text_crashes_the_reader(document: str) -> None:
    """Whatever a file holds, it is a value or a list of mistakes."""
    found = read(document)
    assert found.mistakes or found.lines


class Circle(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="circle"):
    radius: Annotated[float, msgspec.Meta(gt=0)]


class Square(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="square"):
    side: float
    born: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    shapes: Annotated[tuple[Circle | Square, ...], msgspec.Meta(max_length=5)]
    corner: Annotated[tuple[float, ...], msgspec.Meta(min_length=2, max_length=2)] = (0, 0)


def test_a_tag_says_what_is_meant() -> None:
    """Of a tagged union the named one's mistakes are told; what is beyond a bound is not read."""
    good = (
        "shapes: [{type: square, side: 1, born: '2026-01-01T00:00:00Z'}, {type: circle, radius: 2}]"
    )
    assert load(good, Drawing, file="x.yaml").shapes[1] == Circle(radius=2)
    document = """\
shapes:
  - {type: circle, side: 1}
  - {type: cube}
  - {radius: 1}
  - {type: square, side: 1, born: yesterday}
  - {type: [square], side: 1}
  - 7
corner: [1]
"""
    with pytest.raises(DocumentInvalidError) as caught:
        load(document, Drawing, file="x.yaml")
    assert [(part.code, part.params["path"]) for part in caught.value.parts] == [
        ("DOCUMENT_OUT_OF_BOUNDS", "shapes"),
        ("DOCUMENT_MISSING", "shapes[0]"),
        ("DOCUMENT_UNKNOWN_KEY", "shapes[0].side"),
        ("DOCUMENT_NOT_ONE_OF", "shapes[1].type"),
        ("DOCUMENT_MISSING", "shapes[2]"),
        ("DOCUMENT_OUT_OF_BOUNDS", "shapes[3].born"),
        ("DOCUMENT_NOT_ONE_OF", "shapes[4].type"),
        ("DOCUMENT_OUT_OF_BOUNDS", "corner"),
    ]
