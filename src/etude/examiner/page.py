"""The report as a page: one file, no script, the same in the browser, on paper and in a mail.

Every number leads to its events and back. Web serves it, the command line writes it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain, islice
from typing import Final, Literal

import msgspec

from etude.events.model import Event
from etude.examiner.exact import half_up, tenths
from etude.examiner.figures import figure
from etude.examiner.journey import Moment
from etude.examiner.overall import overall
from etude.examiner.phase_numbers import numbered
from etude.examiner.report import GrowthIndicator, LowConfidenceItem, Report, Uncertainty
from etude.examiner.templates import template
from etude.i18n import catalogue, text
from etude.rubric.model import Rubric, title_of
from etude.rubric.placing import Placed, ordered, placed
from etude.rubric.primitives import exact

MOST_EVENTS: Final = 1000
"""Of a longer session the page shows so many: those that a score stands on or that are not sure."""
MOST_LINES: Final = 100
"""So many lines a list has at most, and so many events stand beside a score."""

_SPARK_WIDTH: Final = 120
_SPARK_HEIGHT: Final = 40
_SPARK_ERRORS: Final = 4


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list of revisions; `url` None = not to be opened from here."""

    revision: int
    generated_at: Moment
    url: str | None = None


class _Backing(msgspec.Struct, frozen=True):
    """A dimension that an event stands behind; `number` is its place on the page, from 1."""

    number: int
    title: str


class _Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the timeline, in percent of its length; when it was, in words."""

    title: str
    time: str
    start: float
    width: float


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event on the timeline and in the table; `place` in percent."""

    event_id: str
    anchor: str
    time: str
    place: float
    phase: str
    what: str
    confidence: float | None
    kind: Literal["evidence", "uncertain", "other"]
    dimensions: tuple[_Backing, ...]


def render_page(
    report: Report, events: Sequence[Event], rubric: Rubric, revisions: Sequence[Revision] = ()
) -> str:
    """Return the page of a report, in the report's language.

    Args:
        report: what it shows.
        events: those that the report was made from.
        rubric: the one that the report was made by, for titles.
        revisions: all of the session, newest first; none = only this one.
    """
    view = _View(report, events, rubric)
    own = Revision(revision=report.revision, generated_at=report.generated_at)
    return template("report.html").render(
        report=report,
        practised=None if report.courseware is msgspec.UNSET else report.courseware,
        locale=view.locale,
        events=view.marks,
        overall=overall(report),
        phases=view.phases,
        phase_count=view.phase_count,
        numbers=numbered((one.start, one.width) for one in view.phases),
        total=view.total,
        length_s=view.tenths(view.length_s),
        doubts=view.doubts,
        most=MOST_LINES,
        revisions=revisions or (own,),
        t=view.words,
        counted=view.counted,
        listed=view.listed,
        anchor=view.anchor,
        signal_title=view.signal_title,
        recording_words=view.recording_words,
        figures=view.figures,
        not_reworded=view.not_reworded(),
        percent=_percent,
        number=_number,
        moment=_moment,
        day=_day,
        along=_along,
        spark=view.spark,
    )


