"""The end of `etude demo`: the examiner's reports and the learner's card, as files to open."""

import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from etude.cli.errors import DemoBrokenError
from etude.files import Files, replace_file
from etude.net import HttpClient, Reply

REPORT: Final = "report.html"
CARD: Final = "card.html"
LESSON: Final = "practice.html"
"""The toy's lesson, where `REPORT` is of the violin."""
VIOLIN: Final = "violin.html"
"""The violin, where `REPORT` is of the lesson that was spoken."""
PAGES: Final = (REPORT, CARD, LESSON, VIOLIN)
PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.2
_OK: Final = 200
_CREATED: Final = 201
_WAITING: Final = 202
_PAGE: Final = {"Accept": "text/html"}
_JSON: Final = {"Content-Type": "application/json"}


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """Which revision of a report was read, and its score, as `summary.json` has it."""

    revision: int
    overall_score: int | None


def write_report(
    page: Path, url: str, token: str, session_id: str, *, whole: bool = False
) -> dict[str, Any]:
    """Wait for a session's report, write its page; return the report.

    Args:
        page: the file.
        url: where web is.
        token: of somebody who may read it.
        session_id: of the session.
        whole: see `report_when_made`.

    Raises:
        DemoBrokenError: it did not come about.
    """
    path = f"/api/v1/sessions/{session_id}"
    with HttpClient(url, bearer=token) as client:
        report = report_when_made(client, path, whole=whole)
        shown = _whole(client.send("GET", f"{path}/report", b"", _PAGE), _OK, "report")
    replace_file(Files(), page, shown, mode=0o644)
    return report


def write_card(
    page: Path, url: str, token: str, report: dict[str, Any], minutes: float, locale: str
) -> None:
    """Make the card of a report, as the learner's app does, and write its page.

    Args:
        page: the file.
        url: where web is.
        token: of the learner who practised.
        report: of the session.
        minutes: practised so far.
        locale: of whoever opens it.

    Raises:
        DemoBrokenError: it did not come about.
    """
    path = f"/api/v1/sessions/{report['session_id']}/summary-card"
    card = msgspec.json.encode(_card(report, minutes))
    with HttpClient(url, bearer=token) as client:
        made = _decoded(client.send("POST", path, card, _JSON), "card", _CREATED)
    address = urlsplit(made["teacher_view_url"]).path
    with HttpClient(url) as anybody:
        language = {"Accept-Language": locale}
        shown = _whole(anybody.send("GET", address, b"", _PAGE | language), _OK, "card")
    replace_file(Files(), page, shown, mode=0o644)


def told(report: dict[str, Any]) -> Reported:
    """Return what `summary.json` has of a report."""
    score = report["examiner_assessment"]["overall_score"]
    return Reported(revision=report["revision"], overall_score=score)


def report_when_made(client: HttpClient, path: str, *, whole: bool = False) -> dict[str, Any]:
    """Wait for the report of the session at `path`.

    Args:
        client: who may read it.
        path: of the session.
        whole: whether to wait for a revision that stands on every event there is: the first one
            does not wait long for metrics.

    Raises:
        DemoBrokenError: it does not come.
    """
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        reply = client.send("GET", f"{path}/report", b"", {})
        late = time.monotonic() > ends_s
        if reply.status != _WAITING or late:
            report = _decoded(reply, "report")
            if not whole or report["inputs"]["event_count"] == _events(client, path):
                return report
            _require(not late, "metrics in the report")
        time.sleep(_LOOK_S)


def _events(client: HttpClient, path: str) -> int:
    events: int = _decoded(client.send("GET", path, b"", {}), "session")["events"]
    return events


def _card(report: dict[str, Any], minutes: float) -> dict[str, Any]:
    """Return what the card is given: the recap's words, and no score."""
    before = report["journey_context"]["sessions"]
    return {
        "recap_highlights": report["recap_summary"]["highlights"],
        "uncertainty_count": report["recap_summary"]["uncertainty_count"],
        "journey_progress": {"sessions": len(before) + 1, "minutes": minutes},
        "journey_id": report["journey_context"]["journey_id"],
    }


def _decoded(reply: Reply, what: str, status: int = _OK) -> dict[str, Any]:
    return msgspec.json.decode(_whole(reply, status, what), type=dict[str, Any])


def _whole(reply: Reply, status: int, what: str) -> bytes:
    _require(reply.status == status, what)
    return reply.body


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
