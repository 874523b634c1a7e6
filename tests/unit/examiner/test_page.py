"""The page of a report: whole, closed in itself, safe, in its language."""

from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.examining import make_report
from etude.examiner.page import MOST_EVENTS, MOST_LINES, Revision, render_page
from etude.examiner.report import Report
from etude.rubric.library import RubricLibrary
from etude.testing.builders import session
from etude.testing.samples import sample_lines

LIBRARY = RubricLibrary.load()
RUBRIC = LIBRARY.get("violin-basic")
EVENTS = [decode_line(line) for line in sample_lines("violin-3min")]
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Keeps tags, ids, links and text; notices what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, found in self.tags if (value := found.get(name)) is not None]


def made(events: list[Event] = EVENTS, **options: Any) -> Report:
    given = {"locale": "en", "clock": SystemClock(), "ids": RandomIds(), **options}
    return make_report(events, RUBRIC, **given)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.mark.parametrize(("locale", "word"), [("en", "Next step"), ("zh-CN", "下一步")])
def test_the_page_is_in_its_language(locale: str, word: str) -> None:
    """`lang` says which; headings and narrative are in it."""
    page = read(render_page(made(locale=locale), EVENTS, RUBRIC))
    assert page.tags[0] == ("html", {"lang": locale})
    assert word in page.text
    assert made(locale=locale).examiner_assessment.recommendations[0] in page.text


def test_every_link_has_its_target() -> None:
    """Evidence leads to its event and back to its dimension; no id stands twice."""
    page = read(render_page(made(), EVENTS, RUBRIC))
    ids = page.values("id")
    targets = [link.removeprefix("#") for link in page.values("href")]
    assert len(ids) == len(set(ids))
    assert set(targets) <= set(ids)
    assert len([one for one in ids if one.startswith("e-")]) == len(EVENTS)


def test_the_page_is_closed_in_itself() -> None:
    """No script, no style sheet, font or picture from elsewhere."""
    page = render_page(made(), EVENTS, RUBRIC)
    reader = read(page)
    assert {tag for tag, _ in reader.tags} & {"script", "link", "img", "iframe", "object"} == set()
    assert reader.values("src") == []
    assert "url(" not in page
    assert "http" not in page


def test_nothing_that_was_sent_becomes_markup() -> None:
    """Ids, phases, types and reviewers' notes are shown as they are."""
    hostile = "<script>alert(1)</script>"
    events = [
        msgspec.structs.replace(one, phase=hostile, event_type=f"{one.event_type}<i>")
        if one.event_id == "e012"
        else one
        for one in EVENTS
    ]
    review = Event(
        event_id="<b>r</b>",
        session_id="s-abc-123",
        ts=80.0,
        event_type="signal_reviewed",
        signal="bow_hold_check",
        value={"event_id": "e008", "verdict": "confirmed", "note": hostile},
        meta={"producer": "server"},
    )
    events.append(review)
    page = render_page(made(events), events, RUBRIC)
    assert hostile in read(page).text
    assert hostile not in page
    assert "<b>r</b>" not in page


def test_without_evidence_the_page_says_so() -> None:
    """No score and no 0 in its place."""
    page = read(render_page(made(EVENTS[:2]), EVENTS[:2], RUBRIC))
    assert "no score" in page.text
    assert page.text.count("not observed") >= len(RUBRIC.dimensions)


def test_revisions_lead_to_each_other() -> None:
    """Earlier ones by their address; the one shown is marked."""
    report = made(revision=2)
    revisions = [
        Revision(revision=2, generated_at=report.generated_at, url="?revision=2"),
        Revision(revision=1, generated_at=report.generated_at, url="?revision=1"),
    ]
    page = read(render_page(report, EVENTS, RUBRIC, revisions))
    assert {"?revision=1", "?revision=2"} <= set(page.values("href"))
    assert "this one" in page.text


@pytest.mark.parametrize("rubric", LIBRARY.rubrics, ids=lambda rubric: rubric.key)
def test_every_rubric_has_its_page(rubric: Any) -> None:
    """Long sessions too, with gaps, a journey's growth and marks at one time."""
    events = [
        msgspec.structs.replace(one, journey_id="j", ts=1.0) for one in session(60) if one.seq != 9
    ]
    clock, ids = SystemClock(), RandomIds()
    report = make_report(events, rubric, locale="zh-CN", clock=clock, ids=ids)
    assert "第 9 个事件尚未到达" in read(render_page(report, events, rubric)).text


@pytest.mark.parametrize("confidence", [0.9, 0.3])
def test_a_very_long_session_has_a_page_of_bounded_size(confidence: float) -> None:
    """It shows what its lists name, says how much more there is, and every link still leads on."""
    pitch = next(one for one in EVENTS if one.event_id == "e006")
    events = [
        msgspec.structs.replace(pitch, event_id=f"x{n}", phase=f"p{n}", ts=float(n), seq=2 * n + 2)
        for n in range(3 * MOST_EVENTS)
    ]
    events = [msgspec.structs.replace(one, confidence=confidence) for one in events]
    text = render_page(made(events), events, RUBRIC)
    page = read(text)
    targets = {link.removeprefix("#") for link in page.values("href")}
    assert targets <= set(page.values("id"))
    assert len([one for one in page.values("id") if one.startswith("e-")]) == MOST_EVENTS
    assert f"and {3 * MOST_EVENTS - MOST_LINES} more" in page.text
    assert f"{3 * MOST_EVENTS} events" in page.text
    assert f"This page shows {MOST_EVENTS} of them" in page.text
    assert len(text) < 1_000_000


def test_the_page_names_the_course_that_was_practised() -> None:
    """Title, version and scene for people, the pin beside it; what a device says is only text."""
    first, *others = EVENTS
    pin = {
        "courseware_id": "cw-1",
        "version": 2,
        "content_hash": "sha256:" + "a" * 64,
        "scene_id": "p1",
        "title": "<b>Tides</b>",
        "scene_title": "Read aloud",
    }
    events = [msgspec.structs.replace(first, meta={"courseware": pin}), *others]
    page = read(render_page(made(events), events, RUBRIC)).text
    assert "From the course module “<b>Tides</b>”, version 2: Read aloud" in page
    assert f"cw-1 · p1 · {pin['content_hash']}" in page
    assert "course module" not in read(render_page(made(), EVENTS, RUBRIC)).text
