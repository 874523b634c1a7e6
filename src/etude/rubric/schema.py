"""The rubric as JSON Schema (2020-12), so that editors complete it and mark mistakes.

Made from the structs that read it, with what they cannot say added: the event types there are, and
which keys belong together. What only a look at the whole document shows (a name that is not
defined, a phase that comes twice) is found by `etude rubric check`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from etude.events.vocabulary import VOCABULARY
from etude.rubric.model import Rubric

SCHEMA_ID: Final = "urn:etude:rubric:1"

Document = dict[str, Any]

DESCRIPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Rubric": {
        "id": "Its name: lower-case letters, digits and hyphens.",
        "version": "v1, v1.2 or v1.2.3. Another version for every change of meaning.",
        "locale": "Its title, by language.",
        "instruments": "Values of session_start's `instrument` that it is for.",
        "phases": "In order; the first is open when a session begins.",
        "signals": "What is looked for, by name. Events carry this name in `signal`.",
        "dimensions": "The scores of the report, by name.",
        "safety_gates": "Safety signals that cap the overall score when they fail.",
        "growth": "Signals whose measured number is compared along a journey.",
    },
    "Phase": {
        "id": "Its name, as events carry it in `phase`.",
        "title": "For people, by language.",
        "threshold_s": "The expected length in seconds; only reported.",
        "timeout_s": "After so many seconds the learner is asked whether to go on.",
    },
    "Signal": {
        "primitive": "How its events become a value from 0 to 1.",
        "title": "For people, by language.",
        "phases": "Where it counts; without them anywhere.",
        "level": "How it is perceived: L0 rule or sensor, L1 small model, L2 larger model.",
        "observe": "Which events it looks at.",
        "measure": "By event type, the path of what is measured: value.correct, assertion, signal.",
        "unit": "Of what is measured, for people.",
        "polarity": "When it is good news and when an issue: for the recap, and as 1 and 0.",
        "grade": "How good what is measured is, from 0 to 1.",
        "band": "timing: 1 within the band, falling to 0 outside.",
        "at_least": "presence: how many times it has to happen.",
        "order": "sequence: the words that should be measured, in this order.",
        "aggregate": "How several observations become one value.",
        "coach": "What the coach says at once, by what it counts as and language.",
        "step": "What to practise next when this is weak, by language.",
    },
    "Observe": {
        "event_types": "Types of the protocol's vocabulary.",
        "signals": "What these events call the signal, if not by its own name.",
    },
    "PolarityRule": {
        "positive": "The value or condition that is good news.",
        "issue": "The value or condition that is an issue; without it, whatever is not good.",
    },
    "Condition": {
        "at_least": "The number is this or more.",
        "at_most": "The number is this or less.",
        "one_of": "The word is one of these.",
    },
    "Grade": {
        "worst": "The number that is worth 0.",
        "best": "The number that is worth 1; smaller than `worst` where less is better.",
        "words": "What each word is worth, 0 to 1.",
    },
    "Band": {
        "at_least": "From here it is worth 1.",
        "at_most": "Up to here it is worth 1.",
        "zero_below": "Here and below it is worth 0.",
        "zero_above": "Here and above it is worth 0.",
    },
    "Coach": {
        "positive": "Said of something good, by language.",
        "uncertain": "Said of something doubtful, by language.",
    },
    "Dimension": {
        "title": "For people, by language.",
        "weight": "In the overall score.",
        "from": "The signals it is made of.",
        "aggregate": "Instead of what the signals say themselves.",
        "scale": "The lowest and the highest score.",
    },
    "Part": {"signal": "Name of a signal.", "weight": "In the dimension."},
    "SafetyGate": {
        "signal": "Name of a signal with the primitive safety.",
        "cap": "The highest overall score once it failed.",
        "says": "What the report says then, by language.",
    },
    "Growth": {
        "metric": "Name of a signal that measures a number.",
        "better": "Which way is better.",
        "error": "Measurement error, in the unit of what is measured: less is no change.",
    },
}
"""What each key is for, by the struct that it is in: in the schema, and in `docs/rubrics.md`."""

_MEASURING: Final = ("sequence", "timing", "quality")


def rubric_schema() -> Document:
    """Return the JSON Schema of a rubric: it accepts whatever `load_rubric` accepts."""
    _, definitions = msgspec.json.schema_components((Rubric,), ref_template="#/$defs/{name}")
    for name, described in DESCRIPTIONS.items():
        for key, sentence in described.items():
            _described(definitions[name]["properties"], key, sentence)
    _require_events(definitions)
    definitions["Signal"]["allOf"] = list(_signal_rules())
    definitions["Condition"]["oneOf"] = [
        _either((key,), definitions["Condition"]) for key in ("at_least", "at_most", "one_of")
    ]
    definitions["Grade"]["oneOf"] = [
        _either(("worst", "best"), definitions["Grade"]),
        _either(("words",), definitions["Grade"]),
    ]
    definitions["Grade"]["properties"]["words"]["anyOf"][0]["minProperties"] = 1
    for definition in definitions.values():
        definition["description"] = definition["description"].split("\n\n")[0]
    whole = definitions.pop("Rubric")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **whole,
        "description": "How the events of a practice session are read and scored.",
        "$defs": definitions,
    }


def _described(properties: Document, key: str, sentence: str) -> None:
    properties[key] = {"description": sentence, **properties[key]}


def _require_events(definitions: Document) -> None:
    known = {"enum": list(VOCABULARY)}
    definitions["Observe"]["properties"]["event_types"]["items"] |= known
    definitions["Signal"]["properties"]["measure"]["propertyNames"] = known
    definitions["Signal"]["properties"]["order"]["uniqueItems"] = True


def _signal_rules() -> Iterator[Document]:
    """Yield which keys belong to which primitive."""
    yield {
        "if": _is("sequence"),
        "then": {"required": ["order"], "properties": {"order": {"minItems": 1}}},
        "else": {"properties": {"order": {"maxItems": 0}}},
    }
    yield {
        "if": {"properties": {"primitive": {"enum": list(_MEASURING)}}},
        "then": {"required": ["measure"], "properties": {"measure": {"minProperties": 1}}},
    }
    yield {
        "if": {"not": _is("timing")},
        "then": {"properties": {"band": {"type": "null"}}},
    }
    yield {
        "if": _is("timing"),
        "then": {
            "anyOf": [
                {"required": [key], "properties": {key: {"type": "object"}}}
                for key in ("band", "grade", "polarity")
            ]
        },
    }
    yield {
        "if": {"not": _is("presence")},
        "then": {"properties": {"at_least": {"const": 1}}},
    }
    yield {
        "if": {"required": ["band"], "properties": {"band": {"type": "object"}}},
        "then": {"properties": {"grade": {"type": "null"}}},
    }


def _either(keys: tuple[str, ...], definition: Document) -> Document:
    """Return the case in which these keys are given and no others; null is not given."""
    null = {"type": "null"}
    return {
        "required": list(keys),
        "properties": {
            key: {"not": null} if key in keys else null for key in definition["properties"]
        },
    }


def _is(primitive: str) -> Document:
    return {"properties": {"primitive": {"const": primitive}}, "required": ["primitive"]}
