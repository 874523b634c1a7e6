"""The field guide says what the code does."""

import re
from pathlib import Path

import msgspec

from etude.events import errors, lint
from etude.events.errors import LineError
from etude.events.fields import MAX_ID, MAX_NAME
from etude.events.model import PROTOCOL_FIELDS
from etude.events.strict import MAX_DEPTH, MAX_LINE_BYTES
from etude.events.values import SHAPE_OF_SIGNAL, SHAPE_OF_TYPE, DoubtfulValue, Shape
from etude.events.vocabulary import VOCABULARY

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table under a heading."""
    section = re.split(r"^#+ ", PAGE.split(f"# {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_field_is_described() -> None:
    """Each field of the protocol has its row, and each row its field."""
    described = [name for row in rows("Fields") for name in names(row[0])]
    assert sorted(described) == sorted(PROTOCOL_FIELDS)


def test_the_vocabulary_is_complete() -> None:
    """Each event type stands in its family, with its usual signals."""
    family, found = "", {}
    for row in rows("Vocabulary"):
        family = row[0] or family
        (name,) = names(row[1])
        found[name] = (family, set(names(row[2])))
    assert set(found) == set(VOCABULARY)
    for name, kind in VOCABULARY.items():
        assert found[name][0] == kind.family
        assert set(kind.signals) <= found[name][1]


def test_every_code_is_described() -> None:
    """Each lint code and each code of a refused line has its row."""
    assert [names(row[0])[0] for row in rows("Lint codes")] == list(lint.CODES)
    line_errors = {one.code for one in vars(errors).values() if isinstance(one, type)}
    refused = {names(row[0])[0] for row in rows("Lines that are refused")}
    assert refused == {code for code in line_errors if code.islower()}
    assert LineError.code in refused


def test_usual_values_are_described() -> None:
    """Each shape of `value` is described, what is required in bold."""
    shapes: dict[str, Shape] = {**SHAPE_OF_TYPE, **SHAPE_OF_SIGNAL, "doubtful": DoubtfulValue}
    described = {}
    for row in rows("Usual values"):
        of = (names(row[0]) or ["doubtful"])[0]
        described[of] = (set(re.findall(r"\*\*`(\w+)`\*\*", row[1])), set(names(row[1])))
    assert set(described) == set(shapes)
    for of, shape in shapes.items():
        fields = msgspec.structs.fields(shape)
        assert described[of][0] == {field.encode_name for field in fields if field.required}
        assert {field.encode_name for field in fields} <= described[of][1]


def test_limits_are_the_codes() -> None:
    """The page's numbers are those that the codec applies."""
    for limit in (
        f"{MAX_LINE_BYTES:,} bytes",
        f"{MAX_DEPTH} levels",
        f"1 to {MAX_ID}",
        f"1 to {MAX_NAME}",
    ):
        assert limit in PAGE
