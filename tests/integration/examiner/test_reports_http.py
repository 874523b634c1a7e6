"""Who may read and review, and what the audit log keeps of it; on both databases."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from etude.clock import RandomIds
from etude.examiner import repository
from etude.examiner.enqueue import EXAMINE
from etude.examiner.examine_job import Examine
from etude.examiner.report import digest_of_report, read_report
from etude.jobs.claims import Claims
from etude.people import audit, staff
from etude.people.records import AuditEntry, PrincipalKind, Role
from etude.people.scopes import Scope, allowed_scopes
from etude.people.tokens import TokenRequest, create_token
from etude.store import Database
from etude.testing import web
from etude.testing.clocks import ManualClock
from etude.testing.samples import sample_lines
from etude.testing.school import School
from etude.web.services import Services

WHY = "No language model reworded this report: the day&#39;s quota was used up."
NDJSON = {"Content-Type": "application/x-ndjson"}


class Site:
    """A school's server with a teacher, an operator and their tokens; a clock of its own."""

    def __init__(self, database: Database, run: Callable[..., Any], data: Path) -> None:
        self.database, self.run = database, run
        self.school = School(database, run)
        self.clock: ManualClock = self.school.clock
        self.services: Services = web.services_for(database, data, clock=self.clock)
        self.tokens: dict[str, str] = {}

    async def furnish(self) -> None:
        await self.school.furnish()
        roles: tuple[Role, ...] = ("teacher", "operator")
        async with self.database.transaction() as work:
            for role in roles:
                await staff.add_staff(
                    work.connection,
                    staff_id=role,
                    name="Somebody",
                    role=role,
                    password_hash="x",
                    now=self.clock.now(),
                )
        for role in roles:
            await self._token(role, "staff", *allowed_scopes("staff", role))
        for toy in ("toy-1", "toy-2"):
            await self._token(toy, "device", Scope.SESSIONS_WRITE, Scope.SESSIONS_READ)
        for learner in ("anna", "ben"):
            await self._token(learner, "learner", Scope.SESSIONS_WRITE, Scope.SESSIONS_READ)

    async def _token(self, name: str, kind: PrincipalKind, *scopes: Scope) -> None:
        wanted = TokenRequest(kind=kind, principal_id=name, scopes=scopes)
        async with self.database.transaction() as work:
            made = await create_token(work.connection, wanted, self.clock.now())
        self.tokens[name] = made.text

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[httpx2.AsyncClient]:
        async with web.client(self.services, token=self.tokens.get(name)) as client:
            yield client

    async def examine(self) -> None:
        claims = Claims(
            self.database, self.clock, executor="w", lease_s=30, max_attempts={EXAMINE: 3},
            periods_s={},
        )  # fmt: skip
        examine = Examine(self.database, self.services.shelf, self.clock, RandomIds())
        for job in await claims.claim(10):
            await examine(job)

    async def audited(self, subject: tuple[Any, int]) -> list[AuditEntry]:
        async with self.database.read() as connection:
            return list((await audit.list_audit(connection, subject=subject)).items)

    async def ask(self, name: str, method: str, path: str, **options: Any) -> httpx2.Response:
        async with self.client(name) as client:
            return await client.request(method, path, **options)


@pytest.fixture
def site(database: Database, run: Any, tmp_path: Path) -> Site:
    made = Site(database, run, tmp_path)
    run(made.furnish())
    return made


async def reported(site: Site) -> None:
    lines = [
        json.dumps(json.loads(line) | {"session_id": "s1"}).encode()
        for line in sample_lines("violin-3min")
    ]
    body = b"\n".join(lines)
    sent = await site.ask(
        "toy-1", "POST", "/api/v1/sessions/s1/events", content=body, headers=NDJSON
    )
    assert sent.status_code == 200
    await site.examine()


def test_a_persons_look_at_a_report_is_audited_and_the_learners_own_is_not(site: Site) -> None:
    """JSON or page, latest or older: one entry a look, of keys and code words."""

    async def story() -> None:
        await reported(site)
        path = "/api/v1/sessions/s1/report"
        for name in ("toy-1", "anna"):
            assert (await site.ask(name, "GET", path)).status_code == 200
        learner = ("learner", site.school.learners["anna"])
        assert await site.audited(learner) == []
        page = await site.ask("teacher", "GET", path, headers={"Accept": "text/html"})
        assert page.headers["Content-Language"] == "en"
        await site.ask("teacher", "GET", f"{path}?revision=1")
        entries = await site.audited(learner)
        assert [one.action for one in entries] == ["session.read", "session.read"]

    site.run(story())


