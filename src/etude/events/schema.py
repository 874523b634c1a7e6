"""The protocol as documents: JSON Schema (2020-12) of one event, AsyncAPI 3 of the upload channel.

Made from the rules that the codec applies. `python -m etude.events.schema FOLDER` writes
`event.schema.json` and `asyncapi.json`; the checked-in copies are in `docs/schemas/`.

What a schema cannot say, only the codec checks: bytes of a line, duplicate keys, nesting depth,
integers beyond 2^53 in free parts, lone surrogates. The shapes of `value` and the enumerated
fields are annotations of lint: they stand under `$defs` and `examples`, and refuse nothing.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.events import fields
from etude.events.model import PERCEPTION_LEVELS, PHASES, PRIMITIVES, TIERS, TRANSITION_SOURCES
from etude.events.strict import MAX_INTEGER, MAX_LINE_BYTES
from etude.events.values import SHAPE_OF_SIGNAL, SHAPE_OF_TYPE, DoubtfulValue
from etude.events.vocabulary import VOCABULARY

PROTOCOL_VERSION: Final = "0.5"
SCHEMA_ID: Final = f"urn:etude:event:{PROTOCOL_VERSION}"

Document = dict[str, Any]


def event_schema() -> Document:
    """Return the JSON Schema of one line's object: it accepts exactly what the codec accepts."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Practice event",
        "description": f"One line of events.jsonl, at most {MAX_LINE_BYTES} bytes.",
        "type": "object",
        "required": ["event_id", "session_id", "ts", "event_type"],
        "anyOf": [
            {"required": ["signal"]},
            {"required": ["signal_id"], "properties": {"signal_id": {"$ref": "#/$defs/name"}}},
        ],
        "properties": _properties(),
        "additionalProperties": True,
        "$defs": {**_definitions(), "values": _value_schemas()},
    }


def _properties() -> Document:
    an_id, a_name = {"$ref": "#/$defs/id"}, {"$ref": "#/$defs/name"}
    return {
        "event_id": an_id,
        "session_id": an_id,
        "ts": {"type": "number", "minimum": 0, "description": "Seconds since the session began."},
        "event_type": {**a_name, "examples": list(VOCABULARY)},
        "phase": _label(PHASES),
        "signal": a_name,
        "signal_id": {"description": "Alias of `signal`, read where that is absent."},
        "value": {"default": {}, "description": "Any JSON; usual shapes under `$defs/values`."},
        "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "alert_tier": _label(TIERS),
        "cloud_review_available": {"type": ["boolean", "null"], "default": False},
        "transition_source": _label(TRANSITION_SOURCES),
        "meta": {"type": ["object", "null"]},
        "journey_id": _label(()),
        "perception_level": _label(PERCEPTION_LEVELS),
        "primitive": _label(PRIMITIVES),
        "correlation_id": _label(()),
        "seq": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_INTEGER},
    }


def _label(known: tuple[str, ...]) -> Document:
    examples = {"examples": list(known)} if known else {}
    return {"anyOf": [{"$ref": "#/$defs/label"}, {"type": "null"}], **examples}


def _definitions() -> Document:
    # No anchored pattern: `$` is also before a last line feed in some languages' expressions.
    unaddressable = {"enum": list(fields.UNADDRESSABLE_IDS)}
    label = {
        "type": "string",
        "maxLength": fields.MAX_NAME,
        "not": {"pattern": fields.NOT_IN_NAME},
    }
    return {
        "id": {
            "type": "string",
            "minLength": 1,
            "maxLength": fields.MAX_ID,
            "not": {"anyOf": [{"pattern": fields.NOT_IN_ID}, unaddressable]},
        },
        "name": {**label, "minLength": 1},
        "label": label,
    }


def _value_schemas() -> Document:
    """Return the usual shapes of `value` by event type, by signal, and of doubtful events."""
    shapes: Mapping[str, Any] = {
        **{f"of_type_{name}": shape for name, shape in SHAPE_OF_TYPE.items()},
        **{f"of_signal_{name}": shape for name, shape in SHAPE_OF_SIGNAL.items()},
        "of_doubtful": DoubtfulValue,
    }
    _, components = msgspec.json.schema_components(shapes.values())
    return {name: components[shape.__name__] for name, shape in shapes.items()}


def asyncapi() -> Document:
    """Return the AsyncAPI 3 document of the upload: a device sends, the server answers."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Etude practice events",
            "version": PROTOCOL_VERSION,
            "description": "A practice session, written line by line and uploaded at least once.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/x-ndjson",
        "channels": {"sessionEvents": _channel()},
        "operations": {
            "uploadEvents": {
                "action": "send",
                "channel": {"$ref": "#/channels/sessionEvents"},
                "summary": "POST a body of lines; the answer comes when they are durable.",
                "messages": [{"$ref": "#/channels/sessionEvents/messages/event"}],
                "reply": {
                    "channel": {"$ref": "#/channels/sessionEvents"},
                    "messages": [{"$ref": "#/channels/sessionEvents/messages/uploadAnswer"}],
                },
                "bindings": {"http": {"method": "POST", "bindingVersion": "0.3.0"}},
            }
        },
        "components": {"schemas": {"uploadAnswer": _upload_answer()}},
    }


def _channel() -> Document:
    return {
        "address": "/api/v1/sessions/{session_id}/events",
        "parameters": {"session_id": {"description": "The session that every line belongs to."}},
        "messages": {
            "event": {
                "name": "event",
                "title": "One line of the body",
                "contentType": "application/x-ndjson",
                "payload": {
                    "schemaFormat": "application/schema+json;version=2020-12",
                    "schema": {"$ref": "./event.schema.json"},
                },
            },
            "uploadAnswer": {
                "name": "uploadAnswer",
                "title": "The server's answer to a body",
                "contentType": "application/json",
                "payload": {"$ref": "#/components/schemas/uploadAnswer"},
            },
        },
    }


def _upload_answer() -> Document:
    count = {"type": "integer", "minimum": 0}
    error = {
        "type": "object",
        "required": ["line", "code", "message"],
        "properties": {
            "line": {"type": "integer", "minimum": 1},
            "code": {
                "enum": ["invalid_json", "missing_field", "bad_type", "wrong_session", "too_long"]
            },
            "message": {"type": "string"},
        },
    }
    return {
        "type": "object",
        "required": ["status", "session_id", "events_received", "duplicates_skipped"],
        "properties": {
            "status": {"const": "accepted"},
            "session_id": {"type": "string"},
            "events_received": {**count, "description": "Valid lines, duplicates included."},
            "duplicates_skipped": count,
            "events_rejected": count,
            "errors": {"type": "array", "maxItems": 20, "items": error},
            "conflicts": {"type": "array", "items": {"type": "string"}},
            "watermark": {
                "type": ["integer", "null"],
                "description": "Highest `seq` up to which nothing is missing.",
            },
        },
    }


DOCUMENTS: Final[Mapping[str, Callable[[], Document]]] = {
    "event.schema.json": event_schema,
    "asyncapi.json": asyncapi,
}


def render(document: Document) -> str:
    """Return the text of a document as it is checked in."""
    encoded = msgspec.json.encode(document)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def write_documents(folder: Path) -> None:
    """Write every document into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in DOCUMENTS.items():
        (folder / name).write_text(render(make()), "utf-8")


if __name__ == "__main__":
    write_documents(Path(sys.argv[1]))
