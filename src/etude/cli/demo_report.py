"""The end of `etude demo`: the examiner's report and the learner's card, as files to open."""

import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from etude.cli.errors import DemoBrokenError
from etude.files import Files, replace_file
from etude.net import HttpClient, Reply
from etude.rubric.recap import Recap

REPORT: Final = "report.html"
CARD: Final = "card.html"
PATIENCE_S: Final = 120.0
_OK: Final = 200
_CREATED: Final = 201
_WAITING: Final = 202
_PAGE: Final = {"Accept": "text/html"}
_JSON: Final = {"Content-Type": "application/json"}


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """Which revision of the report was read, and its score, as `summary.json` has it."""

    revision: int
    overall_score: int | None


def report_and_card(
    folder: Path, url: str, token: str, session_id: str, shown: Recap, locale: str
) -> Reported:
    """Wait for the session's report, make a card; write both pages into `folder`.

    Raises:
        DemoBrokenError: one of them did not come about.
    """
    path = f"/api/v1/sessions/{session_id}"
    with HttpClient(url, bearer=token) as client:
        report = report_when_made(client, path)
        page = _whole(client.send("GET", f"{path}/report", b"", _PAGE), _OK, "report")
        card = msgspec.json.encode(_card(report, shown))
        made = _whole(client.send("POST", f"{path}/summary-card", card, _JSON), _CREATED, "card")
        address = urlsplit(msgspec.json.decode(made, type=dict[str, Any])["teacher_view_url"]).path
    with HttpClient(url) as anybody:
        language = {"Accept-Language": locale}
        shown_card = _whole(anybody.send("GET", address, b"", _PAGE | language), _OK, "card")
    for name, content in ((REPORT, page), (CARD, shown_card)):
        replace_file(Files(), folder / name, content, mode=0o644)
    score = report["examiner_assessment"]["overall_score"]
    return Reported(revision=report["revision"], overall_score=score)


def report_when_made(client: HttpClient, path: str) -> dict[str, Any]:
    """Wait for the report of the session at `path`; raises `DemoBrokenError`."""
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        reply = client.send("GET", f"{path}/report", b"", {})
        if reply.status != _WAITING or time.monotonic() > ends_s:
            body = _whole(reply, _OK, "report")
            return msgspec.json.decode(body, type=dict[str, Any])
        time.sleep(0.2)


def _card(report: dict[str, Any], shown: Recap) -> dict[str, Any]:
    """Return what the device gives to the card: the recap's words, and no score."""
    before = report["journey_context"]["sessions"]
    return {
        "recap_highlights": list(shown.highlights),
        "uncertainty_count": report["recap_summary"]["uncertainty_count"],
        "journey_progress": {"sessions": len(before) + 1, "minutes": 3},
        "journey_id": report["journey_context"]["journey_id"],
    }


def _whole(reply: Reply, status: int, what: str) -> bytes:
    if reply.status != status:
        raise DemoBrokenError(what=what)
    return reply.body