def test_a_teacher_reviews_and_learners_and_devices_do_not(site: Site) -> None:
    """The verdict carries who and how; it is audited; a teacher chooses no rubric."""

    async def story() -> None:
        await reported(site)
        path = "/api/v1/sessions/s1/reviews"
        verdict = {"event_id": "e008", "verdict": "confirmed", "confidence": 0.8}
        for name in ("toy-1", "anna"):
            assert (await site.ask(name, "POST", path, json=verdict)).status_code == 403
        made = await site.ask("teacher", "POST", path, json=verdict)
        assert made.status_code == 201
        for wrong in ({"verdict": "fine"}, {"confidence": 1.5}, {"verdict": None}, {"x": 1}):
            refused = await site.ask("teacher", "POST", path, json=verdict | wrong)
            assert refused.status_code in {400, 422}
        lifecycle = await site.ask("teacher", "POST", path, json=verdict | {"event_id": "e001"})
        assert lifecycle.json()["code"] == "REVIEW_SUBJECT_UNKNOWN"
        lines = (await site.ask("toy-1", "GET", "/api/v1/sessions/s1/events")).text.splitlines()
        (event,) = [json.loads(line) for line in lines if "signal_reviewed" in line]
        assert event["event_id"] == made.json()["review_id"]
        assert event["meta"] == {"producer": "server"}
        assert (event["ts"], event["phase"], event["correlation_id"]) == (80.0, "operation", "e008")
        assert "seq" not in event
        assert {name: event["value"][name] for name in ("reviewer", "method", "confidence")} == {
            "reviewer": "teacher",
            "method": "person",
            "confidence": 0.8,
        }
        entries = await site.audited(("session", 1))
        assert [one.action for one in entries] == ["session.reviewed"]
        choice = {"rubric": "violin-basic"}
        assert (
            await site.ask("teacher", "PUT", "/api/v1/sessions/s1/rubric", json=choice)
        ).status_code == 403
        await site.ask("operator", "PUT", "/api/v1/sessions/s1/rubric", json=choice)
        (_, chosen) = await site.audited(("session", 1))
        assert (chosen.action, chosen.detail["version"]) == ("session.rubric_assigned", "v1.2")

    site.run(story())


@pytest.mark.parametrize(
    ("name", "report", "card", "review", "rubric", "revoke"),
    [
        ("toy-1", 200, 201, 403, 403, 204),
        ("anna", 200, 201, 403, 403, 204),
        ("toy-2", 404, 403, 403, 403, 403),
        ("ben", 404, 403, 403, 403, 403),
        ("teacher", 200, 403, 201, 403, 403),
        ("operator", 200, 403, 201, 200, 204),
        ("nobody", 401, 401, 401, 401, 401),
    ],
)
def test_who_may_do_what(
    site: Site, name: str, report: int, card: int, review: int, rubric: int, revoke: int
) -> None:
    """Own device, own learner, others', teacher, operator, nobody; a card opens to everybody."""

    async def story() -> None:
        await reported(site)
        path, content = "/api/v1/sessions/s1", {"recap_highlights": [], "uncertainty_count": 0}
        for accept in ("application/json", "text/html"):
            read = await site.ask(name, "GET", f"{path}/report", headers={"Accept": accept})
            assert read.status_code == report
        made = await site.ask("anna", "POST", f"{path}/summary-card", json=content)
        assert (await site.ask(name, "GET", _path(made))).status_code == 200
        mine = await site.ask(name, "POST", f"{path}/summary-card", json=content)
        verdict = {"event_id": "e008", "verdict": "unknown"}
        reviewed = await site.ask(name, "POST", f"{path}/reviews", json=verdict)
        chosen = await site.ask(name, "PUT", f"{path}/rubric", json={"rubric": "cpr-bls"})
        gone = await site.ask(name, "DELETE", f"{path}/summary-card/{made.json()['card_id']}")
        answers = (mine, reviewed, chosen, gone)
        assert [one.status_code for one in answers] == [card, review, rubric, revoke]
        opened = await site.ask(name, "GET", _path(made))
        assert opened.status_code == (410 if revoke == 204 else 200)

    site.run(story())


