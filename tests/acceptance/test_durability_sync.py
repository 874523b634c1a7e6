"""What the server's system calls say: the sync has ended before the answer to an upload begins."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import asyncpg
import httpx2
import pytest

from etude.store import upgrade
from etude.testing.databases import NoPostgres, PostgresServer
from etude.testing.installation import Served, furnish
from etude.testing.kills import KillableServer
from etude.testing.nursery import Nursery
from etude.testing.school import body, event
from etude.testing.syscalls import AnsweredTooEarlyError, NoTraceError, Trace, synced_answers

UPLOADS = 5
MARKER = "proof-of-the-sync"
OK = "HTTP/1.1 200 OK"
NDJSON = {"Content-Type": "application/x-ndjson"}

WRITE = f'7 pwrite64(9</d/etude.db-wal>, "{MARKER}", 17, 0) = 17'
SYNC = "7 fdatasync(9</d/etude.db-wal>) = 0"
ANSWER = f'8 write(12<TCP:[1->2]>, "{OK}", 15) = 15'
SQLITE_LOG = r"[^>]*etude\.db-wal"


def upload(client: httpx2.Client, session_id: str) -> None:
    """One request after another, so that what is seen belongs to the answer that comes next."""
    for number in range(1, UPLOADS + 1):
        content = body(event(session_id, number, event_id=f"{MARKER}-{number}"))
        path = f"/api/v1/sessions/{session_id}/events"
        assert client.post(path, content=content, headers=NDJSON).status_code == 200


def counted(trace: str) -> int:
    return synced_answers(trace, log=SQLITE_LOG, marker=MARKER, answer=OK)


def test_the_check_can_fail() -> None:
    """Without a sync, with a late one, a failed one, and one that has not ended: too early."""
    begun = "7 fdatasync(9</d/etude.db-wal> <unfinished ...>"
    ended = "7 <... fdatasync resumed>) = 0"
    for good in ([WRITE, SYNC, ANSWER], [WRITE, begun, ended, ANSWER]):
        assert counted("\n".join(good)) == 1
    for lines in (
        [WRITE, ANSWER],
        [ANSWER],
        [WRITE, ANSWER, SYNC],
        [SYNC, WRITE, ANSWER],
        [WRITE, begun, ANSWER, ended],
        [begun, WRITE, ended, ANSWER],
        [WRITE, SYNC.replace("= 0", "= -1 EIO"), ANSWER],
    ):
        with pytest.raises(AnsweredTooEarlyError):
            counted("\n".join(lines))


def test_sqlite_has_synced_before_the_answer_leaves(
    sqlite_server: Served, session_id: str, tmp_path: Path
) -> None:
    """Every acknowledged upload: its pages are written to the WAL, synced, then answered."""
    with sqlite_server.client("toy-1") as client:
        client.get("/health")  # the connection is there
        try:
            with Trace([sqlite_server.server.pid], tmp_path / "trace") as trace:
                upload(client, session_id)
        except NoTraceError as reason:
            pytest.skip(f"NOT PROVEN, nothing can be traced: {reason}")
    assert counted(trace.text()) == UPLOADS


def test_a_recording_is_synced_before_the_answer_leaves(
    sqlite_server: Served, session_id: str, tmp_path: Path
) -> None:
    """Its bytes are on the disk before it has a name, and before 201 says so."""
    data = f"{MARKER} and what was played".encode()
    with sqlite_server.client("toy-1") as client:
        upload(client, session_id)
        path = f"/api/v1/sessions/{session_id}/media/{sha256(data).hexdigest()}"
        try:
            with Trace([sqlite_server.server.pid], tmp_path / "trace") as trace:
                sent = client.put(path, content=data, headers={"Content-Type": "audio/wav"})
        except NoTraceError as reason:
            pytest.skip(f"NOT PROVEN, nothing can be traced: {reason}")
    assert sent.status_code == 201
    blobs = str(sqlite_server.installation.data / "blobs")
    for log in (rf"{blobs}[^>]*", SQLITE_LOG):
        marker = MARKER if log.startswith(blobs) else ""
        answer = "HTTP/1.1 201 Created"
        assert synced_answers(trace.text(), log=log, marker=marker, answer=answer) == 1


@pytest.fixture
def cluster() -> Iterator[PostgresServer]:
    """A PostgreSQL that nobody else uses: a stranger's commit would sync ours too."""
    if os.environ.get("ETUDE_TEST_SKIP_POSTGRES") == "1":
        pytest.skip("ETUDE_TEST_SKIP_POSTGRES=1")
    alone = PostgresServer(Path(tempfile.mkdtemp(prefix="etude-pg-")))
    try:
        alone.start(owner_pid=os.getpid())
    except NoPostgres:
        pytest.fail("no PostgreSQL server program")
    yield alone
    alone.stop()


async def _made_careless(url: str) -> dict[str, str]:
    """Switch the default to lazy commits, which no administrator should; return what stays."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
        return {
            name: await connection.fetchval(f"SHOW {name}")
            for name in ("fsync", "full_page_writes", "wal_sync_method")
        }
    finally:
        await connection.close()


def test_postgresql_has_synced_before_the_answer_leaves(
    nursery: Nursery, cluster: PostgresServer, session_id: str, tmp_path: Path
) -> None:
    """Also where the database's default is `synchronous_commit = off`: its WAL is synced first."""
    asyncio.run(upgrade(cluster.url()))
    settings = asyncio.run(_made_careless(cluster.url()))
    assert (settings["fsync"], settings["full_page_writes"]) == ("on", "on")
    assert settings["wal_sync_method"] in {"fdatasync", "fsync"}, "an open flag shows no call"
    server = KillableServer(nursery, furnish(tmp_path, cluster.url()))
    server.start()
    postmaster = cluster.pid()
    assert postmaster is not None
    with server.client("toy-1") as client:
        upload(client, f"{session_id}-before")
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        watched = [server.pid, postmaster, *map(int, children)]
        try:
            with Trace(watched, tmp_path / "trace") as trace:
                upload(client, session_id)
        except NoTraceError as reason:
            pytest.skip(f"NOT PROVEN, nothing can be traced: {reason}")
    server.kill()
    log = r"[^>]*/pg_wal/[^>]*"
    assert synced_answers(trace.text(), log=log, marker=MARKER, answer=OK) == UPLOADS
