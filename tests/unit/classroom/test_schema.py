"""The published JSON Schema of a classroom says what the types say."""

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.loading import read_classroom, write_classroom
from etude.classroom.schema import classroom_schema

ROOT = Path(__file__).parents[3]
PUBLISHED = msgspec.json.decode((ROOT / "docs/schemas/classroom.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(PUBLISHED)
WRITTEN = msgspec.json.decode(
    write_classroom(read_classroom((Path(__file__).parent / "tides.json").read_bytes()))
)


def test_the_schema_is_a_schema() -> None:
    """It is valid JSON Schema 2020-12, and the published copy is the one of the code."""
    Draft202012Validator.check_schema(PUBLISHED)
    assert msgspec.json.decode(msgspec.json.encode(classroom_schema())) == PUBLISHED


def test_the_example_is_valid() -> None:
    """What is written passes; there are 21 kinds of actions and 10 of elements."""
    assert list(VALIDATOR.iter_errors(WRITTEN)) == []
    kinds = {name: one["properties"].get("type", {}) for name, one in PUBLISHED["$defs"].items()}
    tagged = [name for name, kind in kinds.items() if "enum" in kind and len(kind["enum"]) == 1]
    assert sum(name.endswith("Element") for name in tagged) == 10
    scene = PUBLISHED["$defs"]["Scene"]["properties"]
    assert len(scene["actions"]["items"]["anyOf"]) == 21
    assert len(scene["content"]["anyOf"]) == 5


@pytest.mark.parametrize(
    ("key", "to"),
    [("id", "../x"), ("scenes", []), ("dslVersion", "0.2.0"), ("outlines", []), ("stage", {})],
)
def test_a_mistake_is_one_for_both(key: str, to: Any) -> None:
    """What the schema refuses, the loader refuses; older versions are only migrated on reading."""
    document = {**copy.deepcopy(WRITTEN), key: to}
    assert not VALIDATOR.is_valid(document)
    if key != "dslVersion":
        with pytest.raises(ClassroomInvalidError):
            read_classroom(msgspec.json.encode(document))