def _path(made: httpx2.Response) -> str:
    """Return where a card opens, on this server."""
    return httpx2.URL(made.json()["teacher_view_url"]).path


def test_a_session_that_is_too_long_says_how_long_is(site: Site) -> None:
    """409 with a sentence that people can read, not only a code."""

    async def story() -> None:
        first = json.loads(sample_lines("violin-3min")[0]) | {"session_id": "s1"}
        path, body = "/api/v1/sessions/s1", json.dumps(first).encode()
        await site.ask("toy-1", "POST", f"{path}/events", content=body, headers=NDJSON)
        async with site.database.transaction() as work:
            head = repository.Head(session_key=1, refused="SESSION_TOO_LONG")
            await repository.save_head(work, head)
        refused = await site.ask("toy-1", "GET", f"{path}/report")
        assert (refused.status_code, refused.json()["code"]) == (409, "SESSION_TOO_LONG")
        assert str(16 * 1024 * 1024) in refused.json()["detail"]

    site.run(story())


def test_what_a_device_calls_a_review_keeps_no_teacher_from_reviewing(site: Site) -> None:
    """Word for word what the teacher will say, and later than any: it is no verdict."""

    async def story() -> None:
        await reported(site)
        said = {"event_id": "e008", "verdict": "confirmed", "confidence": 1.0}
        own = {"reviewer": "teacher", "method": "person", "version": 1, "reviewed_at": "9999"}
        forged = {
            "event_id": "forged",
            "session_id": "s1",
            "ts": 80.0,
            "event_type": "signal_reviewed",
            "signal": "bow_hold_check",
            "value": said | own,
        }
        path = "/api/v1/sessions/s1"
        for meta, status in (({}, 200), ({"meta": {"producer": "server"}}, 422)):
            body = json.dumps(forged | meta).encode()
            sent = await site.ask("toy-1", "POST", f"{path}/events", content=body, headers=NDJSON)
            assert sent.status_code == status
        made = await site.ask("teacher", "POST", f"{path}/reviews", json=said)
        assert made.json()["review_id"] != "forged"
        again = await site.ask("teacher", "POST", f"{path}/reviews", json=said)
        assert again.json() == made.json()

    site.run(story())


def test_a_card_expires(site: Site) -> None:
    """After ninety days its address answers 410, in words for people; its report forgets it."""

    async def story() -> None:
        await reported(site)
        card = {"recap_highlights": [], "uncertainty_count": 0}
        made = await site.ask("anna", "POST", "/api/v1/sessions/s1/summary-card", json=card)
        assert made.status_code == 201  # the toy recorded it, but it is anna's practice
        refused = await site.ask("ben", "POST", "/api/v1/sessions/s1/summary-card", json=card)
        assert refused.status_code == 403
        address = httpx2.URL(made.json()["teacher_view_url"]).path
        site.clock.advance(90 * 86_400 - 1)
        assert (await site.ask("toy-1", "GET", address)).status_code == 200
        site.clock.advance(1)
        gone = await site.ask("toy-1", "GET", address)
        assert (gone.status_code, gone.json()["code"]) == (410, "CARD_EXPIRED")

    site.run(story())


def test_why_no_model_reworded_it_is_told_with_the_report(site: Site) -> None:
    """With the latest revision, as JSON and as a page, and in neither its bytes nor its digest."""
    path = "/api/v1/sessions/s1/report"

    async def kept(code: str | None) -> None:
        async with site.database.transaction() as work:
            head = await repository.head(work.connection, key)
            await repository.save_head(work, msgspec.structs.replace(head, not_reworded=code))

    async def act() -> None:
        await reported(site)
        plain = await site.ask("anna", "GET", path)
        assert "not_reworded" not in plain.json()

    site.run(act())
    key = site.school.row("s1").session_key
    site.run(kept("QUOTA_SPENT"))
    told = site.run(site.ask("teacher", "GET", path)).json()
    assert told.pop("not_reworded") == "QUOTA_SPENT"
    html = {"Accept": "text/html"}
    assert WHY in site.run(site.ask("teacher", "GET", path, headers=html)).text
    site.run(kept(None))
    assert WHY not in site.run(site.ask("teacher", "GET", path, headers=html)).text
    assert site.run(site.ask("teacher", "GET", path)).json() == told
    read = read_report(json.dumps(told | {"not_reworded": "QUOTA_SPENT"}).encode())
    assert digest_of_report(read) == told["digest"]
