"""The classroom as JSON Schema (2020-12): its shape, without `etude.classroom.rules`."""

from typing import Any, Final

import msgspec

from etude.classroom.model import Classroom

SCHEMA_ID: Final = "urn:etude:classroom:0.3.0"

Document = dict[str, Any]


def classroom_schema() -> Document:
    """Return the JSON Schema of a classroom of the newest version."""
    _, definitions = msgspec.json.schema_components((Classroom,), ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition["description"] = definition["description"].split("\n\n")[0]
    whole = definitions.pop("Classroom")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **whole,
        "description": "One unit of a course: stage, agents, scenes.",
        "$defs": dict(sorted(definitions.items())),
    }
