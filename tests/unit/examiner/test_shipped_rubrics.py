"""Every rubric that ships, over three sessions each: every score against one computed by hand.

Beside each dimension stands the arithmetic: grades of the events in the order of the session,
weighed by their confidence, then the signals weighed as the rubric says. Nothing here comes from
the program.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec
import pytest

from etude.events.lint import lint
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.assessment import Assessment
from etude.examiner.score import score
from etude.practice.records import EndReason, Mode, SessionStart, Turn
from etude.practice.session_events import end_value, start_meta, start_value, turn_seen
from etude.rubric.compiling import compile_table
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric
from etude.rubric.polarity import PolarityTable
from etude.rubric.recap import recap
from etude.testing.samples import RUBRIC_SESSIONS, session_lines

LIBRARY: Final = RubricLibrary.load()


def f(decimal: str) -> Fraction:
    """Return a decimal number or a quotient as it is written."""
    return Fraction(decimal)


class ByHand(msgspec.Struct, frozen=True):
    """What a session should give.

    Attributes:
        dimensions: the score on 0 to 100, and the exact value from 0 to 1 as it comes out by hand.
        overall: after the gates.
        coverage: weight of what was scored over the weight of all.
        uncapped: before the gates, where that is another number.
        gates: whether each failed; None = not observed.
        ledger: states of the listed events, in order.
    """

    dimensions: Mapping[str, tuple[int, Fraction] | None]
    overall: int
    coverage: Fraction
    uncapped: int | None = None
    gates: tuple[bool | None, ...] = ()
    ledger: tuple[str, ...] = ()


EXPECTED: Final[Mapping[str, ByHand]] = {
    # --- violin-basic: four dimensions of weight 1; posture = (2 bow + 1 left hand) / 3 -----------
    "violin-basic-strong": ByHand(
        {
            # 0.95*0.9 + 0.92*0.8 + 0.97*0.9 = 0.855 + 0.736 + 0.873 = 2.464; / 2.6 = 0.9477
            "intonation": (95, f("2.464") / f("2.6")),
            # 0.9*0.9 + 0.94*0.6 = 0.81 + 0.564 = 1.374; / 1.5 = 0.916
            "rhythm": (92, f("0.916")),
            # very_good 0.9*0.8 + excellent 1*0.6 = 1.32; / 1.4 = 0.9429
            "tone_quality": (94, f("1.32") / f("1.4")),
            # Bow: right at 0.9, 0.8, 0.95 (the judgement of the triple, not what was seen), wrong
            # at 0.55: 2.65 / 3.2 = 53/64. Left: 1. (2*53/64 + 1) / 3 = (53 + 32) / 96 = 85/96 =
            # 0.8854
            "posture": (89, f("85/96")),
        },
        # 94.769 + 91.6 + 94.286 + 88.542 = 369.197; / 4 = 92.299
        overall=92,
        coverage=f("1"),
    ),
    "violin-basic-weak": ByHand(
        {
            # 0.55*0.8 + 0.6*0.9 + 0.48*0.7 = 0.44 + 0.54 + 0.336 = 1.316; / 2.4 = 0.5483
            "intonation": (55, f("1.316") / f("2.4")),
            # 0.5*0.6 + 0.4*0.9 = 0.66; / 1.5 = 0.44
            "rhythm": (44, f("0.44")),
            # poor 0.2*0.8 + fair 0.5*0.8 = 0.56; / 1.6 = 0.35. `good` at 0.4 weighs nothing.
            "tone_quality": (35, f("0.35")),
            # Bow: wrong 0.9, right 0.6, wrong 0.8 (doubtful, confirmed by a teacher): 0.6 / 2.3 =
            # 6/23.
            # Left: wrong 0.8, wrong without confidence 0.5, right 0.7: 0.7 / 2 = 7/20.
            # (12/23 + 7/20) / 3 = (240 + 161) / 460 / 3 = 401/1380 = 0.2906
            "posture": (29, f("401/1380")),
        },
        # 54.833 + 44 + 35 + 29.058 = 162.891; / 4 = 40.723
        overall=41,
        coverage=f("1"),
        ledger=("no_confidence", "confirmed", "unknown"),
    ),
    "violin-basic-unobserved": ByHand(
        # One pitch without confidence: 0.9*0.5 / 0.5. Everything else is doubtful.
        {"intonation": (90, f("0.9")), "rhythm": None, "tone_quality": None, "posture": None},
        overall=90,
        coverage=f("1/4"),
        ledger=("unknown", "no_confidence", "unknown", "unknown"),
    ),
    # --- cpr-bls: weights scene 1, steps 2, compressions 3, continuity 1, breaths 1; together 8
    "cpr-bls-strong": ByHand(
        {
            "scene_safety": (100, f("1")),
            # All eight in order; called and asked: (3*1 + 1 + 1) / 5
            "steps": (100, f("1")),
            # Rate 108, 114, 122: 1, 1, (140-122)/20 = 0.9: 2.9/3 = 29/30.
            # Depth 5.4, 5.8, 4.8: 1, 1, (4.8-3)/2 = 0.9, equal confidence: 29/30.
            # Release 0.95, 0.9: 0.9, 0.8: 0.85. Hands 1.
            # (2*29/30 + 2*29/30 + 0.85 + 1) / 6 = (232 + 111) / 60 / 6 = 343/360 = 0.9528
            "compressions": (95, f("343/360")),
            # Hands on (0.78-0.4)/0.4 = 0.95. Pauses 8 s: 1, 11 s: (20-11)/10 = 0.9, the least: 0.9.
            # (0.95 + 0.9) / 2 = 0.925: the half goes up
            "continuity": (93, f("0.925")),
            # rises 0.8, rises 0.7, barely 0.5*0.5: (0.8 + 0.7 + 0.25) / 2 = 0.875
            "breaths": (88, f("0.875")),
        },
        # (100 + 2*100 + 3*95.278 + 92.5 + 87.5) / 8 = 765.833 / 8 = 95.729
        overall=96,
        coverage=f("1"),
        gates=(False,),
    ),
    "cpr-bls-weak": ByHand(
        {
            "scene_safety": (0, f("0")),
            # Response, compressions, help, breaths; airway at 0.3 weighs nothing. In order at most
            # 3 of 8. Called 1, did not ask 0: (3*3/8 + 1 + 0) / 5 = 17/40 = 0.425: the half goes up
            "steps": (43, f("17/40")),
            # Rate 134, 92, 150: 0.3, 0.6, 0: 0.3. Depth 3.8 at 0.9, 4.2 at 0.6: 0.4, 0.6:
            # (0.36 + 0.36) / 1.5 = 0.48. Release 0.6: 0.2. Hands: wrong 0.8; right at 0.4 and the
            # contested one weigh nothing: 0. (2*0.3 + 2*0.48 + 0.2 + 0) / 6 = 1.76 / 6 = 0.2933
            "compressions": (29, f("1.76") / 6),
            # Hands on (0.46-0.4)/0.4 = 0.15. Pauses 14 s: 0.6, 23 s: 0, the least: 0. 0.15 / 2
            "continuity": (8, f("0.075")),
            # still 0*0.9 + overfilled 0.4*0.6 = 0.24; / 1.5 = 0.16
            "breaths": (16, f("0.16")),
        },
        # (0 + 2*42.5 + 3*29.333 + 7.5 + 16) / 8 = 196.5 / 8 = 24.563: below the cap of 40 already
        overall=25,
        coverage=f("1"),
        gates=(True,),
        ledger=("unknown", "unknown", "unknown"),
    ),
    "cpr-bls-unobserved": ByHand(
        {
            "scene_safety": None,
            # Response, compressions: 2 of 8; nothing known of the calls
            "steps": (25, f("1/4")),
            # 110 a minute, without confidence
            "compressions": (100, f("1")),
            "continuity": None,
            "breaths": None,
        },
        # (2*25 + 3*100) / 5 = 70; 5 of 8 covered
        overall=70,
        coverage=f("5/8"),
        gates=(None,),
        ledger=("unknown", "no_confidence", "unknown"),
    ),
    # --- osce-handwash: weights order 2, completeness 3, duration 1, coverage 2, hygiene 2; 10
    "osce-handwash-strong": ByHand(
        {
            # Thumbs before knuckles: 11 of 12 in order = 0.9167
            "order": (92, f("11/12")),
            "completeness": (100, f("1")),
            # 52 s
            "duration": (100, f("1")),
            # 0.97: 0.94, 0.93: 0.86, equal confidence: 0.9
            "coverage": (90, f("0.9")),
            "hygiene": (100, f("1")),
        },
        # (2*91.667 + 3*100 + 100 + 2*90 + 2*100) / 10 = 963.333 / 10 = 96.333
        overall=96,
        coverage=f("1"),
        gates=(False, False),
    ),
    "osce-handwash-weak": ByHand(
        {
            # soap or wet, then palms, backs, between, wrists, rinse, dry, tap: 8 of 12 = 0.6667;
            # fingertips at 0.45 weigh nothing
            "order": (67, f("8/12")),
            # Palms, backs, between, wrists 1; knuckles, thumbs 0; fingertips not observed: 4 of 6
            "completeness": (67, f("4/6")),
            # 26 s: (26-20)/20 = 0.3
            "duration": (30, f("0.3")),
            # 0.78 at 0.9: 0.56; 0.7 at 0.6: 0.4: (0.504 + 0.24) / 1.5 = 0.496
            "coverage": (50, f("0.496")),
            # No jewellery 1; once right and once wrong is 0: 1/2
            "hygiene": (50, f("0.5")),
        },
        # (2*66.667 + 3*66.667 + 30 + 2*49.6 + 2*50) / 10 = 562.533 / 10 = 56.253: 56, capped to 50
        overall=50,
        uncapped=56,
        coverage=f("1"),
        gates=(False, True),
        ledger=("unknown",),
    ),
    "osce-handwash-unobserved": ByHand(
        {
            # wet, rinse: 2 of 12; the palms were overturned by a teacher
            "order": (17, f("2/12")),
            "completeness": None,
            # 75 s: (120-75)/60 = 0.75
            "duration": (75, f("0.75")),
            "coverage": None,
            "hygiene": None,
        },
        # (2*16.667 + 75) / 3 = 108.333 / 3 = 36.111
        overall=36,
        coverage=f("3/10"),
        gates=(None, None),
        ledger=("overturned", "unknown"),
    ),
    # --- follow-read-en: accuracy 3 (similarity 1, wer 2, completeness 1), pronunciation 3, fluency
    # 2, effort 2 (heard 3, finished 1); together 10
    "follow-read-en-strong": ByHand(
        {
            # Similarity 1, 0.95, 0.9, 0.98 from 0.2 to 1: 1, 0.9375, 0.875, 0.975: 3.7875/4 =
            # 0.946875.
            # wer 0, 0.1, 0.2, 0: 3.7/4 = 0.925. Completeness 3.9/4 = 0.975.
            # (0.946875 + 2*0.925 + 0.975) / 4 = 3.771875 / 4 = 0.94296875
            "accuracy": (94, f("0.94296875")),
            # 0.85*0.8 + 0.8*0.8 + 0.75*0.6 + 0.9*0.8 = 2.49; / 3 = 0.83
            "pronunciation": (83, f("0.83")),
            # 2.2, 2.6, 3.2, 1.8 words/s: 1, 1, (5-3.2)/2 = 0.9, 1: 3.9/4 = 0.975.
            # Pauses 0.15, 0.25, 0.3, 0.2: 1, 0.9, 0.8, 1: 3.7/4 = 0.925. (0.975 + 0.925) / 2
            "fluency": (95, f("0.95")),
            "effort": (100, f("1")),
        },
        # (3*94.296875 + 3*83 + 2*95 + 2*100) / 10 = 921.890625 / 10 = 92.189
        overall=92,
        coverage=f("1"),
    ),
    "follow-read-en-weak": ByHand(
        {
            # The silent turn has no numbers. Similarity 0.6, 0.5, 0.4: 0.5, 0.375, 0.25: 0.375.
            # wer 0.5, 0.75, 1.2: 0.5, 0.25, 0: 0.25. Completeness 0.6, 0.5, 0.4: 0.5.
            # (0.375 + 2*0.25 + 0.5) / 4 = 0.34375
            "accuracy": (34, f("0.34375")),
            # 0.4 and 0.3 at 0.8: 0.35; 0.45 at 0.4 weighs nothing
            "pronunciation": (35, f("0.35")),
            # 0.9, 1.1, 0.7 words/s: 0.4, 0.6, 0.2: 0.4. Pauses 0.5, 0.55, 0.6: 0.4, 0.3, 0.2: 0.3.
            "fluency": (35, f("0.35")),
            # 3 of 4 heard, cancelled: (3*0.75 + 0) / 4 = 0.5625
            "effort": (56, f("0.5625")),
        },
        # (3*34.375 + 3*35 + 2*35 + 2*56.25) / 10 = 390.625 / 10 = 39.0625
        overall=39,
        coverage=f("1"),
        ledger=("unknown",),
    ),
    "follow-read-en-unobserved": ByHand(
        {
            # Nothing recognised the speech: no text, no numbers of text
            "accuracy": None,
            "pronunciation": None,
            # Pauses 0.35, 0.45: 0.7, 0.5: 0.6
            "fluency": (60, f("0.6")),
            # 2 of 2 heard, cancelled: (3*1 + 0) / 4
            "effort": (75, f("0.75")),
        },
        # (2*60 + 2*75) / 4 = 67.5: the half goes up
        overall=68,
        coverage=f("4/10"),
    ),
    # --- follow-read-zh: accuracy 3 (similarity 1, cer 2, completeness 1), fluency 2, effort 2; 7
    "follow-read-zh-strong": ByHand(
        {
            # Similarity 1, 1, 0.8, 1: 1, 1, 0.75, 1: 0.9375. cer 0, 0, 0.2, 0: 0.95. Completeness
            # 1.
            # (0.9375 + 1.9 + 1) / 4 = 0.959375
            "accuracy": (96, f("0.959375")),
            # 3, 3.5, 4.8, 4 characters/s: 1, 1, (7-4.8)/2.5 = 0.88, 1: 0.97.
            # Pauses 0.1, 0.2, 0.3, 0.25: 1, 1, 0.8, 0.9: 0.925. (0.97 + 0.925) / 2
            "fluency": (95, f("0.9475")),
            "effort": (100, f("1")),
        },
        # (3*95.9375 + 2*94.75 + 2*100) / 7 = 677.3125 / 7 = 96.759
        overall=97,
        coverage=f("1"),
    ),
    "follow-read-zh-weak": ByHand(
        {
            # Similarity 0.4, 0.6: 0.25, 0.5: 0.375. cer 0.6, 0.5: 0.4, 0.5: 0.45. Completeness 0.5.
            # (0.375 + 0.9 + 0.5) / 4 = 0.44375
            "accuracy": (44, f("0.44375")),
            # 1.1, 1.4 characters/s: 0.4, 0.6: 0.5. Pauses 0.6, 0.45: 0.2, 0.5: 0.35. 0.85 / 2
            "fluency": (43, f("0.425")),
            # 2 of 4 heard, finished: (3*0.5 + 1) / 4 = 0.625: the half goes up
            "effort": (63, f("0.625")),
        },
        # (3*44.375 + 2*42.5 + 2*62.5) / 7 = 343.125 / 7 = 49.018
        overall=49,
        coverage=f("1"),
    ),
    "follow-read-zh-unobserved": ByHand(
        # One of three turns heard, and no end: 1/3. The only number of text is doubtful.
        {"accuracy": None, "fluency": None, "effort": (33, f("1/3"))},
        overall=33,
        coverage=f("2/7"),
        ledger=("unknown",),
    ),
}


def read(name: str) -> tuple[list[Event], Rubric]:
    events = [decode_line(line, number) for number, line in enumerate(session_lines(name), 1)]
    return events, LIBRARY.of_session(events[0])


def assess(name: str) -> Assessment:
    return score(*read(name))


def test_every_shipped_rubric_has_three_sessions() -> None:
    """Strong, weak, mostly unobserved; each has its computation here, and finds its rubric."""
    assert set(EXPECTED) == set(RUBRIC_SESSIONS)
    shipped = {rubric.id for rubric in LIBRARY.rubrics}
    assert {name.rpartition("-")[0] for name in EXPECTED} == shipped
    assert {read(name)[1].id for name in EXPECTED} == shipped


@pytest.mark.parametrize("name", RUBRIC_SESSIONS)
def test_the_session_keeps_the_protocol(name: str) -> None:
    """`etude events lint` finds nothing to mend."""
    assert list(lint(enumerate(session_lines(name), 1))) == []


@pytest.mark.parametrize("name", RUBRIC_SESSIONS)
def test_every_score_is_the_one_computed_by_hand(name: str) -> None:
    """Each dimension exactly and rounded, overall, coverage, gates, and what is doubtful."""
    found, by_hand = assess(name), EXPECTED[name]
    scored = {
        one.dimension: None if one.value is None else (one.score, one.value)
        for one in found.dimensions
    }
    assert scored == by_hand.dimensions
    assert found.overall_score == by_hand.overall
    assert found.uncapped_score == (by_hand.uncapped or by_hand.overall)
    assert found.coverage == by_hand.coverage
    assert tuple(gate.failed for gate in found.gates) == by_hand.gates
    assert tuple(item.state for item in found.ledger) == by_hand.ledger


@pytest.mark.parametrize("name", RUBRIC_SESSIONS)
def test_the_overall_score_follows_from_the_values_and_weights(name: str) -> None:
    """The weighted mean of the values computed by hand, half up: computed here, in fractions."""
    rubric, by_hand = read(name)[1], EXPECTED[name]
    weights = {key: Fraction(str(one.weight)) for key, one in rubric.dimensions.items()}
    values = {key: one[1] for key, one in by_hand.dimensions.items() if one is not None}
    covered = sum((weights[key] for key in values), Fraction(0))
    mean = sum((weights[key] * value for key, value in values.items()), Fraction(0)) / covered
    assert math.floor(100 * mean + Fraction(1, 2)) == (by_hand.uncapped or by_hand.overall)
    assert covered / sum(weights.values()) == by_hand.coverage


@pytest.mark.parametrize(
    ("name", "dimension", "interval"),
    [
        # p = 0.916, n = 0.9 + 0.6 = 1.5, z² = 3.8416, z²/n = 2.56107:
        # centre (0.916 + 1.28053) / 3.56107 = 0.61682; half 1.96 * sqrt(0.076944/1.5 + 3.8416/9)
        # / 3.56107 = 1.96 * sqrt(0.051296 + 0.426844) / 3.56107 = 0.38059
        ("violin-basic-strong", "rhythm", (23.6, 99.7)),
        # p = 0.75, n = 0.8, z²/n = 4.802: centre (0.75 + 2.401) / 5.802 = 0.54309;
        # half 1.96 * sqrt(0.1875/0.8 + 3.8416/2.56) / 5.802 = 1.96 * 1.31719 / 5.802 = 0.44497
        ("osce-handwash-unobserved", "duration", (9.8, 98.8)),
        # p = 1, n = 0.5, z²/n = 7.6832: lower end 1 / (1 + 7.6832) = 0.11516
        ("cpr-bls-unobserved", "compressions", (11.5, 100.0)),
    ],
)
def test_an_interval_is_the_one_computed_by_hand(
    name: str, dimension: str, interval: tuple[float, float]
) -> None:
    """Wilson's, with the sum of the confidences as the number of observations."""
    found = {one.dimension: one.interval for one in assess(name).dimensions}
    assert found[dimension] == interval


