"""The recap: what a learner reads the moment they stop (`docs/rules.md 12`).

From the events alone, by rule, without network, clock or chance, so that device and server make the
same recap of the same session. Warm, strengths first, no score; what is doubtful is counted as
uncertain and never shown.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from etude.events.model import Event
from etude.events.vocabulary import family_of
from etude.i18n import DEFAULT_LOCALE
from etude.rubric.highlights import MAX_HIGHLIGHTS, Highlight, choose
from etude.rubric.placing import Placed, is_contest, ordered, placed, subject_id
from etude.rubric.polarity import PolarityTable, default_table

RECAP_VERSION: Final = 1

Verdict = Literal["positive", "uncertain", "issue"]


class PhaseCounts(msgspec.Struct, frozen=True):
    """How much of each kind was seen in one phase."""

    positive: int = 0
    uncertain: int = 0
    issue: int = 0


class Recap(msgspec.Struct, frozen=True, kw_only=True):
    """A recap. `highlights` are sentences in `locale`; `highlight_event_ids` say where from."""

    recap_version: int = RECAP_VERSION
    locale: str
    phase_summary: dict[str, PhaseCounts]
    highlights: tuple[str, ...]
    highlight_event_ids: tuple[str, ...]
    uncertainty_count: int


_Counted = tuple[Placed, Verdict]


def recap(
    events: Iterable[Event], table: PolarityTable | None = None, locale: str = DEFAULT_LOCALE
) -> Recap:
    """Make the recap of one session.

    Args:
        events: the session's events, in any order; an id that comes twice counts once.
        table: how they count; else the default table.
        locale: language of the highlights, `en` or `zh-CN`.
    """
    table = default_table() if table is None else table
    counted = _count(placed(ordered(_of_the_edge(events)), table.phases[0]), table)
    chosen = choose([one.event for one, verdict in counted if verdict == "positive"], locale)
    return Recap(
        locale=locale,
        phase_summary=_summary(counted, table.phases),
        highlights=tuple(one.sentence for one in chosen),
        highlight_event_ids=tuple(one.event_id for one in chosen),
        uncertainty_count=sum(verdict == "uncertain" for _, verdict in counted),
    )


def _of_the_edge(events: Iterable[Event]) -> list[Event]:
    """Leave out what the server made: it is never in a recap (`docs/rules.md 9`)."""
    return [event for event in events if not event.is_server_made]


def _count(session: list[Placed], table: PolarityTable) -> list[_Counted]:
    """Judge each event, and each triple once."""
    contested = {subject_id(one.event) for one in session if is_contest(one.event)}
    single_ids = set()
    counted: list[_Counted] = []
    triples: dict[str, list[Placed]] = {}
    for one in session:
        event = one.event
        if family_of(event.event_type) == "triple":
            triples.setdefault(event.correlation_id or event.event_id, []).append(one)
            continue
        single_ids.add(event.event_id)
        verdict = _verdict(event, table, is_contested=event.event_id in contested)
        if verdict is not None:
            counted.append((one, verdict))
    for steps in triples.values():
        counted += _count_triple(steps, table, single_ids)
    return counted


def _verdict(event: Event, table: PolarityTable, *, is_contested: bool) -> Verdict | None:
    counts = table.counts(event)
    if counts == "nowhere":
        return None
    return "uncertain" if is_contested or event.is_doubtful else counts


def _count_triple(
    steps: list[Placed], table: PolarityTable, single_ids: set[str]
) -> list[_Counted]:
    """Count one triple by its judgement; without one, only if what was seen is doubtful."""
    if all(is_contest(one.event) and subject_id(one.event) in single_ids for one in steps):
        return []  # about an event that is no triple and is counted, as uncertain, already
    is_contested = any(is_contest(one.event) for one in steps)
    judged = [one for one in steps if one.event.event_type == "signal_detected"]
    if judged:
        verdict = _verdict(judged[-1].event, table, is_contested=is_contested)
        return [] if verdict is None else [(judged[-1], verdict)]
    doubtful = [one for one in steps if is_contested or one.event.is_doubtful]
    return [(doubtful[-1], "uncertain")] if doubtful else []


def _summary(counted: list[_Counted], phases: tuple[str, ...]) -> dict[str, PhaseCounts]:
    tally = Counter((one.phase, verdict) for one, verdict in counted)
    return {
        phase: PhaseCounts(
            tally[phase, "positive"], tally[phase, "uncertain"], tally[phase, "issue"]
        )
        for phase in (*phases, *_other_phases(counted, phases))
    }


def _other_phases(counted: list[_Counted], usual: tuple[str, ...]) -> list[str]:
    """Return the phases that are not `usual`, in the order of the session."""
    first: dict[str, tuple[float, float, str]] = {}
    for one, _ in counted:
        if one.phase not in usual:
            key = one.event.order_key
            first[one.phase] = min(first.get(one.phase, key), key)
    return sorted(first, key=first.__getitem__)


__all__ = [
    "MAX_HIGHLIGHTS",
    "RECAP_VERSION",
    "Highlight",
    "PhaseCounts",
    "Recap",
    "Verdict",
    "recap",
]
