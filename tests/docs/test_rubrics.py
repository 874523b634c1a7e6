"""The page on rubrics: its example does what it says, and no key is left out."""

import re
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest

from etude.events.model import Event
from etude.examiner.score import score
from etude.rubric.loading import load_rubric
from etude.rubric.model import Aggregate, Primitive, Unit
from etude.rubric.schema import DESCRIPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "rubrics.md").read_text("utf-8")
EXAMPLE = load_rubric(
    next(one for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "id: ukulele" in one),
    "docs/rubrics.md",
)


def session() -> list[Event]:
    """Return the events of the table below the example."""
    table = PAGE.split("A session:\n\n", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    events = []
    for number, row in enumerate(table):
        kind, signal, measured, confidence = [
            cell.strip().strip("`") for cell in row.strip("|").split("|")
        ]
        path = EXAMPLE.signals[signal].measure[kind].removeprefix("value.")
        value = float(measured) if measured[0].isdigit() else measured
        events.append(
            Event(
                event_id=f"e{number}",
                session_id="s",
                ts=float(number),
                event_type=kind,
                signal=signal,
                value={path: value},
                confidence=float(confidence),
            )
        )
    return events


def test_the_example_is_scored_as_the_page_says() -> None:
    """75, 77 and 76 overall; one event is listed; the gate is not observed."""
    found = score(session(), EXAMPLE)
    assert [(one.dimension, one.score) for one in found.dimensions] == [
        ("chords", 75),
        ("playing", 77),
    ]
    assert (found.overall_score, found.coverage == 1) == (76, True)
    assert found.dimensions[1].value == Fraction(23, 30)
    assert [item.event_id for item in found.ledger] == ["e6"]
    assert found.gates[0].failed is None


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_every_key_is_on_the_page(name: str) -> None:
    """Whatever the schema knows is described."""
    told = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(DESCRIPTIONS[name]) - told == set()


def test_every_word_is_on_the_page() -> None:
    """Primitives, aggregates and units are the model's."""
    told = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert {*get_args(Primitive), *get_args(Aggregate), *get_args(Unit)} - told == set()
