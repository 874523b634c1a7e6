"""Whole reports: the sample by hand, the same bytes everywhere, and nothing made up."""

import os
import random
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.digests import events_digest
from etude.examiner.errors import NoEventsError, ReportUnreadableError, SessionsMixedError
from etude.examiner.examining import make_report
from etude.examiner.journey import EarlierSession, Measure
from etude.examiner.report import (
    Locale,
    Report,
    as_earlier,
    digest_of_report,
    read_report,
    report_bytes,
    reproducible,
)
from etude.rubric.library import RubricLibrary
from etude.testing.builders import session
from etude.testing.samples import sample_lines
from etude.testing.waiting import run_bounded

RUBRIC = RubricLibrary.load().get("violin-basic")
MADE = datetime(2026, 3, 1, tzinfo=UTC)


class FixedClock:
    def now(self) -> datetime:
        return MADE

    def monotonic(self) -> float:
        return 5.0


class FixedIds:
    def new(self) -> str:
        return "r-1"


def violin(**changed: Any) -> list[Event]:
    events = [decode_line(line) for line in sample_lines("violin-3min")]
    return [msgspec.structs.replace(one, **changed.get(one.event_id, {})) for one in events]


def report(events: list[Event], **options: Any) -> Report:
    return make_report(
        events, RUBRIC, **{"locale": "en", "clock": FixedClock(), "ids": FixedIds(), **options}
    )


def earlier(number: int, accuracy: str = "4/5", **changed: Any) -> EarlierSession:
    measure = Measure(value=accuracy, methods=("edge edge-v0.3",))
    fields: dict[str, Any] = {
        "session_id": f"s-{number}",
        "journey_id": "j",
        "started_at": datetime(2026, 2, number, tzinfo=UTC),
        "rubric": RUBRIC.key,
        "overall_score": 70 + number,
        "measures": {"pitch_accuracy": measure},
    }
    return EarlierSession(**fields | changed)


def test_the_sample_session_by_hand() -> None:
    """Intonation 91, tone 75, posture 100, one event each: 266 / 3 = 88.67 → 89; rhythm not seen.

    Wilson's interval of 0.75 from 0.79 observations: 9.7 to 98.8.
    """
    made = report(violin())
    found = made.examiner_assessment
    assert (made.report_id, made.session_id, made.revision) == ("r-1", "s-abc-123", 1)
    assert (made.rubric_version, made.rubric_key) == ("v1.2", "violin-basic@v1.2")
    assert found.overall_score == 89
    assert found.coverage == 0.75
    assert found.dimension_scores == {
        "intonation": 91,
        "rhythm": None,
        "tone_quality": 75,
        "posture": 100,
    }
    assert [one.evidence_events for one in found.evidence_chain] == [
        ("e006",),
        (),
        ("e009",),
        ("e003",),
    ]
    assert made.uncertainty["tone_quality"].interval == (9.7, 98.8)
    assert made.uncertainty["posture"].coverage == 0.6667
    assert found.recommendations == ("Draw whole bows of eight beats with even pressure.",)
    assert made.recap_summary.phase_summary["operation"].positive == 4
    assert made.recap_summary.highlight_events == ("e010", "e007", "e004")
    (item,) = found.evidence_chain[3].low_confidence_items
    assert (item.event_id, item.edge_confidence, item.state) == ("e008", 0.42, "unknown")
    assert item.cloud_assessment is None
    assert made.summary_card is None


def test_the_sample_in_chinese() -> None:
    """The words are the report's language, the ledger's as ruled."""
    found = report(violin(), locale="zh-CN").examiner_assessment
    assert found.evidence_chain[0].narrative == "音准：91%（第 1 小节）。"  # noqa: RUF001 - as it is written
    assert found.evidence_chain[3].low_confidence_items[0].note == (
        "教练标记为不确定，考官尚未复核"  # noqa: RUF001 - as it is written
    )
    assert found.recommendations == ("用均匀的压力拉八拍的全弓。",)


def test_without_evidence_there_are_no_numbers() -> None:
    """A session in which nothing was seen: null everywhere, never 0; still one next step."""
    made = report(violin()[:2])
    found = made.examiner_assessment
    assert found.overall_score is None
    assert set(found.dimension_scores.values()) == {None}
    assert all(one.interval is None for one in made.uncertainty.values())
    assert all("no score" in one.narrative for one in found.evidence_chain)
    assert len(found.recommendations) == 1
    assert b'"overall_score":null' in report_bytes(made)


