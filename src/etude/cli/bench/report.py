"""`etude bench report`: from the answer to an upload until the session's report is there.

A real `web` and a real worker on a fresh database; sessions that have ended arrive evenly, each in
one upload, and each asks for its report until it gets it. The baseline makes the same report in
this process, without a server: what no queue can save.
"""

import asyncio
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from etude.cli.bench.frame import milliseconds, quantile
from etude.clock import RandomIds, SystemClock
from etude.events.ndjson import decode_line
from etude.examiner.examining import make_report
from etude.examiner.report import report_bytes
from etude.net import tls_context
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric
from etude.store import upgrade
from etude.testing import builders
from etude.testing.databases import PostgresServer
from etude.testing.installation import furnish
from etude.testing.server import ServerProcess

ASK_EVERY_S: Final = 0.05
PATIENCE_S: Final = 120.0
_BASELINE_RUNS: Final = 50
_NDJSON: Final = {"Content-Type": "application/x-ndjson"}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One session: how long its upload took, and how long after its answer the report was there."""

    upload_s: float
    ready_s: float


def report(
    *, database: str = "sqlite", sessions: int = 100, per_minute: int = 100, events: int = 200
) -> dict[str, Any]:
    """Let `sessions` of `events` each arrive at `per_minute`; see the module's text.

    Args:
        database: `sqlite`, or `postgresql` (a server of the bench's own).
        sessions: how many arrive.
        per_minute: how fast.
        events: in each.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="etude-bench-")))
        folder.chmod(0o711)
        url = _database(database, folder, stack)
        asyncio.run(upgrade(url))
        installation = furnish(folder, url)
        server = stack.enter_context(ServerProcess(folder, database_url=url))
        worker = ServerProcess(folder, command="worker", database_url=url)
        worker.start(wait=False)
        stack.callback(worker.kill)
        worker.wait_for("worker.started")
        token = installation.tokens["toy-1"]
        asyncio.run(_arrive(server.url, token, "warm", 5, 600, events))
        seen = asyncio.run(_arrive(server.url, token, "run", sessions, per_minute, events))
    ready = sorted(one.ready_s for one in seen)
    whole = sorted(one.upload_s + one.ready_s for one in seen)
    baseline_s = quantile(_baseline(events), 0.5)
    return {
        "database": database,
        "sessions": sessions,
        "per_minute": per_minute,
        "events": events,
        "ready_p50_ms": milliseconds(quantile(ready, 0.5)),
        "ready_p95_ms": milliseconds(quantile(ready, 0.95)),
        "ready_max_ms": milliseconds(ready[-1]),
        "upload_and_ready_p95_ms": milliseconds(quantile(whole, 0.95)),
        "baseline": "the same report made in one process without a server, p50",
        "baseline_p50_ms": milliseconds(baseline_s),
        "ratio": round(quantile(ready, 0.5) / baseline_s, 1),
    }


def _database(kind: str, folder: Path, stack: ExitStack) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder / 'etude.db'}"
    server = PostgresServer(folder / "pg")
    stack.callback(server.stop)
    server.start(owner_pid=os.getpid())
    return server.url()


async def _arrive(
    url: str, token: str, name: str, sessions: int, per_minute: int, events: int
) -> list[Seen]:
    began_s = time.perf_counter()
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=PATIENCE_S, verify=tls_context(), trust_env=False
    ) as client:

        async def one(number: int) -> Seen:
            session_id = f"{name}-{number}"
            body = builders.body(builders.session(events, session_id, seed=number))
            due_s = began_s + number * 60 / per_minute
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            return await _follow(client, session_id, body)

        return await asyncio.gather(*map(one, range(sessions)))


async def _follow(client: httpx2.AsyncClient, session_id: str, body: bytes) -> Seen:
    path = f"/api/v1/sessions/{session_id}"
    sent_s = time.perf_counter()
    answer = await client.post(f"{path}/events", content=body, headers=_NDJSON)
    answer.raise_for_status()
    stored_s = time.perf_counter()
    while True:
        answer = await client.get(f"{path}/report")
        answer.raise_for_status()
        now_s = time.perf_counter()
        if answer.status_code == httpx2.codes.OK:
            return Seen(upload_s=stored_s - sent_s, ready_s=now_s - stored_s)
        if now_s > stored_s + PATIENCE_S:
            raise TimeoutError(session_id)
        await asyncio.sleep(ASK_EVERY_S)


def _baseline(events: int) -> list[float]:
    lines = builders.lines(builders.session(events))
    rubric = RubricLibrary.load().get("violin-basic")
    times = []
    for _ in range(_BASELINE_RUNS):
        began_s = time.perf_counter()
        _make(lines, rubric)
        times.append(time.perf_counter() - began_s)
    return sorted(times)


def _make(lines: list[bytes], rubric: Rubric) -> bytes:
    events = [decode_line(line, number) for number, line in enumerate(lines, 1)]
    made = make_report(events, rubric, locale="en", clock=SystemClock(), ids=RandomIds())
    return report_bytes(made)