def test_a_step_looked_for_and_missing_is_not_a_step_not_observed() -> None:
    """Missing counts 0, unobserved not at all: that is why it is said apart."""
    events, rubric = read("osce-handwash-weak")
    unsaid = [one for one in events if one.event_type != "signal_detected"]
    (completeness,) = (
        one for one in score(unsaid, rubric).dimensions if one.dimension == "completeness"
    )
    assert completeness.score == 100
    assert [one.signal for one in completeness.parts if one.value is None] == [
        "knuckles",
        "thumbs",
        "fingertips",
    ]


@pytest.mark.parametrize(
    ("app_id", "task_id", "rubric"),
    [
        ("english_learning", "shadowing", "follow-read-en"),
        ("chinese_reading", "follow_read", "follow-read-zh"),
    ],
)
def test_what_a_gateway_writes_is_what_the_rubric_reads(
    app_id: str, task_id: str, rubric: str
) -> None:
    """By the gateway's own words: the task finds the rubric; turns and end make the effort."""
    start = SessionStart(device_id="toy", app_id=app_id, task_id=task_id, mode=Mode.SHADOWING)
    turns = [turn_seen("s", turn(0, heard=True), "read_aloud", None, None)]
    turns.append(turn_seen("s", turn(1, heard=False), "read_aloud", None, None))
    events = [
        written(0, "session_start", "session_begin", start_value(start), start_meta(start)),
        *(written(1 + n, one.event_type, one.signal, one.value) for n, one in enumerate(turns)),
        written(3, "session_end", "session_complete", end_value(EndReason.LIST_COMPLETED)),
    ]
    found = LIBRARY.of_session(events[0])
    assert found.id == rubric
    effort = next(one for one in score(events, found).dimensions if one.dimension == "effort")
    # One of two heard, finished: (3*0.5 + 1) / 4 = 0.625
    assert (effort.score, effort.value) == (63, f("0.625"))


def turn(step_index: int, *, heard: bool) -> Turn:
    return Turn(
        step_index=step_index,
        prompt_text="01.mp3",
        expected_text=None,
        asr_text=None,
        heard=heard,
        packets=(),
        duration_ms=1000,
        window_ms=1200,
    )


def written(ts: float, kind: str, signal: str, value: Any, meta: Any = None) -> Event:
    return Event(
        event_id=f"e{ts}",
        session_id="s",
        ts=float(ts),
        event_type=kind,
        signal=signal,
        value=value,
        confidence=1.0,
        meta=meta,
    )


@pytest.mark.parametrize("name", [one for one in RUBRIC_SESSIONS if one.startswith("follow-read")])
def test_a_recap_of_reading_aloud_knows_no_issue(name: str) -> None:
    """Silence, a lesson left early, a low metric: nothing of it is held against anybody."""
    events, rubric = read(name)
    made = recap(events, PolarityTable(compile_table(rubric)))
    assert made == recap(events)
    assert all(counts.issue == 0 for counts in made.phase_summary.values())
