"""Another rubric reads the same events: two reports, and no code is changed."""

from fractions import Fraction
from pathlib import Path

from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.score import score
from etude.rubric.library import RubricLibrary, rubric_digest
from etude.testing.samples import session_lines

STRICT = """\
id: {id}
version: {version}
locale: {{en: Intonation only}}
instruments: [violin]
phases: [{{id: preparation}}, {{id: operation}}, {{id: cleanup}}]
signals:
  pitch_accuracy:
    primitive: quality
    observe: {{event_types: [audio_observation]}}
    measure: {{audio_observation: value.accuracy}}
    grade: {{worst: 0.9, best: 1}}
    aggregate: minimum
dimensions:
  in_tune: {{from: [{{signal: pitch_accuracy}}]}}
"""


def violin() -> list[Event]:
    lines = enumerate(session_lines("violin-basic-strong"), 1)
    return [decode_line(line, number) for number, line in lines]


def test_the_same_events_under_two_rubrics(tmp_path: Path) -> None:
    """A file dropped into the folder: the least pitch is 0.92, (0.92 - 0.9) / 0.1 = 0.2: 20."""
    (tmp_path / "ours.yaml").write_text(STRICT.format(id="intonation", version="v1"))
    library = RubricLibrary.load(tmp_path)
    strict = score(violin(), library.get("intonation"))
    assert [(one.dimension, one.score, one.value) for one in strict.dimensions] == [
        ("in_tune", 20, Fraction(1, 5))
    ]
    assert strict.overall_score == 20
    shipped = score(violin(), library.get("violin-basic"))
    assert (len(shipped.dimensions), shipped.overall_score) == (4, 92)


def test_a_newer_version_in_the_folder_is_used(tmp_path: Path) -> None:
    """Sessions that name no version get the newest; the one named `v1.2` keeps its own."""
    (tmp_path / "newer.yml").write_text(STRICT.format(id="violin-basic", version="v1.10"))
    library = RubricLibrary.load(tmp_path)
    assert library.of_session(violin()[0]).key == "violin-basic@v1.2"
    assert library.get("violin-basic").key == "violin-basic@v1.10"
    assert library.get("violin-basic@v1.2").dimensions.keys() != {"in_tune"}


def test_a_school_can_replace_a_shipped_one(tmp_path: Path) -> None:
    """Same id and version: the folder's stands in its place, with another digest."""
    (tmp_path / "same.yaml").write_text(STRICT.format(id="violin-basic", version="v1.2"))
    own = RubricLibrary.load(tmp_path).of_session(violin()[0])
    assert list(own.dimensions) == ["in_tune"]
    assert rubric_digest(own) != rubric_digest(RubricLibrary.load().get("violin-basic"))
