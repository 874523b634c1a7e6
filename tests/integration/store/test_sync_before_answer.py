"""The databases sync to the disk before a transaction is answered (`docs/rules.md 51`)."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert

from etude.store import Database, upgrade
from etude.store.tables import blob
from etude.testing.databases import NoPostgres, PostgresServer
from etude.testing.syscalls import NoTraceError, Trace
from etude.testing.waiting import run_bounded, until

STRACE = shutil.which("strace")
CALLS = "trace=write,pwrite64,pwritev,fsync,fdatasync,sendto"
ANSWERS = 5
LOOKS = 10
# Says `ANSWER-<n>` where a server would send its answer.
SCRIPT = """
import asyncio, os, sys
from sqlalchemy import insert
from etude.store import Database
from etude.store.tables import blob
async def main():
    async with await Database.open(sys.argv[1]) as database:
        for number in range(int(sys.argv[2])):
            async with database.transaction() as work:
                row = {"sha256": f"{number:064}", "size": 1, "created_us": 1}
                await work.connection.execute(insert(blob), [row])
            os.write(1, f"ANSWER-{number}".encode())
asyncio.run(main())
"""

pytestmark = pytest.mark.skipif(
    STRACE is None, reason="NOT CHECKED, strace is missing: a sync precedes every answer"
)


def check_order(trace: str, log: str, answer: str) -> int:
    """Assert that what was written to the log is synced before each answer; count those.

    Args:
        trace: what strace wrote, in the order of the calls.
        log: pattern of the path of the database's write-ahead log.
        answer: pattern of the call that sends an answer.
    """
    written = synced = False
    answers = 0
    for line in trace.splitlines():
        if re.search(rf"pwrite(64|v)\(\d+<{log}>|\bwrite\(\d+<{log}>", line):
            written, synced = True, False
        elif re.search(rf"f(data)?sync\(\d+<{log}", line):
            synced = True
        elif written and re.search(answer, line):
            assert synced, f"answered before the sync: {line}"
            written = synced = False
            answers += 1
    return answers


def test_the_check_sees_a_missing_sync() -> None:
    """The check fails for a trace in which the sync comes after the answer."""
    lines = ['pwrite64(7</d/a-wal>, "x", 1, 0) = 1', "fdatasync(7</d/a-wal>) = 0", "ANSWER-0"]
    assert check_order("\n".join(lines), ".*-wal", "ANSWER") == 1
    with pytest.raises(AssertionError, match="before the sync"):
        check_order("\n".join([lines[0], lines[2], lines[1]]), ".*-wal", "ANSWER")


def test_sqlite_syncs_its_log_before_the_answer(sqlite_url: str, tmp_path: Path) -> None:
    """Each committed transaction is synced into the write-ahead log before its answer."""
    trace = tmp_path / "trace"
    command = [STRACE, "-f", "-y", "-e", CALLS, "-o", trace]
    script = [sys.executable, "-c", SCRIPT, sqlite_url, str(ANSWERS)]
    run_bounded([*command, *script], check=True, stdout=subprocess.DEVNULL)
    text = trace.read_text(errors="replace")
    assert check_order(text, r"[^>]*etude\.db-wal", r'"ANSWER-') == ANSWERS


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that nobody else uses: another session's commit would sync ours too."""
    if os.environ.get("ETUDE_TEST_SKIP_POSTGRES") == "1":
        pytest.skip("ETUDE_TEST_SKIP_POSTGRES=1")
    folder = Path(tempfile.mkdtemp(prefix="etude-pg-"))
    alone = PostgresServer(folder)
    try:
        alone.start(owner_pid=os.getpid())
    except NoPostgres:
        pytest.fail("no PostgreSQL server program")
    yield alone
    alone.stop()


def processes_of(server: PostgresServer) -> list[int]:
    pid = server.pid()
    assert pid is not None
    known: list[list[str]] = [[]]

    def settled() -> bool:
        known.append(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return len(known) > LOOKS and all(one == known[-1] for one in known[-LOOKS:])

    until(settled, "a server without sessions that end just now: they could not be attached to")
    return [pid, *map(int, known[-1])]


def test_postgres_syncs_its_log_before_the_answer(server: PostgresServer, tmp_path: Path) -> None:
    """Each `COMMIT` of PostgreSQL is synced before the server acknowledges it."""
    asyncio.run(upgrade(server.url()))
    try:
        with Trace(processes_of(server), tmp_path / "trace") as trace:
            asyncio.run(_commit_some(server.url()))
    except NoTraceError as reason:
        pytest.skip(f"NOT CHECKED, strace may not attach: {reason}")
    text = trace.text()
    # Tag C, length, `COMMIT`: the acknowledgement of one.
    assert check_order(text, r"[^>]*/pg_wal/[^>]*", r"sendto\(.*C\\0\\0\\0\\vCOMMIT\\0") == ANSWERS


async def _commit_some(url: str) -> None:
    async with await Database.open(url) as database:
        for number in range(ANSWERS):
            async with database.transaction() as work:
                row = {"sha256": f"{number:064}", "size": 1, "created_us": 1}
                await work.connection.execute(insert(blob), [row])