@pytest.mark.parametrize("locale", get_args(Locale))
def test_a_report_survives_its_bytes(locale: Locale) -> None:
    """What is read back says the same, and its digest is the one it states."""
    made = report(session(60), locale=locale)
    assert read_report(report_bytes(made)) == made
    assert digest_of_report(made) == made.digest


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b"[" * 2000])
def test_what_is_no_report_is_refused(data: bytes) -> None:
    """With a typed error that names the file."""
    with pytest.raises(ReportUnreadableError) as refused:
        read_report(data, "r.json")
    assert refused.value.params["file"] == "r.json"


def test_only_the_stamp_differs_between_two_makings() -> None:
    """Another id, time, revision and order of arrival: the reproducible part is the same."""
    events = session(80)
    first = report(events)
    shuffled = events * 2
    random.Random(7).shuffle(shuffled)
    second = report(
        shuffled, revision=4, started_at=MADE, ids=type("I", (), {"new": lambda _: "x"})()
    )
    assert report_bytes(first) != report_bytes(second)
    assert reproducible(first) == reproducible(second)
    assert first.digest == second.digest


_SCRIPT = """
import sys
from tests_module import report, violin, earlier
from etude.examiner.report import report_bytes
sys.stdout.buffer.write(report_bytes(report(violin(), history=[earlier(2), earlier(1)])))
"""


def test_every_process_makes_the_same_bytes(tmp_path: Path) -> None:
    """Hash seed, working directory and locale of the process do not matter."""
    made = set()
    for seed, language in (("0", "C"), ("1", "C.UTF-8"), ("4242", "C")):
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "tests_module.py").write_bytes(Path(__file__).read_bytes())
        ended = run_bounded(
            [sys.executable, "-c", _SCRIPT],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": language, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
        )
        made.add(ended.stdout)
    assert made == {report_bytes(report(violin(), history=[earlier(1), earlier(2)]))}


@pytest.mark.parametrize("place", range(13))
def test_one_event_changed_is_another_digest(place: int) -> None:
    """Any event, in any field that says something; also one that no score stands on."""
    events = violin()
    whole = report(events)
    changed = msgspec.structs.replace(events[place], ts=events[place].ts + 0.001)
    assert report([*events[:place], changed, *events[place + 1 :]]).digest != whole.digest
    assert report([*events[:place], *events[place + 1 :]]).digest != whole.digest


def test_spelling_of_a_line_is_no_change() -> None:
    """Key order and escapes do not count; a value does."""
    plain = decode_line(b'{"event_id":"a","session_id":"s","ts":1,"event_type":"x","signal":"y"}')
    spelt = decode_line(
        rb'{"signal":"\u0079","ts":1.0,"event_type":"x","session_id":"s","event_id":"a"}'
    )
    assert events_digest([plain]) == events_digest([spelt])


def test_late_events_change_the_report_and_gaps_are_said() -> None:
    """Events 12 to 14 are named while they are missing; then they count."""
    events = session(20)
    early = report([one for one in events if one.seq not in {12, 13, 14, 17}])
    assert [(gap.first, gap.last) for gap in early.gaps] == [(12, 14), (17, 17)]
    assert early.gaps[0].note == "Events 12–14 have not arrived."  # noqa: RUF001 - as it is written
    assert early.gaps[1].note == "Event 17 has not arrived."
    late = report(events)
    assert late.gaps == ()
    assert late.inputs.events_digest != early.inputs.events_digest
    assert late.digest != early.digest


def test_no_events_and_mixed_events_are_refused() -> None:
    """A report is about one session that has something to say."""
    with pytest.raises(NoEventsError):
        report([])
    with pytest.raises(SessionsMixedError):
        report([*session(4), *session(4, session_id="other")])


def turn(event_id: str, **value: Any) -> Event:
    return Event(
        event_id=event_id,
        session_id="s",
        ts=1.0,
        event_type="signal_observation",
        signal="read_aloud",
        value={"heard": True, **value},
        confidence=1.0,
    )


