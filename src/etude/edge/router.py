"""The confidence router: asked, seen, judged (`docs/events.md §Vocabulary`, the triple).

The planner asks (`signal_check_requested`), perception says what it saw (`signal_observation`), the
router judges (`signal_detected`). All three share `correlation_id`. From confidence 0.8 the middle
one may be left out; below 0.5 the judgement is uncertain and offered for review; what the learner
contests always is.

    check = router.check("bow_hold_check", perception_level="L1")
    check.request()
    check.saw("little finger stiff", confidence=0.6)
    check.judge(assertion=False, confidence=0.6)
    check.route  # Route.SUPPORTED
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from etude.clock import Ids
from etude.edge.errors import IllegalMoveError, ObservationMissingError
from etude.edge.session_moves import require_confidence
from etude.edge.session_writer import Observation, SessionWriter
from etude.events.model import TIER_MEDIUM_FROM, Event

ASSERT_FROM: Final = 0.8
"""From this confidence on a judgement stands without a written observation."""


class Route(StrEnum):
    """How sure a judgement is, and so what the coach may do with it."""

    ASSERTED = "asserted"
    """≥ 0.8: may be said."""
    SUPPORTED = "supported"
    """0.5 to 0.8: may be said together with what was seen."""
    UNCERTAIN = "uncertain"
    """Below 0.5, or contested: not shown, left to the examiner."""


def route_of(confidence: float, *, contested: bool = False) -> Route:
    """Return the route of a confidence from 0 to 1."""
    if contested or confidence < TIER_MEDIUM_FROM:
        return Route.UNCERTAIN
    return Route.ASSERTED if confidence >= ASSERT_FROM else Route.SUPPORTED


class CheckState(StrEnum):
    """Where one check is."""

    NEW = "new"
    REQUESTED = "requested"
    SEEN = "seen"
    JUDGED = "judged"


class CheckMove(StrEnum):
    """What can happen to a check."""

    REQUEST = "request"
    SEE = "see"
    JUDGE = "judge"
    CONTEST = "contest"


LEGAL: Final[Mapping[CheckMove, frozenset[CheckState]]] = {
    CheckMove.REQUEST: frozenset({CheckState.NEW}),
    CheckMove.SEE: frozenset({CheckState.REQUESTED, CheckState.SEEN}),
    CheckMove.JUDGE: frozenset({CheckState.REQUESTED, CheckState.SEEN}),
    CheckMove.CONTEST: frozenset({CheckState.SEEN, CheckState.JUDGED}),
}


class Check:
    """One triple, from the question to the judgement. Errors of every move: see `SessionWriter`.

    Attributes:
        state: how far it is.
        route: how sure the judgement is; None before it.
        contested: whether the learner disagreed.
    """

    def __init__(self, writer: SessionWriter, question: Observation) -> None:
        """Use `Router.check`."""
        self._writer = writer
        self._question = question
        self._latest: Event | None = None
        self.state = CheckState.NEW
        self.route: Route | None = None
        self.contested = False

    @property
    def correlation_id(self) -> str | None:
        """What the events of the triple share."""
        return self._question.correlation_id

    def request(self) -> Event:
        """Write that the check is asked for."""
        self._require(CheckMove.REQUEST)
        return self._write(self._question, CheckState.REQUESTED)

    def saw(
        self, detail: str, *, confidence: float, value: Mapping[str, Any] | None = None
    ) -> Event:
        """Write what perception saw; more than once if it looked again."""
        self._require(CheckMove.SEE)
        seen = msgspec.structs.replace(
            self._question,
            event_type="signal_observation",
            confidence=confidence,
            value=dict(value or {}),
            extra={"detail": detail},
        )
        return self._write(seen, CheckState.SEEN)

    def judge(
        self,
        *,
        assertion: bool,
        confidence: float,
        coach_line: str | None = None,
        value: Mapping[str, Any] | None = None,
    ) -> Event:
        """Write the judgement; `route` says afterwards what the coach may do with it.

        Raises:
            ObservationMissingError: below 0.8 what was seen must be written first.
        """
        self._require(CheckMove.JUDGE)
        require_confidence(confidence)
        if self.state is CheckState.REQUESTED and confidence < ASSERT_FROM:
            raise ObservationMissingError(signal=self._question.signal, confidence=confidence)
        self.route = route_of(confidence, contested=self.contested)
        uncertain = self.route is Route.UNCERTAIN
        guess = {"edge_assessment": "possible_ok" if assertion else "possible_issue"}
        judged = msgspec.structs.replace(
            self._question,
            event_type="signal_detected",
            confidence=confidence,
            cloud_review_available=uncertain,
            value=(guess if uncertain else {}) | dict(value or {}),
            extra={"assertion": assertion} | ({"coach_line": coach_line} if coach_line else {}),
        )
        return self._write(judged, CheckState.JUDGED)

    def contest(self, comment: str | None = None) -> Event:
        """Write that the learner disagrees with what was seen or judged; it goes to review."""
        self._require(CheckMove.CONTEST)
        if self._latest is None:
            raise IllegalMoveError(move=CheckMove.CONTEST.value, state=self.state.value)
        self.contested = True
        self.route = self.route and Route.UNCERTAIN
        return self._writer.contest(self._latest, comment)

    def _require(self, move: CheckMove) -> None:
        if self.state not in LEGAL[move]:
            raise IllegalMoveError(move=move.value, state=self.state.value)

    def _write(self, observation: Observation, reached: CheckState) -> Event:
        before = self._writer.last_event
        try:
            return self._writer.observe(observation)
        finally:
            if self._writer.last_event is not before:  # it counts, even if the disk is full
                self._latest, self.state = self._writer.last_event, reached


class Router:
    """Opens checks in a session."""

    def __init__(self, writer: SessionWriter, ids: Ids) -> None:
        """Write into `writer`; correlation ids come from `ids`."""
        self._writer = writer
        self._ids = ids

    def check(
        self,
        signal: str,
        *,
        perception_level: str | None = None,
        primitive: str | None = None,
        value: Mapping[str, Any] | None = None,
    ) -> Check:
        """Return a new check of `signal`; nothing is written before its `request`."""
        question = Observation(
            event_type="signal_check_requested",
            signal=signal,
            value=dict(value or {}),
            perception_level=perception_level,
            primitive=primitive,
            correlation_id=self._ids.new(),
        )
        return Check(self._writer, question)
