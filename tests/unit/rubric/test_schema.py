"""The published JSON Schema of a rubric says what the loader says."""

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from etude.documents import DocumentInvalidError, read
from etude.rubric.loading import load_rubric
from etude.rubric.schema import DESCRIPTIONS, rubric_schema

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "src/etude/rubric/rubrics").glob("*.yaml"))
PUBLISHED = msgspec.json.decode((ROOT / "docs/schemas/rubric.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(PUBLISHED)
CPR = read(next(file for file in SHIPPED if file.stem == "cpr-bls").read_text("utf-8")).value


def changed(path: str, to: Any) -> Any:
    """Return the rubric of resuscitation with another value at a place; `...` takes it out."""
    document = copy.deepcopy(CPR)
    *way, last = path.split(".")
    place: Any = document
    for name in way:
        place = place[int(name)] if isinstance(place, list) else place[name]
    key = int(last) if isinstance(place, list) else last
    if to is ...:
        del place[key]
    else:
        place[key] = to
    return document


def loads(document: Any) -> bool:
    """Whether the loader takes it: JSON is YAML."""
    try:
        load_rubric(msgspec.json.encode(document).decode(), "made.yaml")
    except DocumentInvalidError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    """It is valid JSON Schema 2020-12, and the published copy is the one of the code."""
    Draft202012Validator.check_schema(PUBLISHED)
    assert msgspec.json.decode(msgspec.json.encode(rubric_schema())) == PUBLISHED


def test_every_key_is_described() -> None:
    """An editor says of each key what it is for; nothing is described that is not there."""
    definitions = {**PUBLISHED["$defs"], "Rubric": PUBLISHED}
    keys = {name: set(one["properties"]) for name, one in definitions.items()}
    assert {name: set(described) for name, described in DESCRIPTIONS.items()} == keys
    for one in definitions.values():
        assert one["additionalProperties"] is False
        assert all(key["description"] for key in one["properties"].values())


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_what_ships_is_valid(file: Path) -> None:
    """Each rubric that ships passes; the schema is not stricter than the loader."""
    document = read(file.read_text("utf-8"))
    assert document.mistakes == ()
    assert list(VALIDATOR.iter_errors(document.value)) == []


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("id", "CPR"),
        ("id", "cpr-bls\n"),
        ("version", "1.0"),
        ("locale", {}),
        ("locale", {"de": "Wiederbelebung"}),
        ("phases", []),
        ("phases.0.threshold_s", 0),
        ("signals", {}),
        ("signals.Bad Name", CPR["signals"]["scene_safe"]),
        ("signals.scene_safe.primitive", "beauty"),
        ("signals.scene_safe.primitive", ...),
        ("signals.scene_safe.mesure", {}),
        ("signals.scene_safe.observe.event_types", []),
        ("signals.scene_safe.observe.event_types", ["smell_observation"]),
        ("signals.scene_safe.measure.technique_observation", "value.__import__('os')"),
        ("signals.scene_safe.polarity", {"issue": False}),
        ("signals.scene_safe.polarity.positive", {"at_least": 1, "at_most": 2}),
        ("signals.scene_safe.polarity.positive", {}),
        ("signals.scene_safe.polarity.positive", {"one_of": []}),
        ("signals.scene_safe.order", ["a"]),
        ("signals.scene_safe.at_least", 2),
        ("signals.scene_safe.band", CPR["signals"]["compression_rate"]["band"]),
        ("signals.bls_step.order", ...),
        ("signals.bls_step.order", ["a", "a"]),
        ("signals.compression_rate.measure", ...),
        ("signals.compression_rate.grade", {"worst": 0, "best": 1}),
        ("signals.compression_rate.band.zero_above", ...),
        ("signals.compression_rate.band", ...),
        ("signals.chest_recoil.grade", {"worst": 0}),
        ("signals.chest_recoil.grade", {"worst": 0, "best": 1, "words": {"a": 1}}),
        ("signals.breath_volume.grade.words", {}),
        ("signals.breath_volume.grade.words.rises", 1.5),
        ("dimensions", {}),
        ("dimensions.breaths.from", []),
        ("dimensions.breaths.weight", 0),
        ("dimensions.breaths.scale", [0]),
        ("dimensions.breaths.aggregate", "median"),
        ("safety_gates.0.cap", 101),
        ("growth.0.better", "sideways"),
        ("growth.0.error", -1),
    ],
)
def test_a_mistake_is_one_for_both(path: str, to: Any) -> None:
    """Whatever is changed for the worse is refused by schema and loader alike."""
    document = changed(path, to)
    assert not VALIDATOR.is_valid(document)
    assert not loads(document)


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("signals.scene_safe.polarity.issue", None),
        ("signals.chest_recoil.polarity.positive", {"at_least": 0.8, "at_most": None}),
        ("signals.chest_recoil.grade.words", None),
        ("signals.scene_safe.grade", None),
        ("signals.scene_safe.at_least", 1),
        ("dimensions.breaths.scale", [1, 5]),
        ("growth", []),
    ],
)
def test_what_is_right_is_right_for_both(path: str, to: Any) -> None:
    """Null says the same as no key, and a default the same as nothing."""
    document = changed(path, to)
    assert list(VALIDATOR.iter_errors(document)) == []
    assert loads(document)
