"""`etude bench ingest`: uploads over HTTP against raw inserts with the same rows and durability.

A real `etude web` process (no worker) on a fresh database is sent bodies of 100 events by a load
generator in a process of its own. The baseline writes the same rows into the same keyed table at
2,000 rows a transaction: raw `sqlite3` with `synchronous=FULL`, or PostgreSQL's `COPY` into a
temporary table and `INSERT … ON CONFLICT`. It is run before and after, and the mean counts. With
`stored`, the database first gets that many events, not timed, and both rates are given.
"""

import asyncio
import base64
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import asyncpg

from etude.clock import SystemClock
from etude.people.devices import add_device
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.sessions.batch import read_batch
from etude.sessions.bulk import COLUMNS
from etude.store import Database, upgrade
from etude.testing.databases import PostgresServer
from etude.testing.server import ServerProcess

BODY_EVENTS: Final = 100
BASELINE_ROWS: Final = 2_000
CONNECTIONS: Final = 128
_DEVICE: Final = "bench-device"


def ingest(
    *, database: str = "sqlite", events: int = 100_000, stored: int = 0, processes: int = 2
) -> dict[str, Any]:
    """Measure ingest over HTTP; see the module's text.

    Args:
        database: `sqlite`, or `postgresql` (a server of the bench's own, `fsync` on).
        events: how many are sent, in bodies of 100 of one session each.
        stored: how many are in the table beforehand, for the second rate.
        processes: how many `etude web` serve them.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="etude-bench-")))
        folder.chmod(0o711)
        place = _Sqlite(folder) if database == "sqlite" else _Postgres(folder, stack)
        before = place.baseline("before", events)
        seen = _served(place, folder / "empty", events, 0, processes)
        after = place.baseline("after", events)
        baseline = (before + after) / 2
        result: dict[str, Any] = {
            "database": database,
            "events": events,
            "body_events": BODY_EVENTS,
            "connections": CONNECTIONS,
            "web_processes": processes,
            "baseline": place.baseline_name,
            "baseline_events_per_s": round(baseline),
            "baseline_runs_events_per_s": [round(before), round(after)],
            **seen,
            "ratio": round(seen["events_per_s"] / baseline, 3),
        }
        if stored:
            loaded = _served(place, folder / "loaded", events, stored, processes)
            result["stored"] = stored
            result["stored_events_per_s"] = loaded["events_per_s"]
            result["stored_ratio"] = round(loaded["events_per_s"] / seen["events_per_s"], 3)
        return result


class _Sqlite:
    """A SQLite file a run."""

    baseline_name = f"sqlite3 executemany, WAL, synchronous=FULL, {BASELINE_ROWS} rows/commit"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def url(self, name: str) -> str:
        path = self._folder / name / "etude.db"
        path.parent.mkdir(mode=0o700)
        url = f"sqlite:///{path}"
        asyncio.run(upgrade(url))
        return url

    def load(self, url: str, events: int) -> None:
        """Put `events` rows into the table, in the background of the measurement."""
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        for rows in _chunks(_rows(events, "stored", 1_000_000), 50_000):
            self._insert(connection, rows)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def baseline(self, name: str, events: int) -> float:
        connection = sqlite3.connect(
            self.url(name).removeprefix("sqlite:///"), isolation_level=None
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        rows = list(_rows(events, name, 0))
        began = time.perf_counter()
        for chunk in _chunks(iter(rows), BASELINE_ROWS):
            self._insert(connection, chunk)
        rate = events / (time.perf_counter() - began)
        connection.close()
        return rate

    def _insert(self, connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            f"INSERT INTO session_event ({', '.join(COLUMNS)})"  # noqa: S608 - constants
            f" VALUES ({', '.join('?' * len(COLUMNS))})"
            " ON CONFLICT (session_key, event_id) DO NOTHING",
            rows,
        )
        connection.execute("COMMIT")


class _Postgres:
    """A database a run on a server of the bench's own."""

    baseline_name = f"COPY to temp + INSERT ON CONFLICT, {BASELINE_ROWS} rows/commit"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = PostgresServer(folder / "pg")
        stack.callback(self._server.stop)
        self._server.start(owner_pid=os.getpid())

    def url(self, name: str) -> str:
        async def create() -> None:
            admin = await asyncpg.connect(self._server.url())
            await admin.execute(f"CREATE DATABASE {name}")
            await admin.close()

        asyncio.run(create())
        asyncio.run(upgrade(self._server.url(name)))
        return self._server.url(name)

    def load(self, url: str, events: int) -> None:
        """Put `events` rows into the table, in the background of the measurement."""

        async def copy() -> None:
            connection = await asyncpg.connect(url)
            for rows in _chunks(_rows(events, "stored", 1_000_000), 50_000):
                await connection.copy_records_to_table(
                    "session_event", records=rows, columns=COLUMNS
                )
            await connection.execute(f"SELECT setval('session_event_receipt_seq', {events})")
            await connection.execute("ANALYZE session_event")
            await connection.execute("CHECKPOINT")
            await connection.close()

        asyncio.run(copy())

    def baseline(self, name: str, events: int) -> float:
        return asyncio.run(self._baseline(self.url(name), list(_rows(events, name, 0))))

    async def _baseline(self, url: str, rows: list[tuple[Any, ...]]) -> float:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TEMPORARY TABLE incoming (LIKE session_event)")
        began = time.perf_counter()
        for chunk in _chunks(iter(rows), BASELINE_ROWS):
            async with connection.transaction():
                await connection.execute("TRUNCATE incoming")
                await connection.copy_records_to_table("incoming", records=chunk, columns=COLUMNS)
                await connection.execute(
                    "INSERT INTO session_event SELECT * FROM incoming"
                    " ON CONFLICT (session_key, event_id) DO NOTHING"
                )
        rate = len(rows) / (time.perf_counter() - began)
        await connection.close()
        return rate


