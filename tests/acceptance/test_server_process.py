"""The server as a process: it starts, refuses to start, stops, is killed, and comes back."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from etude.cli import exits
from etude.testing.server import DEADLINE_S, ServerProcess
from etude.testing.waiting import run_bounded

LINE = b'{"event_id":"e1","session_id":"s1","ts":0,"event_type":"session_start","signal":"begin"}\n'


def _prepare(data: Path) -> str:
    """Set up as an operator does, with a device; return its token."""
    made = run_bounded(
        [sys.executable, "-m", "etude", "init", "--data", str(data), "--device", "toy-1", "--json"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return str(json.loads(made.stdout)["upload"]["token"])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    data = tmp_path_factory.mktemp("data")
    return data, _prepare(data)


@pytest.fixture(scope="module")
def server(prepared: tuple[Path, str]) -> Iterator[ServerProcess]:
    """One server for the tests that do not stop it."""
    with ServerProcess(prepared[0]) as running:
        yield running


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def talk(port: int, *pieces: bytes) -> bytes:
    """Send raw bytes; return everything that comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as line:
        for piece in pieces:
            line.sendall(piece)
        return b"".join(iter(lambda: line.recv(65536), b""))


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def begun_upload(port: int, token: str) -> socket.socket:
    """Send the head of an upload and the first half of its body."""
    line = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    head = (
        "POST /api/v1/sessions/s1/events HTTP/1.1\r\nHost: etude.test\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/x-ndjson\r\n"
        f"Content-Length: {len(LINE)}\r\nExpect: 100-continue\r\n\r\n"
    )
    line.sendall(head.encode())
    assert line.recv(65536).startswith(b"HTTP/1.1 100")  # the handler waits for the body
    line.sendall(LINE[:20])
    return line


def test_it_lives_and_is_ready(server: ServerProcess) -> None:
    """`/health` and `/ready` answer without a token; HEAD as GET, without the content."""
    assert httpx2.get(f"{server.url}/health").json() == {"status": "ok"}
    assert httpx2.get(f"{server.url}/ready").json() == {"status": "ready"}
    head = httpx2.head(f"{server.url}/health")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "15")


def test_its_answers_are_guarded(server: ServerProcess) -> None:
    """Security headers and a request id on every answer, good or bad; no server banner."""
    for path in ("/health", "/nope"):
        headers = httpx2.get(f"{server.url}{path}").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["x-request-id"]
        assert "server" not in headers


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /\xe4 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_problem_too(sent: bytes, server: ServerProcess) -> None:
    """400 with a problem document; the server goes on."""
    answer = talk(server.port, sent)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert b"REQUEST_MALFORMED" in answer
    assert httpx2.get(f"{server.url}/health").is_success


def test_a_token_never_reaches_the_log(server: ServerProcess, prepared: tuple[Path, str]) -> None:
    """Neither from the header, nor the path, nor the query, nor the body; paths are templates."""
    token = prepared[1]
    with httpx2.Client(base_url=server.url) as client:
        for path in (f"/api/v1/sessions/{token}/events", f"/{token}", f"/health?token={token}"):
            header = {"Authorization": f"Bearer {token}"}
            client.post(path, content=token, headers=header)
            client.get(path, headers=header)
        answered = client.post("/api/v1/sessions/learner-7/events", content=LINE)
    line = server.wait_for(
        "http.request", lambda line: line["request_id"] == answered.headers["x-request-id"]
    )
    assert line["route"] == "/api/v1/sessions/{session_id}/events"
    assert line["code"] == "TOKEN_MISSING"
    for private in (token, token[4:20], "learner-7"):
        assert private not in server.log_text()


def test_a_stop_lets_requests_end(prepared: tuple[Path, str]) -> None:
    """SIGTERM: nobody new is let in, the upload in flight is stored and answered, exit code 0."""
    data, token = prepared
    with ServerProcess(data) as server:
        with begun_upload(server.port, token) as line:
            os.kill(server.pid, signal.SIGTERM)
            until(lambda: refused(server.port))
            line.sendall(LINE[20:])
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"events_received":1' in answer
        assert server.wait() == exits.OK
        assert server.log_lines()[-1]["action"] == "web.stopped"


@pytest.mark.soak
def test_a_stop_does_not_wait_for_ever(prepared: tuple[Path, str]) -> None:
    """A body that never comes: the server has stopped with exit code 0 after its grace of 10 s."""
    data, token = prepared
    with ServerProcess(data) as server, begun_upload(server.port, token):
        assert server.stop() == exits.OK


def test_it_comes_back_after_a_kill(prepared: tuple[Path, str]) -> None:
    """`kill -9`, then a start on the same port: ready again. A misspelt setting is warned of."""
    with ServerProcess(prepared[0], environment={"ETUDE_PROT": "1"}) as server:
        server.kill()
        assert refused(server.port)
        server.start()
        assert httpx2.get(f"{server.url}/ready").is_success
        line = server.wait_for("settings.unknown")
        assert (line["variable"], line["level"]) == ("ETUDE_PROT", "warning")
        assert server.stop(signal.SIGINT) == exits.OK


def test_serve_keeps_web_and_worker_running(prepared: tuple[Path, str]) -> None:
    """Every web killed: callers wait, nobody is refused. Then SIGTERM: all stop, exit code 0."""
    webs = ("web-1", "web-2")
    environment = {"ETUDE_WEB_PROCESSES": str(len(webs))}
    with ServerProcess(prepared[0], command="serve", environment=environment) as server:
        server.wait_for("worker.started")
        for name in webs:
            first = server.wait_for("serve.child_started", lambda line, n=name: line["child"] == n)
            os.kill(int(first["child_pid"]), signal.SIGKILL)
        answer = httpx2.get(f"{server.url}/ready", timeout=DEADLINE_S)
        assert answer.is_success
        for name in webs:
            ended = server.wait_for("serve.child_ended", lambda line, n=name: line["child"] == n)
            assert ended["exit_code"] == -signal.SIGKILL
        assert server.stop() == exits.OK
        assert refused(server.port)
        actions = [line["action"] for line in server.log_lines()]
        assert {"web.stopped", "worker.stopped", "serve.stopped"} <= set(actions)
        assert "serve.child_killed" not in actions


def test_nothing_outlives_a_killed_supervisor(prepared: tuple[Path, str]) -> None:
    """`kill -9` of `etude serve`: web and worker end too, and the port is free again."""
    environment = {"ETUDE_WEB_PROCESSES": "2"}
    with ServerProcess(prepared[0], command="serve", environment=environment) as server:
        server.wait_for("worker.started")
        server.wait_for("serve.child_started", lambda line: line["child"] == "web-2")
        children = [
            int(line["child_pid"])
            for line in server.log_lines()
            if line.get("action") == "serve.child_started"
        ]
        assert len(children) == 4
        server.kill()
        until(lambda: not any(running(pid) for pid in children))
        assert refused(server.port)
