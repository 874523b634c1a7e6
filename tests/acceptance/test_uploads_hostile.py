"""A thousand requests that mean no good: every one is answered, none harms its neighbours."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from etude.testing.hostile import Answer, Hostile, Target, hostile, send
from etude.testing.installation import Served
from etude.testing.school import body, event

COUNT = 1000
BLOCK = 100
NDJSON = {"Content-Type": "application/x-ndjson"}
DOCUMENTED = set(
    re.findall(
        r"^\| `([A-Z0-9_]+)` \| 4\d\d ",
        (Path(__file__).parents[2] / "docs" / "errors.md").read_text("utf-8"),
        re.MULTILINE,
    )
)


def judged(answer: Answer) -> str | None:
    """What is wrong with an answer."""
    if answer.status == 0:
        return "no answer"
    if answer.status >= 500:
        return f"{answer.status}"
    if answer.status < 400:
        return None
    if answer.media_type != "application/problem+json":
        return f"{answer.status} without a problem document"
    return None if answer.code in DOCUMENTED else f"{answer.status} with code {answer.code}"


def upload(client: httpx2.Client, session_id: str, content: bytes) -> httpx2.Response:
    return client.post(f"/api/v1/sessions/{session_id}/events", content=content, headers=NDJSON)


@contextmanager
def standing_by(toy: httpx2.Client) -> Iterator[str]:
    """A session that is there already; afterwards it must be as it was."""
    session_id = f"s-{uuid4()}"
    content = body(*(event(session_id, number) for number in range(1, 31)))
    assert upload(toy, session_id, content).status_code == 200
    before = toy.get(f"/api/v1/sessions/{session_id}").json()
    yield session_id
    assert toy.get(f"/api/v1/sessions/{session_id}/events").content == content
    assert toy.get(f"/api/v1/sessions/{session_id}").json() == before


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_hostile_requests_are_refused_and_harm_nobody(sqlite_server: Served, first: int) -> None:
    """Never 5xx, never silence; ≥ 400 is a documented problem; good uploads go on in between."""
    endure(sqlite_server, first)


@pytest.mark.parametrize("first", range(COUNT, COUNT + 3 * BLOCK, BLOCK))
def test_hostile_requests_harm_nobody_on_postgresql(postgres_server: Served, first: int) -> None:
    """The same, where the database is stricter about text and numbers than SQLite."""
    endure(postgres_server, first)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(2 * COUNT, 12 * COUNT, COUNT))
def test_ten_thousand_hostile_requests_harm_nobody(served: Served, first: int) -> None:
    """The same for 10,000 more on each database."""
    for block in range(first, first + COUNT, BLOCK):
        endure(served, block)


def endure(served: Served, first: int) -> None:
    with served.client("toy-1") as toy, standing_by(toy) as neighbour:
        attack(served, toy, neighbour, first)


def attack(served: Served, toy: httpx2.Client, neighbour: str, first: int) -> None:
    tokens = served.installation.tokens
    pid, logged = served.server.pid, len(served.server.log_lines())
    wrong: list[tuple[int, str, str]] = []
    seen: Counter[str] = Counter()
    good_id = f"s-{uuid4()}"
    for seed in range(first, first + BLOCK):
        # Every third is aimed at the session that is there, with a token that may not write to it.
        aimed = seed % 3 == 0
        target = Target(
            session_id=neighbour if aimed else f"h-{uuid4()}",
            token=tokens["toy-2"] if aimed else tokens["toy-1"],
            foreign=tokens["ben"],
            operator=tokens["operator"],
        )
        request: Hostile = hostile(seed, target)
        answer = send(served.server.port, request)
        seen[request.kind] += 1
        if fault := judged(answer):
            wrong.append((seed, request.kind, fault))
        if seed % 10 == 0:
            assert upload(toy, good_id, body(event(good_id, seed + 1))).status_code == 200
    assert wrong == [], f"reproduce with hostile(seed): {wrong}"
    assert len(seen) > 25
    assert toy.get("/health").status_code == 200
    assert toy.get("/ready").status_code == 200
    assert served.server.pid == pid
    failed = [line for line in served.server.log_lines()[logged:] if line.get("level") == "error"]
    assert failed == []
    assert len(toy.get(f"/api/v1/sessions/{good_id}/events").content.splitlines()) == BLOCK // 10


@pytest.mark.parametrize(
    "since", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00"]
)
def test_sessions_are_not_listed_since_no_instant(toy: httpx2.Client, since: str) -> None:
    """A time beyond what can be stored, or without an offset from UTC, is the caller's to mend."""
    answer = toy.get("/api/v1/sessions", params={"since": since})
    assert (answer.status_code, answer.json()["code"]) == (422, "TIME_OUT_OF_RANGE")