class _View:
    """What the template asks for, worked out once."""

    def __init__(self, report: Report, events: Sequence[Event], rubric: Rubric) -> None:
        self.locale = report.inputs.locale
        self._report = report
        self._rubric = rubric
        session = placed(ordered(events), rubric.phases[0].id)
        self.total = len(session)
        self.doubts = tuple(_doubts(report))
        self._backing = _backing(report)
        self._doubtful = frozenset(
            item.event_id for item, _ in self.doubts if item.state == "unknown"
        )
        shown = _shown(session, chain(_named(report), self._doubtful, self._backing))
        self._anchors = {one.event.event_id: f"e-{n}" for n, one in enumerate(shown, 1)}
        self.length_s = max((exact(one.event.ts) for one in session), default=Fraction(0))
        stretches = tuple(self._phases(session))
        self.phase_count = len(stretches)
        self.phases = stretches[:MOST_LINES]
        self.marks = tuple(map(self._mark, shown))

    def words(self, key: str, **params: object) -> str:
        return text(f"examiner.page.{key}", self.locale, **params)

    def counted(self, key: str, count: int, **params: object) -> str:
        return self.words(f"{key}.{'one' if count == 1 else 'many'}", count=count, **params)

    def tenths(self, seconds: Fraction) -> str:
        return figure(seconds, None, self.locale)

    def listed(self, titles: Sequence[str]) -> str:
        return text("examiner.list.comma", self.locale).join(titles)

    def anchor(self, event_id: str) -> str:
        return self._anchors.get(event_id, "")

    def signal_title(self, name: str) -> str:
        found = self._rubric.signals.get(name)
        usual = catalogue(self.locale).get(f"examiner.signal.{name}", name)
        return title_of({} if found is None else found.title, usual, self.locale)

    def figures(self, one: GrowthIndicator) -> str:
        """Return the values of a comparison as its words have them: 70%, 80%."""
        unit = self._rubric.signals[one.metric].unit
        return self.listed([figure(exact(each.value), unit, self.locale) for each in one.values])

    def spark(self, one: GrowthIndicator) -> str:
        """Return the points of a growth line; what is within the error looks level."""
        error = next(each.error for each in self._rubric.growth if each.metric == one.metric)
        return _spark([exact(each.value) for each in one.values], exact(error))

    def recording_words(self, item: LowConfidenceItem) -> str:
        state = "missing_short" if item.recording == "missing" else item.recording
        return self.words(f"recording_{state}")

    def not_reworded(self) -> str:
        """Return why no model reworded the report, or not all of it; empty: nothing kept it."""
        code = self._report.not_reworded
        if code is msgspec.UNSET:
            return ""
        usual = self.words("not_reworded.else", code=code)
        why = catalogue(self.locale).get(f"examiner.page.not_reworded.{code}", usual)
        chain = self._report.examiner_assessment.evidence_chain
        partly = any(item.narrative_source == "model" for item in chain)
        return self.words("reworded_partly" if partly else "reworded_not", why=why)

    def _phases(self, session: Sequence[Placed]) -> Iterator[_Phase]:
        """Yield each stretch of one phase, from its first event to the next one's."""
        starts: list[tuple[str, Fraction]] = []
        for one in session:
            if not starts or starts[-1][0] != one.phase:
                latest = max([exact(one.event.ts), *(at for _, at in starts[-1:])])
                starts.append((one.phase, latest if starts else Fraction(0)))
        ends = [at for _, at in starts[1:]] + [self.length_s]
        for (phase, start), end in zip(starts, ends, strict=True):
            left, right = self._place(start), self._place(end)
            yield _Phase(
                title=self._phase_title(phase),
                time=self._time(start, end),
                start=left,
                width=max(tenths(exact(right - left)), 0.0),
            )

    def _time(self, start: Fraction, end: Fraction) -> str:
        first, last = self.tenths(start), self.tenths(end)
        if first == last:
            return figure(start, "s", self.locale)
        return self.words("phase_time", first=first, last=last)

    def _phase_title(self, name: str) -> str:
        known = next((one.title for one in self._rubric.phases if one.id == name), {})
        usual = catalogue(self.locale).get(f"recap.phase.{name}", name)
        return title_of(known, usual, self.locale)

    def _place(self, at_s: Fraction) -> float:
        return tenths(at_s / self.length_s * 100) if self.length_s else 0.0

    def _mark(self, one: Placed) -> _Mark:
        event = one.event
        kind = catalogue(self.locale).get(f"examiner.event.{event.event_type}", event.event_type)
        known = event.signal in self._rubric.signals
        what = f"{kind} · {self.signal_title(event.signal)}" if known else kind
        backing = self._backing.get(event.event_id, ())
        uncertain = event.event_id in self._doubtful
        return _Mark(
            event_id=event.event_id,
            anchor=self.anchor(event.event_id),
            time=figure(exact(round(event.ts, 1)), "s", self.locale),
            place=self._place(exact(event.ts)),
            phase=self._phase_title(one.phase),
            what=what,
            confidence=event.confidence,
            kind="uncertain" if uncertain else "evidence" if backing else "other",
            dimensions=backing,
        )


def _named(report: Report) -> Iterator[str]:
    """Yield the ids of the events that stand in the lists of the page."""
    found = report.examiner_assessment
    for gate in found.safety:
        yield from gate.evidence_events[:MOST_LINES]
    for item in found.evidence_chain:
        yield from item.evidence_events[:MOST_LINES]
    yield from (entry.event_id for entry, _ in islice(_doubts(report), MOST_LINES))


def _shown(session: Sequence[Placed], wanted: Iterable[str]) -> Sequence[Placed]:
    """Return the events that the page has place for, in their order, `wanted` ones first."""
    if len(session) <= MOST_EVENTS:
        return session
    others = (one.event.event_id for one in session)
    chosen = frozenset(islice(dict.fromkeys(chain(wanted, others)), MOST_EVENTS))
    return [one for one in session if one.event.event_id in chosen]


def _backing(report: Report) -> Mapping[str, tuple[_Backing, ...]]:
    found: dict[str, tuple[_Backing, ...]] = {}
    for number, item in enumerate(report.examiner_assessment.evidence_chain, 1):
        for event_id in item.evidence_events:
            found[event_id] = (*found.get(event_id, ()), _Backing(number, item.title))
    return found


def _doubts(report: Report) -> Iterator[tuple[LowConfidenceItem, str | None]]:
    """Yield each entry of the ledger once, with the first dimension that it belongs to."""
    seen = set()
    found = report.examiner_assessment
    for item in found.evidence_chain:
        for entry in item.low_confidence_items:
            if entry.event_id not in seen:
                seen.add(entry.event_id)
                yield entry, item.title
    for entry in found.other_low_confidence_items:
        yield entry, None


def _percent(share: float) -> int:
    return half_up(exact(share) * 100)


def _number(value: float) -> str:
    return f"{value:g}"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def _along(sure: Uncertainty, value: float) -> float:
    """Return a value's place on its scale, in percent."""
    low, high = sure.scale
    return tenths((exact(value) - low) / (high - low) * 100)


def _spark(values: Sequence[Fraction], error: Fraction) -> str:
    """Return the points of a growth line, from left to right, high values up.

    Its whole height is at least `_SPARK_ERRORS` errors, so that a change of none is no slope.
    """
    middle = (min(values) + max(values)) / 2
    span = max(max(values) - min(values), _SPARK_ERRORS * error)
    points = []
    for index, value in enumerate(values):
        across = tenths(Fraction(index * _SPARK_WIDTH, max(len(values) - 1, 1)))
        share = (value - middle) / span if span else Fraction(0)
        points.append(f"{across:g},{tenths((Fraction(1, 2) - share) * _SPARK_HEIGHT):g}")
    return " ".join(points)
