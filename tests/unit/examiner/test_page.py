"""The page of a report: whole, closed in itself, safe, in its language."""

from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.events.vocabulary import VOCABULARY
from etude.examiner.examining import make_report
from etude.examiner.page import MOST_EVENTS, MOST_LINES, Revision, render_page
from etude.examiner.report import Report, as_earlier
from etude.i18n import LOCALES, catalogue
from etude.llm.errors import LlmError
from etude.people.spending.errors import MonthSpentError, PriceMissingError, QuotaSpentError
from etude.rubric.library import RubricLibrary
from etude.testing.builders import event, session
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


@pytest.mark.parametrize(
    ("locale", "code", "says"),
    [
        ("en", "QUOTA_SPENT", "reworded this report: the day's quota was used up."),
        ("zh-CN", "MONTH_QUOTA_SPENT", "当月的额度已用完。"),
        ("en", "LLM_NEW", "reworded this report: it could not be asked (LLM_NEW)."),
    ],
)
def test_why_no_model_reworded_it_stands_at_the_foot(locale: str, code: str, says: str) -> None:
    """In words, below everything that a family reads; a code without words of its own is named."""
    report = msgspec.structs.replace(made(locale=locale), not_reworded=code)
    page = read(render_page(report, EVENTS, RUBRIC)).text
    assert page.count(says) == 1
    assert page.index(catalogue(locale)["examiner.page.check"]) < page.index(says)


@pytest.mark.parametrize("locale", LOCALES)
def test_without_a_hindrance_nothing_is_said_of_models(locale: str) -> None:
    """Where none is configured, the page is as if there were none."""
    page = read(render_page(made(locale=locale), EVENTS, RUBRIC)).text
    assert "language model" not in page
    assert "语言模型" not in page


def test_a_report_that_was_reworded_in_part_says_so() -> None:
    """The quota ended between two dimensions: one is a model's, the others are templates."""
    report = made()
    found = report.examiner_assessment
    first, *others = found.evidence_chain
    chain = (msgspec.structs.replace(first, narrative_source="model"), *others)
    changed = msgspec.structs.replace(
        report,
        examiner_assessment=msgspec.structs.replace(found, evidence_chain=chain),
        not_reworded="QUOTA_SPENT",
    )
    page = read(render_page(changed, EVENTS, RUBRIC)).text
    assert "only a part of this report: the day's quota was used up." in page


def test_every_error_that_ends_rewording_has_words() -> None:
    """What the job notes is a code of spending or a pointless one of the model's: none is bare."""
    pointless = [one for one in LlmError.__subclasses__() if one.retry_is_pointless]
    noted = {one.code for one in (*pointless, QuotaSpentError, MonthSpentError, PriceMissingError)}
    assert "LLM_REFUSED" in noted
    for locale in LOCALES:
        assert {f"examiner.page.not_reworded.{code}" for code in noted} <= set(catalogue(locale))


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


@pytest.mark.parametrize(("count", "said"), [(1, "1 event over 15 s"), (2, "2 events over 15 s")])
def test_events_are_counted_in_words(count: int, said: str) -> None:
    """One event is not "1 events"."""
    events = [event(f"e{n}", ts=15.0) for n in range(count)]
    assert said in read(render_page(made(events), events, RUBRIC)).text


def test_what_was_never_recorded_is_not_said_to_be_on_its_way() -> None:
    """It has a heading of its own, and leads to the events."""
    events = [event("x"), event("t1", event_type="signal_observation", value={"heard": True})]
    page = read(render_page(made(events), events, RUBRIC))
    assert "Heard, and never recorded: t1" in " ".join(page.text.split())
    assert "What has not arrived" not in page.text


@pytest.mark.parametrize("locale", LOCALES)
def test_the_protocol_s_words_have_titles(locale: str) -> None:
    """Each type and signal of the vocabulary, so that no page shows a name from the wire."""
    known = catalogue(locale)
    names = {f"examiner.event.{kind}" for kind in VOCABULARY}
    names |= {f"examiner.signal.{one}" for kind in VOCABULARY.values() for one in kind.signals}
    assert names - known.keys() == set()


def test_a_signal_without_a_rubric_s_title_is_in_the_page_s_language() -> None:
    """A contested one that the rubric does not know stands in the ledger under its usual title."""
    contest = event("c", event_type="signal_contested", value={"event_id": "e012"}, ts=170.0)
    events = [*EVENTS, msgspec.structs.replace(contest, session_id=EVENTS[0].session_id)]
    page = render_page(made(events, locale="zh-CN"), events, RUBRIC)
    assert "自我评价" in page
    assert "self assessment" not in page


def journey(*accuracies: float) -> tuple[Report, list[Event], Reader]:
    """Return the last of sessions whose intonation was so, and its page."""
    history: list[Any] = []
    for number, accuracy in enumerate(accuracies):
        pitch = event(
            f"p{number}",
            session_id=f"s{number}",
            event_type="audio_observation",
            signal="pitch_accuracy",
            value={"accuracy": accuracy},
            journey_id="j",
        )
        report = make_report(
            [pitch], RUBRIC, tuple(history), locale="en", clock=SystemClock(), ids=RandomIds()
        )
        history.append(as_earlier(report))
    return report, [pitch], read(render_page(report, [pitch], RUBRIC))


def heights(page: Reader) -> list[float]:
    (line,) = page.values("points")
    return [float(point.split(",")[1]) for point in line.split()]


def test_a_change_within_the_error_is_no_slope() -> None:
    """70 to 71 with an error of 2 is drawn nearly level; 50 to 90 takes the whole height."""
    *_, level = journey(0.7, 0.7, 0.71)
    assert max(heights(level)) - min(heights(level)) == pytest.approx(5.0, abs=0.11)
    *_, steep = journey(0.5, 0.7, 0.9)
    assert heights(steep) == [40.0, 20.0, 0.0]


def test_growth_is_told_as_it_is_written() -> None:
    """To a reader of the screen too: per cent, not the ratios of the JSON."""
    *_, page = journey(0.5, 0.7, 0.9)
    assert "Intonation: 50%, 70%, 90%" in page.values("aria-label")
    assert "Overall scores of earlier sessions:" in page.text


def test_every_picture_has_words_or_is_none() -> None:
    """An SVG says what it is to a reader of the screen, or is left out for it."""
    page = journey(0.5, 0.7, 0.9)[2]
    outer = [said for tag, said in page.tags if tag == "svg" and "y" not in said]
    assert len(outer) > 5
    for said in outer:
        assert said.get("aria-hidden") == "true" or said.get("aria-label"), said
