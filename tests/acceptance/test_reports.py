"""Reports and cards as a caller sees them: over HTTP, with a real worker, on both databases."""

import io
import itertools
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from etude.testing.installation import Served
from etude.testing.samples import sample_lines
from etude.testing.server import ServerProcess

NDJSON = {"Content-Type": "application/x-ndjson"}
PATIENCE_S = 150.0


@pytest.fixture(scope="session")
def _workers() -> Iterator[dict[str, ServerProcess]]:
    running: dict[str, ServerProcess] = {}
    yield running
    for worker in running.values():
        worker.kill()


@pytest.fixture(autouse=True)
def worked(served: Served, _workers: dict[str, ServerProcess]) -> Served:
    """A server with a worker beside it."""
    url = served.installation.database_url
    if url not in _workers:
        worker = ServerProcess(served.installation.data, command="worker", database_url=url)
        worker.start(wait=False)
        _workers[url] = worker
        worker.wait_for("worker.started")
    return served


def lines(session_id: str, **changed: dict[str, Any]) -> list[bytes]:
    """The violin session of the protocol, with events changed by id."""
    found = []
    for line in sample_lines("violin-3min"):
        fields = json.loads(line) | {"session_id": session_id}
        found.append(json.dumps(fields | changed.get(fields["event_id"], {})).encode())
    return found


def send(client: httpx2.Client, session_id: str, *sent: bytes) -> None:
    answer = client.post(
        f"/api/v1/sessions/{session_id}/events", content=b"\n".join(sent), headers=NDJSON
    )
    assert answer.status_code == 200, answer.text


