"""A journey: one skill practised across sessions, as far as a report looks back at it.

What a report knows of an earlier session is an `EarlierSession`, taken from that session's own
report. It is an input like the events: its digest stands in the later report.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from etude.examiner.digests import digest_of

Moment = Annotated[datetime, Meta(tz=True)]
Ratio = Annotated[str, Meta(pattern=r"^-?[0-9]{1,4000}(/[1-9][0-9]{0,3999})?$(?!\n)")]
"""An exact number: `91/100`."""

_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A growth metric's number in one session, exactly, and who measured it."""

    value: Ratio
    methods: tuple[str, ...] = ()

    @property
    def number(self) -> Fraction:
        """The number."""
        return Fraction(self.value)


class EarlierSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the same journey before this one, as its report found it.

    Attributes:
        rubric: `id@version` that it was scored by.
        methods: what made its server-made evidence.
        measures: its growth metrics.
    """

    session_id: str
    journey_id: str
    started_at: Moment | None = None
    rubric: str
    overall_score: int | None
    methods: tuple[str, ...] = ()
    measures: Mapping[str, Measure] = {}

    @property
    def digest(self) -> str:
        """The sha256 of what it says. The server's time is no part: it may have been estimated."""
        return digest_of(msgspec.structs.replace(self, started_at=None))


def of_journey(
    history: Iterable[EarlierSession], journey_id: str | None, session_id: str
) -> tuple[EarlierSession, ...]:
    """Return the other sessions of a journey, oldest first, each once."""
    found = {
        one.session_id: one
        for one in history
        if journey_id is not None and one.journey_id == journey_id and one.session_id != session_id
    }
    return tuple(sorted(found.values(), key=_age))


def _age(one: EarlierSession) -> tuple[datetime, str]:
    return (one.started_at or _LONG_AGO, one.session_id)
