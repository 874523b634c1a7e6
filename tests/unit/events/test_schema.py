import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from etude.events import schema
from etude.events.errors import LineError
from etude.events.ndjson import scan_line
from etude.events.strict import read_object
from etude.events.values import SHAPE_OF_SIGNAL, SHAPE_OF_TYPE
from etude.testing.samples import import_triple, sample_lines

from .strategies import odd_objects

CHECKED_IN = Path(__file__).parents[3] / "docs" / "schemas"
VALIDATOR = Draft202012Validator(schema.event_schema())


@pytest.mark.parametrize("name", schema.DOCUMENTS)
def test_the_checked_in_documents_are_current(name: str) -> None:
    """`make schemas` would change no document."""
    made = schema.render(schema.DOCUMENTS[name]())
    assert (CHECKED_IN / name).read_text("utf-8") == made


def test_documents_are_written(tmp_path: Path) -> None:
    """The generator writes every document into a folder that it makes."""
    schema.write_documents(tmp_path / "new")
    assert {file.name for file in (tmp_path / "new").iterdir()} == set(schema.DOCUMENTS)


def test_the_schema_is_a_schema() -> None:
    """The event schema is valid JSON Schema 2020-12, its value shapes too."""
    Draft202012Validator.check_schema(schema.event_schema())
    for shape in schema.event_schema()["$defs"]["values"].values():
        Draft202012Validator.check_schema(shape)


def test_the_protocols_examples_validate() -> None:
    """The protocol's 13 lines, its time-out and its completed triple are valid events."""
    lines = [*sample_lines("violin-3min"), *sample_lines("phase-timeout")]
    assert len(lines) == 14
    for line in lines + import_triple(sample_lines("triples")):
        VALIDATOR.validate(json.loads(line))


@given(odd_objects())
def test_schema_and_codec_agree(fields: dict[str, Any]) -> None:
    """Of what strict JSON can say, the schema accepts exactly what the codec accepts."""
    line = json.dumps(fields).encode()
    try:
        read_object(line, 1)
    except LineError:
        return
    try:
        scan_line(line, 1, None)
        accepted = True
    except LineError:
        accepted = False
    assert accepted == VALIDATOR.is_valid(fields)


@pytest.mark.parametrize(
    ("schema_of", "shape"),
    [
        *((f"of_type_{name}", shape) for name, shape in SHAPE_OF_TYPE.items()),
        *((f"of_signal_{name}", shape) for name, shape in SHAPE_OF_SIGNAL.items()),
    ],
)
@pytest.mark.parametrize("line", sample_lines("violin-3min") + sample_lines("phase-timeout"))
def test_value_schemas_and_lint_agree(
    schema_of: str, shape: type[msgspec.Struct], line: bytes
) -> None:
    """A value that lint finds well-shaped is valid by the published shape, and only such a one."""
    value = json.loads(line)["value"]
    published = schema.event_schema()["$defs"]["values"][schema_of]
    try:
        msgspec.convert(value, shape)
        fits = True
    except msgspec.ValidationError:
        fits = False
    assert Draft202012Validator(published).is_valid(value) == fits


def test_asyncapi_refers_to_what_exists() -> None:
    """Every local reference of the AsyncAPI document leads somewhere."""
    document = schema.asyncapi()

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if "$ref" in node else []
            return own + [ref for item in node.values() for ref in references(item)]
        return [ref for item in node for ref in references(item)] if isinstance(node, list) else []

    found = references(document)
    assert "./event.schema.json" in found
    for reference in found:
        if reference.startswith("#/"):
            node: Any = document
            for part in reference[2:].split("/"):
                node = node[part]