def test_missing_and_never_recorded_are_told_apart() -> None:
    """Named and not arrived is missing; heard without a recording was never recorded."""
    named = msgspec.structs.replace(turn("b"), meta={"media": [{"sha256": "bb"}, "odd"]})
    events = [turn("a", audio_id="aa"), named, turn("c", audio_id=None)]
    made = report(events, media={"aa", "zz"})
    assert made.recordings.missing is not None
    assert [(one.event_id, one.sha256) for one in made.recordings.missing] == [("b", "bb")]
    assert made.recordings.never_recorded == ("c",)
    assert made.inputs.media == ("aa",)
    assert report(events).recordings.missing is None


def test_the_ledger_keeps_what_belongs_to_no_dimension() -> None:
    """A doubtful event outside every dimension is listed, with what a reviewer said."""
    doubtful = Event(
        event_id="d",
        session_id="s",
        ts=2.0,
        event_type="phase_transition",
        signal="preparation_to_operation",
        value={},
        confidence=0.3,
    )
    review = Event(
        event_id="r",
        session_id="s",
        ts=2.0,
        event_type="signal_reviewed",
        signal="preparation_to_operation",
        value={
            "event_id": "d",
            "verdict": "overturned",
            "note": "It came later.",
            "method": "person",
        },
        meta={"producer": "server"},
    )
    (item,) = report([doubtful, review]).examiner_assessment.other_low_confidence_items
    assert (item.state, item.cloud_assessment, item.review_id) == (
        "overturned",
        "It came later.",
        "r",
    )
    assert item.note == (
        "The coach marked this as uncertain; the examiner reviewed and ruled it out."
    )


def test_the_journey_is_listed_oldest_first() -> None:
    """Only sessions of the same journey, this one left out; each with the digest of its values."""
    events = violin(e001={"journey_id": "j"})
    history = [
        earlier(3),
        earlier(1),
        earlier(2, journey_id="other"),
        earlier(4, session_id="s-abc-123"),
    ]
    made = report(events, history=history)
    assert made.journey_context.journey_id == "j"
    assert [one.session_id for one in made.journey_context.sessions] == ["s-1", "s-3"]
    assert [one.digest for one in made.inputs.history] == [earlier(1).digest, earlier(3).digest]
    assert report(events, history=[earlier(1, "1/2"), earlier(3)]).digest != made.digest


def test_a_report_is_the_history_of_the_next() -> None:
    """What later sessions compare with is taken from the report itself, exactly."""
    known = as_earlier(report(violin(e001={"journey_id": "j"}), started_at=MADE))
    assert known is not None
    assert known.measures == {
        "pitch_accuracy": Measure(value="91/100", methods=("edge edge-v0.3",))
    }
    assert (known.overall_score, known.started_at) == (89, MADE)
    assert as_earlier(report(violin())) is None


PIN = {
    "courseware_id": "cw-1",
    "version": 2,
    "content_hash": "sha256:" + "a" * 64,
    "scene_id": "p1",
    "title": "Tides",
    "scene_title": "Read aloud",
}


def practising(courseware: Any) -> list[Event]:
    """The sample, as if it had practised a scene of a course."""
    first, *others = violin()
    meta = {**(first.meta or {}), "courseware": courseware, "assignment_id": "as-1"}
    return [msgspec.structs.replace(first, meta=meta), *others]


def test_a_report_names_the_course_that_was_practised() -> None:
    """Courseware, version, hash and scene, with their titles, as the session says."""
    found = report(practising(PIN))
    assert msgspec.to_builtins(found.courseware) == {**PIN, "assignment_id": "as-1"}
    again = read_report(report_bytes(found))
    assert again.courseware == found.courseware
    assert digest_of_report(again) == found.digest


@pytest.mark.parametrize(
    "said",
    [None, 7, {}, {**PIN, "version": "2"}, {**PIN, "title": "x" * 501}, {**PIN, "scene_id": ""}],
)
def test_what_is_no_pin_is_not_named(said: Any) -> None:
    """Anything may stand in a session's meta: without a pin the report has no such member."""
    made = report(practising(said))
    assert made.courseware is msgspec.UNSET
    assert b'"courseware"' not in report_bytes(made)
