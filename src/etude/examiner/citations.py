"""The citation check: what a model wrote may say nothing that the evidence does not.

Every event it names is in the chain, every number in the evidence, in digits or words of either
language. It may not judge the person, and it is not longer than a few sentences. A text that fails
is dropped and the template stands (`docs/examiner.md §Words`).
"""

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, Literal

import msgspec

from etude.examiner.numerals import Numeral, numerals
from etude.examiner.report import EvidenceItem, Report

MAX_CHARACTERS: Final = 600
_ROOM: Final = 3
"""A text may be so many times as long as the template."""
_SHORTEST_LIMIT: Final = 160

_BRACKETED: Final = re.compile(r"[\[【]([^\]】]*)[\]】]")
_SEPARATOR: Final = re.compile("[,\uff0c\u3001;\uff1b]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*[A-Za-z0-9]|[A-Za-z0-9]")
_NUMBER_WITH_UNIT: Final = re.compile(
    r"\d+(?:[.,]\d+)*(?:st|nd|rd|th|s|ms|cm|mm|bpm|sec|min|x|times|percent)?(?:-\d+(?:[.,]\d+)*)?(?:s|ms|cm|bpm)?"
    r"|\d+-(?:second|bar|step|beat|minute|note|word)s?",
    re.IGNORECASE,
)
_MARKUP: Final = re.compile(r"[<>`{}\x00-\x08\x0b-\x1f\x7f]|https?:|www\.|\]\(", re.IGNORECASE)
# Nothing about the person: no gifts, no feelings, no diagnoses.
_PERSON: Final = re.compile(
    r"\b(?:iq|intelligen\w*|talent\w*|gifted|genius|smart|clever|stupid|dumb|lazy|careless|weak-willed"
    r"|anxi\w*|depress\w*|stress\w*|nervous\w*|bored\w*|frustrat\w*|angry|sad|afraid|emotion\w*|mood"
    r"|personality|character trait\w*|psycholog\w*|mental\w*|clinical\w*|diagnos\w*|disorder\w*"
    r"|adhd|autis\w*|dyslex\w*)\b"
    r"|智商|情商|天赋|天才|聪明|智力|笨|愚|懒|粗心|焦虑|抑郁|紧张|压力大|自卑|害怕|生气|沮丧|情绪|心情|心理"
    r"|性格|人格|精神|临床|诊断|障碍|多动|自闭|阅读困难",
    re.IGNORECASE,
)

Reason = Literal["empty", "too_long", "unknown_event", "unknown_number", "markup", "person"]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a text is refused, and the part of it."""

    reason: Reason
    said: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a text may speak of.

    Attributes:
        event_ids: the chain: evidence and ledger.
        numbers: as they are.
        percents: that may stand before a percent sign.
        template: the text that stands otherwise.
    """

    event_ids: frozenset[str]
    numbers: frozenset[Fraction]
    percents: frozenset[Fraction]
    template: str


def evidence_of(item: EvidenceItem, report: Report) -> Evidence:
    """Return what may be said about one dimension of a report: its own figures and events.

    `item.narrative` has to be the template's.
    """
    said = numerals(item.narrative)
    numbers = {one.number for one in said if not one.percent}
    percents = {one.number for one in said if one.percent}
    sure = report.uncertainty[item.dimension]
    for bound in (item.score, *(sure.interval or ())):
        if bound is not None:
            numbers.add(Fraction(str(bound)))
    numbers |= {Fraction(len(item.evidence_events)), Fraction(len(item.low_confidence_items))}
    for entry in item.low_confidence_items:
        if entry.edge_confidence is not None:
            confidence = Fraction(str(entry.edge_confidence))
            numbers.add(confidence)
            percents.add(confidence * 100)
    entries = (one.event_id for one in item.low_confidence_items)
    return Evidence(
        event_ids=frozenset((*item.evidence_events, *entries)),
        numbers=frozenset(numbers | {one / 100 for one in percents}),
        percents=frozenset(percents),
        template=item.narrative,
    )


def check_narrative(text: str, evidence: Evidence) -> list[Problem]:
    """Return everything that speaks against `text`; an empty list accepts it."""
    return list(_problems(text, evidence))


def _problems(text: str, evidence: Evidence) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(reason="empty", said="")
    if len(text) > min(MAX_CHARACTERS, max(_SHORTEST_LIMIT, _ROOM * len(evidence.template))):
        yield Problem(reason="too_long", said=f"{len(text)}")
        return  # what follows need not be fast on long texts
    for match in _MARKUP.finditer(text):
        yield Problem(reason="markup", said=match[0])
    for match in _PERSON.finditer(unicodedata.normalize("NFKC", text)):
        yield Problem(reason="person", said=match[0])
    rest, strangers = _without_ids(text, evidence.event_ids)
    for said in strangers:
        yield Problem(reason="unknown_event", said=said)
    for numeral in numerals(rest):
        if not _is_known(numeral, evidence):
            yield Problem(reason="unknown_number", said=numeral.text)


def _is_known(numeral: Numeral, evidence: Evidence) -> bool:
    known = evidence.percents if numeral.percent else evidence.numbers | evidence.percents
    return numeral.number in known


def _without_ids(text: str, known: frozenset[str]) -> tuple[str, list[str]]:
    """Return the text without the ids of the chain, and what looks like another event's id."""
    strangers: list[str] = []

    def cited(match: re.Match[str]) -> str:
        names = (name.strip() for name in _SEPARATOR.split(match[1]))
        strangers.extend(name for name in names if name not in known)
        return " "

    rest = _BRACKETED.sub(cited, text)
    for name in sorted(known, key=len, reverse=True):
        if name in rest and _is_plainly_an_id(name):
            rest = re.sub(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", " ", rest)

    def token(match: re.Match[str]) -> str:
        word = match[0]
        if _is_plainly_an_id(word):
            strangers.append(word)
            return " "
        return word

    return _TOKEN.sub(token, unicodedata.normalize("NFKC", rest)), strangers


def _is_plainly_an_id(word: str) -> bool:
    """Say whether a word cannot be a number: an event may be called `97`, too.

    Such a one is cited in brackets; bare, it is what it looks like.
    """
    mixed = any(map(str.isdigit, word)) and any(one.isascii() and one.isalpha() for one in word)
    return "_" in word or (mixed and _NUMBER_WITH_UNIT.fullmatch(word) is None)
