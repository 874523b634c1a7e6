"""Rubrics as files: every mistake with its line, and the library of those at hand."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.documents import DocumentInvalidError
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.rubric.compiling import compile_table
from etude.rubric.errors import RubricFileUnreadableError, RubricUnknownError
from etude.rubric.library import (
    RubricLibrary,
    read_rubric,
    rubric_digest,
    rubric_json,
    version_key,
)
from etude.rubric.loading import load_rubric, rubric_from
from etude.rubric.model import Rubric
from etude.rubric.polarity import PolarityTable
from etude.rubric.recap import PhaseCounts, recap
from etude.testing.samples import sample_lines

SMALL = """\
id: small
version: v1
locale: {en: Small}
instruments: [whistle]
phases:
  - {id: operation}
signals:
  tune:
    primitive: quality
    observe: {event_types: [audio_observation]}
    measure: {audio_observation: value.accuracy}
dimensions:
  tune: {from: [{signal: tune}]}
"""


def violin() -> list[Event]:
    lines = enumerate(sample_lines("violin-3min"), 1)
    return [decode_line(line, number) for number, line in lines]


def started(value: dict[str, Any], meta: dict[str, Any] | None = None) -> Event:
    return Event(
        event_id="e1",
        session_id="s1",
        ts=0.0,
        event_type="session_start",
        signal="session_begin",
        value=value,
        meta=meta,
    )


@pytest.mark.parametrize(
    ("change", "to", "code", "line"),
    [
        ("primitive: quality", "primitive: qualty", "DOCUMENT_NOT_ONE_OF", 9),
        ("measure: {", "mesure: {", "DOCUMENT_UNKNOWN_KEY", 11),
        ("value.accuracy", "value.__class__()", "DOCUMENT_OUT_OF_BOUNDS", 11),
        ("    measure: {audio_observation: value.accuracy}\n", "", "DOCUMENT_RULE", 8),
        ("[audio_observation]", "[audio_observatio]", "DOCUMENT_NOT_ONE_OF", 10),
        ("{signal: tune}", "{signal: tone}", "DOCUMENT_UNKNOWN_NAME", 13),
        ("{signal: tune}", "{signal: tune}, {signal: tune}", "DOCUMENT_TWICE", 13),
        ("primitive: quality", "primitive: sequence", "DOCUMENT_RULE", 8),
        ("primitive: quality", "primitive: quality\n    at_least: 2", "DOCUMENT_RULE", 10),
        ("primitive: quality", "primitive: quality\n    grade: {worst: 1}", "DOCUMENT_RULE", 10),
        (
            "primitive: quality",
            "primitive: quality\n    grade: {worst: 1, best: 1}",
            "DOCUMENT_RULE",
            10,
        ),
        (
            "primitive: quality",
            "primitive: timing\n    band: {at_least: 9, at_most: 8, zero_below: 1, zero_above: 20}",
            "DOCUMENT_RULE",
            10,
        ),
        (
            "primitive: quality",
            "primitive: quality\n    polarity: {positive: {at_least: 1, at_most: 2}}",
            "DOCUMENT_RULE",
            10,
        ),
        (
            "primitive: quality",
            "primitive: quality\n    phases: [warmup]",
            "DOCUMENT_UNKNOWN_NAME",
            10,
        ),
        ("{id: operation}", "{id: operation}\n  - {id: operation}", "DOCUMENT_TWICE", 7),
        ("version: v1", "version: one", "DOCUMENT_OUT_OF_BOUNDS", 2),
        ("version: v1", 'version: "v1\\n"', "DOCUMENT_OUT_OF_BOUNDS", 2),
        (
            "primitive: quality",
            "primitive: quality\n    polarity: {positive: {one_of: []}}",
            "DOCUMENT_EMPTY",
            10,
        ),
        ("primitive: quality", "primitive: timing", "DOCUMENT_RULE", 8),
        (
            "dimensions:",
            "    grade: {words: {good: 1}}\ngrowth: [{metric: tune}]\ndimensions:",
            "DOCUMENT_RULE",
            13,
        ),
        (
            "dimensions:",
            "safety_gates: [{signal: tune, cap: 50}]\ndimensions:",
            "DOCUMENT_RULE",
            12,
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(change: str, to: str, code: str, line: int) -> None:
    """File, line and reason of each mistake; a rubric with one is not used."""
    with pytest.raises(DocumentInvalidError) as caught:
        load_rubric(SMALL.replace(change, to, 1), "small.yaml")
    found = [(part.code, part.params["line"], part.params["file"]) for part in caught.value.parts]
    assert (code, line, "small.yaml") in found


def test_the_sample_session_finds_its_rubric() -> None:
    """Instrument violin and rubric_version v1.2 are violin-basic@v1.2 (`docs/rules.md 3`)."""
    library = RubricLibrary.load()
    assert library.problems == ()
    events = violin()
    assert library.of_session(events[0]).key == "violin-basic@v1.2"


def test_a_session_names_its_rubric_or_there_is_none(tmp_path: Path) -> None:
    """`meta.rubric` wins; without a version the newest; an unknown one is no guess."""
    for version in ("v1.9", "v1.10"):
        (tmp_path / f"{version}.yaml").write_text(
            SMALL.replace("version: v1", f"version: {version}")
        )
    library = RubricLibrary.load(tmp_path)
    named = started({"instrument": "violin"}, {"rubric": {"id": "small", "version": "v1.9"}})
    assert library.of_session(named).key == "small@v1.9"
    assert library.of_session(started({}, {"rubric": {"id": "small"}})).key == "small@v1.10"
    assert library.of_session(started({"instrument": "whistle"})).key == "small@v1.10"
    for start in (
        None,
        started({}),
        started({"instrument": "whistle", "rubric_version": "v7"}),
        started({"instrument": "whistle", "rubric_version": ["v1.9"]}),
        started({"instrument": "violin"}, {"rubric": {"id": "other"}}),
        started({"instrument": ["violin"]}, {"rubric": "small"}),
    ):
        with pytest.raises(RubricUnknownError):
            library.of_session(start)


def test_a_bad_file_costs_only_itself(tmp_path: Path) -> None:
    """The others are used; the problem names the file."""
    (tmp_path / "bad.yaml").write_text("id: 7\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "good.yaml").write_text(SMALL)
    library = RubricLibrary.load(tmp_path)
    assert library.get("small").key == "small@v1"
    assert {type(problem) for problem in library.problems} == {
        DocumentInvalidError,
        RubricFileUnreadableError,
    }


def test_layout_does_not_change_a_digest(tmp_path: Path) -> None:
    """Comments and order of keys are free; a number is not."""
    file = tmp_path / "small.yaml"
    file.write_text("# a comment\n" + SMALL)
    rubric = load_rubric(SMALL, "small.yaml")
    assert rubric_digest(read_rubric(file)) == rubric_digest(rubric)
    changed = load_rubric(SMALL.replace("{signal: tune}", "{signal: tune, weight: 2}"), "x")
    assert rubric_digest(changed) != rubric_digest(rubric)
    assert version_key("v1.10") > version_key("v1.9")


def test_the_recap_of_a_rubric_counts_as_the_default_one() -> None:
    """The sample through violin-basic: 2/0/0, 4/1/0, 0/0/0, as by the default table."""
    table = PolarityTable(compile_table(RubricLibrary.load().get("violin-basic")))
    made = recap(violin(), table)
    assert made.phase_summary == {
        "preparation": PhaseCounts(2, 0, 0),
        "operation": PhaseCounts(4, 1, 0),
        "cleanup": PhaseCounts(0, 0, 0),
    }


SHIPPED = [
    one.read_text("utf-8")
    for one in sorted((Path(__file__).parents[3] / "src/etude/rubric/rubrics").glob("*.yaml"))
]
DEBRIS = st.sampled_from(
    [
        "",
        ":",
        "- ",
        "{",
        "]",
        "null",
        "1e999",
        "-1",
        "[]",
        "{}",
        "true",
        "!!int x",
        "<<",
        "&a",
        "\n",
    ]
)


@given(st.sampled_from(SHIPPED), st.integers(0, 10_000), st.integers(0, 40), DEBRIS)
def test_a_damaged_rubric_is_refused_or_read(
    rubric: str, start: int, length: int, debris: str
) -> None:
    """Whatever is cut out of a file or put into it: a rubric, or mistakes that name lines."""
    start %= len(rubric)
    damaged = rubric[:start] + debris + rubric[start + length :]
    found: DocumentInvalidError | None = None
    try:
        load_rubric(damaged, "damaged.yaml")
    except DocumentInvalidError as error:
        found = error
    assert found is None or {part.params["file"] for part in found.parts} == {"damaged.yaml"}


@pytest.mark.parametrize("rubric", RubricLibrary.load().rubrics, ids=lambda one: one.key)
def test_plain_values_are_read_as_their_text_is(rubric: Rubric) -> None:
    """A rubric that a program carries: equal to the one of its JSON as a document."""
    body = rubric_json(rubric)
    assert rubric_from(msgspec.json.decode(body), "carried") == rubric
    assert load_rubric(body.decode(), "carried") == rubric


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "Not An Id"},
        {"surplus": 1},
        {"phases": []},
        {"growth": [{"metric": "nothing_known"}]},
        {"safety_gates": [{"signal": "nothing_known", "cap": 5}]},
    ],
)
def test_plain_values_are_refused_as_their_text_is(changed: dict[str, Any]) -> None:
    """Shape, keys that nobody reads, references: the same mistakes, whichever way it comes."""
    plain = msgspec.json.decode(rubric_json(RubricLibrary.load().get("follow-read-en"))) | changed
    found = []
    for read in (
        lambda: rubric_from(plain, "carried"),
        lambda: load_rubric(msgspec.json.encode(plain).decode(), "carried"),
    ):
        with pytest.raises(DocumentInvalidError) as raised:
            read()
        found.append(sorted((one.code, str(one.params.get("path"))) for one in raised.value.parts))
    assert found[0] == found[1] != []