def settled(client: httpx2.Client, session_id: str, revision: int = 1) -> dict[str, Any]:
    """Return the report once it has so many revisions; until then it is 202, or an older one."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        answer = client.get(f"/api/v1/sessions/{session_id}/report")
        if answer.status_code == 202:
            assert answer.json()["status"] in {"open", "queued", "running"}
            assert int(answer.headers["Retry-After"]) >= 1
        else:
            assert answer.status_code == 200, answer.text
            report: dict[str, Any] = answer.json()
            if report["revision"] >= revision:
                return report
        time.sleep(0.1)
    message = f"no revision {revision}"
    raise AssertionError(message)


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


def test_a_session_that_ended_gets_its_report(toy: httpx2.Client, session_id: str) -> None:
    """Revision 1 with scores on events, the doubtful one in the ledger; a page to browsers."""
    send(toy, session_id, *lines(session_id))
    report = settled(toy, session_id)
    assert report["session_id"] == session_id
    assert report["revision"] == 1
    assert report["rubric_version"] == "v1.2"
    assert report["summary_card"] is None
    assert report["recap_summary"]["phase_summary"]["operation"]["positive"] == 4
    chain = report["examiner_assessment"]["evidence_chain"]
    ledger = [item for one in chain for item in one["low_confidence_items"]]
    assert {item["event_id"]: item["state"] for item in ledger}["e008"] == "unknown"
    path = f"/api/v1/sessions/{session_id}/report"
    answer = toy.get(path)
    assert toy.get(path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert toy.get(path, params={"revision": 1}).json() == report
    assert problem(toy.get(path, params={"revision": 2})) == (404, "REVISION_UNKNOWN")
    page = toy.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert '<html lang="en">' in page.text
    assert "<script" not in page.text


def test_an_open_session_says_so_and_a_stranger_learns_nothing(
    worked: Served, toy: httpx2.Client, session_id: str
) -> None:
    """202 `open` without `session_end`; 404 for somebody else and for what is not there."""
    send(toy, session_id, *lines(session_id)[:-1])
    answer = toy.get(f"/api/v1/sessions/{session_id}/report")
    assert (answer.status_code, answer.json()) == (202, {"status": "open"})
    with worked.client("toy-2") as stranger:
        path = f"/api/v1/sessions/{session_id}/report"
        assert problem(stranger.get(path)) == (404, "SESSION_UNKNOWN")
    assert problem(toy.get(f"/api/v1/sessions/{uuid4()}/report")) == (404, "SESSION_UNKNOWN")


def test_a_rubric_that_nobody_knows_is_assigned_by_an_operator(
    toy: httpx2.Client, operator: httpx2.Client, session_id: str
) -> None:
    """404 until then; the choice is audited, an unknown one refused; the report follows."""
    start = {"value": {"instrument": "kazoo"}}
    send(toy, session_id, *lines(session_id, e001=start))
    path = f"/api/v1/sessions/{session_id}/report"
    ends = time.monotonic() + PATIENCE_S
    while (answer := toy.get(path)).status_code == 202 and time.monotonic() < ends:
        time.sleep(0.1)
    assert problem(answer) == (404, "RUBRIC_UNKNOWN")
    choose = f"/api/v1/sessions/{session_id}/rubric"
    assert toy.put(choose, json={"rubric": "violin-basic"}).status_code == 403
    assert problem(operator.put(choose, json={"rubric": "no"})) == (404, "RUBRIC_UNKNOWN")
    chosen = operator.put(choose, json={"rubric": "violin-basic"})
    assert chosen.json() == {"session_id": session_id, "rubric": "violin-basic@v1.2"}
    assert settled(toy, session_id)["rubric_version"] == "v1.2"


def test_reviews_and_late_events_make_revisions_and_old_ones_stay(
    worked: Served, toy: httpx2.Client, operator: httpx2.Client, session_id: str
) -> None:
    """A verdict is one event however often it is sent; it and a contest stand in the ledger."""
    send(toy, session_id, *lines(session_id))
    first = settled(toy, session_id)
    path = f"/api/v1/sessions/{session_id}/reviews"
    verdict = {"event_id": "e008", "verdict": "overturned", "measured": False, "note": "stiff"}
    assert problem(toy.post(path, json=verdict))[0] == 403
    reviewed = operator.post(path, json=verdict)
    assert reviewed.status_code == 201, reviewed.text
    assert operator.post(path, json=verdict).json() == reviewed.json()
    unknown = operator.post(path, json=verdict | {"event_id": "e999"})
    assert problem(unknown) == (404, "REVIEW_SUBJECT_UNKNOWN")
    contest = {
        "event_id": "contest-1", "session_id": session_id, "ts": 80.0, "phase": "operation",
        "event_type": "signal_contested", "signal": "tone_quality", "correlation_id": "e009",
        "value": {"event_id": "e009"},
    }  # fmt: skip
    with worked.client("anna") as learner:
        send(learner, session_id, json.dumps(contest).encode())
    second = settled(toy, session_id, revision=2)
    chain = second["examiner_assessment"]["evidence_chain"]
    states = {i["event_id"]: i for one in chain for i in one["low_confidence_items"]}
    assert states["e008"]["state"] == "overturned"
    assert states["e008"]["cloud_assessment"] == "stiff"
    assert states["e009"]["contested"] is True
    stored = toy.get(f"/api/v1/sessions/{session_id}/events").text
    assert stored.count("signal_reviewed") == 1
    old = toy.get(f"/api/v1/sessions/{session_id}/report", params={"revision": 1})
    assert old.json() == first
    page = toy.get(
        f"/api/v1/sessions/{session_id}/report",
        params={"revision": 1},
        headers={"Accept": "text/html"},
    )
    assert "contest-1" not in page.text  # an old revision's page shows what it was made from


CARD = {
    "recap_highlights": ["Eight notes in a row", "<b>Bow</b> & straight"],
    "uncertainty_count": 1,
    "journey_progress": {"sessions": 3, "minutes": 42.5, "last_metric": "91 %"},
    "journey_id": "j-1",
}


def test_a_card_opens_without_an_account_until_it_is_taken_back(
    worked: Served, toy: httpx2.Client, session_id: str
) -> None:
    """The page shows the card and nothing else; the report names it; revoked, it answers 410."""
    send(toy, session_id, *lines(session_id))
    settled(toy, session_id)
    path = f"/api/v1/sessions/{session_id}/summary-card"
    made = toy.post(path, json=CARD)
    assert made.status_code == 201, made.text
    url = httpx2.URL(made.json()["teacher_view_url"]).path
    with worked.client() as anybody:
        page = anybody.get(url, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert page.headers["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert "&lt;b&gt;Bow&lt;/b&gt; &amp; straight" in page.text
        assert "<svg" in page.text
        for hidden in (session_id, "anna", "Anna", "toy-1", "j-1", "<script"):
            assert hidden not in page.text
        shown = anybody.get(url, headers={"Accept-Language": "zh-CN"}).json()
        assert shown["recap_highlights"] == CARD["recap_highlights"]
        chinese = anybody.get(url, headers={"Accept": "text/html", "Accept-Language": "zh"})
        assert '<html lang="zh-CN">' in chinese.text
        assert problem(anybody.get(f"/cards/{'x' * 43}")) == (404, "CARD_UNKNOWN")
        card_id = made.json()["card_id"]
        with worked.client("toy-2") as stranger:
            assert stranger.delete(f"{path}/{card_id}").status_code == 403
        assert problem(toy.delete(f"{path}/{uuid4()}")) == (404, "CARD_UNKNOWN")
        assert toy.delete(f"{path}/{card_id}").status_code == 204
        assert toy.delete(f"{path}/{card_id}").status_code == 204
        assert problem(anybody.get(url)) == (410, "CARD_REVOKED")
        gone = anybody.get(url, headers={"Accept": "text/html"})
        assert (gone.status_code, "Eight notes" in gone.text) == (410, False)


def test_addresses_differ_and_cards_are_limited(toy: httpx2.Client, session_id: str) -> None:
    """Twenty living cards a session, each with an address of its own."""
    send(toy, session_id, *lines(session_id)[:2])
    path = f"/api/v1/sessions/{session_id}/summary-card"
    urls = {toy.post(path, json=CARD).json()["teacher_view_url"] for _ in range(20)}
    assert len(urls) == 20
    assert problem(toy.post(path, json=CARD)) == (409, "CARD_LIMIT")


@pytest.mark.parametrize(
    "wrong",
    [
        {"recap_highlights": ["x" * 201]},
        {"recap_highlights": ["x"] * 11},
        {"uncertainty_count": -1},
        {"learner_name": "Anna"},
        {"journey_progress": {"scores": 1}},
    ],
)
def test_a_card_takes_what_it_shows_and_no_more(
    toy: httpx2.Client, session_id: str, wrong: dict[str, Any]
) -> None:
    """Bounded, and no unknown members: a name cannot slip in."""
    send(toy, session_id, *lines(session_id)[:2])
    answer = toy.post(f"/api/v1/sessions/{session_id}/summary-card", json=CARD | wrong)
    assert answer.status_code in {400, 422}


def test_an_erased_learner_leaves_no_report_and_no_card(
    worked: Served, toy: httpx2.Client, operator: httpx2.Client, session_id: str
) -> None:
    """The report answers 410, the card is unknown; the export before holds both."""
    learner = operator.post("/api/v1/learners", json={"display_name": "Cy"}).json()["learner_id"]
    made = operator.post(
        "/api/v1/tokens",
        json={"kind": "learner", "principal_id": learner, "scopes": ["sessions:write"]},
    )
    assert made.status_code == 201, made.text
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    with worked.client() as client:
        client.headers.update(bearer)
        send(client, session_id, *lines(session_id))
        card = client.post(f"/api/v1/sessions/{session_id}/summary-card", json=CARD).json()
    settled(operator, session_id)
    export = operator.get(f"/api/v1/learners/{learner}/export")
    names = _names(export.content)
    assert f"sessions/{session_id}/report.1.json" in names
    assert f"sessions/{session_id}/cards.jsonl" in names
    assert operator.delete(f"/api/v1/learners/{learner}").status_code in {200, 202, 204}
    answer = operator.get(f"/api/v1/sessions/{session_id}/report")
    assert problem(answer) == (410, "SESSION_ERASED")
    address = httpx2.URL(card["teacher_view_url"]).path
    assert problem(toy.get(address)) == (404, "CARD_UNKNOWN")


def _names(archive: bytes) -> set[str]:
    return set(zipfile.ZipFile(io.BytesIO(archive)).namelist())


def test_two_sessions_of_a_journey_know_each_other(
    worked: Served, toy: httpx2.Client, session_id: str
) -> None:
    """The later report names the earlier session; somebody else's with the same id is left out."""
    journey = f"j-{uuid4()}"
    ids = [f"{session_id}-{n}" for n in range(3)]
    with worked.client("toy-2") as other:
        for number, (client, one) in enumerate(zip((toy, other, toy), ids, strict=True)):
            meta = {"meta": {"started_at": f"2026-11-0{number + 1}T10:00:00Z"}}
            sent = [json.loads(line) | {"journey_id": journey} for line in lines(one, e001=meta)]
            send(client, one, *(json.dumps(each).encode() for each in sent))
            settled(client, one)
    context = settled(toy, ids[2])["journey_context"]
    assert context["journey_id"] == journey
    assert [one["session_id"] for one in context["sessions"]] == [ids[0]]


def test_a_verdict_that_comes_back_counts(
    toy: httpx2.Client, operator: httpx2.Client, session_id: str
) -> None:
    """Confirmed, overturned, confirmed again: three events, the last one counts."""
    send(toy, session_id, *lines(session_id)[:9])
    path = f"/api/v1/sessions/{session_id}/reviews"
    said = itertools.cycle(["confirmed", "overturned"])
    ids = {
        operator.post(path, json={"event_id": "e008", "verdict": next(said)}).json()["review_id"]
        for _ in range(3)
    }
    assert len(ids) == 3
