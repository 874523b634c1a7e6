"""The timeline of a report's page: whatever the phases are, their labels can be read.

Places are read from the SVG. Text has the size that its style says, whatever the screen's width.
"""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.examiner.examining import make_report
from etude.examiner.page import MOST_LINES, render_page
from etude.examiner.phase_numbers import NARROWEST_PX, numbered
from etude.rubric.library import RubricLibrary
from etude.testing.builders import event

RUBRIC = RubricLibrary.load().get("violin-basic")
SIZE_PX = 12
DIGIT_PX = 0.7 * SIZE_PX  # DejaVu Sans Bold, the widest of the page's fonts
NUMBER = re.compile(r'<text class="phase-number" x="([\d.]+)%" y="(\d+)"[^>]*>(\d+)</text>')
LISTED = re.compile(r'<li><b>(\d+)</b> (.*?) <span class="quiet">(.*?)</span></li>')
BAND = re.compile(r'<rect class="band[^"]*" x="([\d.]+)%" y="0" width="([\d.]+)%"')


def page(phases: list[tuple[str, float]]) -> str:
    """Return the page of a session with an event of each phase at its second."""
    events: list[Event] = [
        event(f"e{n}", phase=phase, ts=ts) for n, (phase, ts) in enumerate(phases)
    ]
    report = make_report(events, RUBRIC, locale="en", clock=SystemClock(), ids=RandomIds())
    return render_page(report, events, RUBRIC)


def boxes(html: str, width_px: int) -> list[tuple[float, float, int]]:
    """Return left edge, right edge and base line of each number, in pixels."""
    found = []
    for x, y, number in NUMBER.findall(html):
        middle, half = float(x) / 100 * width_px, len(number) * DIGIT_PX / 2
        found.append((middle - half, middle + half, int(y)))
    return found


def overlapping(found: list[tuple[float, float, int]]) -> list[object]:
    return [
        (a, b)
        for a, b in combinations(found, 2)
        if a[0] < b[1] and b[0] < a[1] and abs(a[2] - b[2]) < SIZE_PX
    ]


TIMES = st.lists(st.floats(0, 3600).map(lambda at: round(at, 1)), min_size=1, max_size=60)


@given(times=TIMES, width_px=st.sampled_from([NARROWEST_PX, 320, 664]))
def test_no_two_labels_overlap(times: list[float], width_px: int) -> None:
    """Wherever phases change, on a small phone, a phone and a desk: each label stands alone."""
    html = page([(f"p{n}", at) for n, at in enumerate(sorted(times))])
    found = boxes(html, width_px)
    assert found
    assert overlapping(found) == []
    assert all(left >= -0.2 and right <= width_px + 0.2 for left, right, _ in found)


def test_labels_that_overlap_would_be_seen() -> None:
    """The check above can fail: two numbers at one place are found."""
    twice = '<text class="phase-number" x="5%" y="11">1</text>' * 2
    assert len(overlapping(boxes(twice, NARROWEST_PX))) == 1


def test_a_number_stands_over_its_phase() -> None:
    """In its middle, in the row next to the bands, where there is room."""
    html = page([("preparation", 0.0), ("operation", 40.0), ("cleanup", 70.0), ("cleanup", 100.0)])
    bands = [(float(x), float(width)) for x, width in BAND.findall(html)]
    assert bands == [(0.0, 40.0), (40.0, 30.0), (70.0, 30.0)]
    assert [float(x) for x, _, _ in NUMBER.findall(html)] == [20.0, 55.0, 85.0]
    assert {y for _, y, _ in NUMBER.findall(html)} == {"11"}


def test_every_phase_is_named_in_full() -> None:
    """Short ones, long names and phases at one moment too: with number and time, never cut."""
    long = "a phase whose name is far longer than the narrow band that it has on any telephone"
    html = page([("preparation", 0.0), (long, 1.5), ("operation", 1.5), ("cleanup", 120.0)])
    assert LISTED.findall(html) == [
        ("1", "Getting ready", "0–1.5 s"),  # noqa: RUF001 - a range
        ("2", long, "1.5 s"),
        ("3", "Playing", "1.5–120 s"),  # noqa: RUF001 - a range
        ("4", "Packing up", "120 s"),
    ]
    assert "ellipsis" not in html


def test_a_number_without_room_is_left_to_the_list() -> None:
    """Forty phases in one second: a few numbers, no heap of them, and forty lines."""
    html = page([(f"p{n}", 100 + n / 40) for n in range(40)])
    assert len(NUMBER.findall(html)) < 10
    assert [number for number, _, _ in LISTED.findall(html)] == [str(n) for n in range(1, 41)]


def test_more_phases_than_lines_are_counted() -> None:
    """The list says how many it does not name."""
    html = page([(f"p{n}", float(n)) for n in range(MOST_LINES + 7)])
    assert len(LISTED.findall(html)) == MOST_LINES
    assert "<li>and 7 more</li>" in html


@pytest.mark.parametrize("spans", [[(0.0, 0.0)], [(100.0, 0.0)], [(0.0, 100.0)]])
def test_one_phase_has_its_number(spans: list[tuple[float, float]]) -> None:
    """At either end and without any length, inside the timeline."""
    (only,) = numbered(spans)
    assert (only.number, only.row) == (1, 0)
    assert 0 < only.middle < 100