def _served(
    place: _Sqlite | _Postgres, data: Path, events: int, stored: int, processes: int
) -> dict[str, Any]:
    """Send `events` to a fresh server on a database that holds `stored` already."""
    url = place.url(data.name)
    data.mkdir(mode=0o700, exist_ok=True)
    token = asyncio.run(_device_token(url))
    if stored:
        place.load(url, stored)
    # A little to warm up (connections, statement caches), then what counts.
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerProcess(data, database_url=url)) for _ in range(processes)
        ]
        _send(servers, token, 2_000, "warm")
        before_s = sum(_cpu_s(server.pid) for server in servers)
        seen = _send(servers, token, events, "run")
        server_cpu_s = sum(_cpu_s(server.pid) for server in servers) - before_s
    if seen["received"] != events or seen["refused"]:
        message = f"sent {events}, received {seen['received']}, refused {seen['refused']}"
        raise RuntimeError(message)
    latencies = sorted(seen["latencies_ms"])
    return {
        "events_per_s": round(events / seen["wall_s"]),
        "wall_s": round(seen["wall_s"], 3),
        "server_cpu_s": round(server_cpu_s, 3),
        "load_generator_cpu_s": round(seen["cpu_s"], 3),
        "request_p50_ms": round(latencies[len(latencies) // 2], 2),
        "request_p99_ms": round(latencies[len(latencies) * 99 // 100], 2),
    }


def _cpu_s(pid: int) -> float:
    """Return the processor time that a process has used (Linux: proc(5), utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _device_token(url: str) -> str:
    now = SystemClock().now()
    async with await Database.open(url) as database, database.transaction() as work:
        await add_device(work.connection, device_id=_DEVICE, name=_DEVICE, now=now)
        made = await create_token(
            work.connection,
            TokenRequest(kind="device", principal_id=_DEVICE, scopes=(Scope.SESSIONS_WRITE,)),
            now,
        )
    return made.text


def _send(servers: list[ServerProcess], token: str, events: int, name: str) -> dict[str, Any]:
    requests = [
        base64.b64encode(_request(token, session_id, body)).decode()
        for session_id, body in _bodies(events, name)
    ]
    order = {
        "host": "127.0.0.1",
        "ports": [server.port for server in servers],
        "connections": CONNECTIONS,
        "requests": requests,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "etude.cli.bench.load"],
        input=json.dumps(order).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


def _request(token: str, session_id: str, body: bytes) -> bytes:
    head = (
        f"POST /api/v1/sessions/{session_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/x-ndjson\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _bodies(events: int, name: str) -> Iterator[tuple[str, bytes]]:
    for first in range(0, events, BODY_EVENTS):
        session_id = f"{name}-{first // BODY_EVENTS:08}-5f1c-4d6e-9a7b-3c2e1f0a9b8c"
        lines = (_line(session_id, first, seq) for seq in range(1, BODY_EVENTS + 1))
        yield session_id, b"".join(lines)


def _line(session_id: str, first: int, seq: int) -> bytes:
    """Return an event of an ordinary size (about 390 bytes)."""
    event = {
        "event_id": f"{first + seq:08x}-d9cb-469f-a165-70867728950e",
        "session_id": session_id,
        "ts": 1.25 * seq,
        "event_type": "audio_observation",
        "phase": "operation",
        "signal": "pitch_accuracy",
        "value": {"measure": seq, "accuracy": 0.91, "notes_correct": 10, "notes_total": 11},
        "confidence": 0.87,
        "alert_tier": "high",
        "cloud_review_available": False,
        "meta": {"device": "iPhone15", "model_version": "edge-v0.3"},
        "seq": seq,
    }
    return json.dumps(event).encode() + b"\n"


def _rows(events: int, name: str, first_key: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that those bodies become, with receipt and session numbered."""
    receipt = 0
    for session_key, (session_id, body) in enumerate(_bodies(events, name), first_key + 1):
        for columns, line in read_batch(body, session_id).events:
            receipt += 1
            yield (
                receipt,
                session_key,
                columns.event_id,
                line,
                columns.seq,
                columns.ts,
                columns.event_type,
                columns.signal,
                columns.phase,
                columns.confidence,
                columns.alert_tier,
                columns.cloud_review_available,
                1_767_225_600_000_000,
            )


def _chunks(rows: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    chunk: list[tuple[Any, ...]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
