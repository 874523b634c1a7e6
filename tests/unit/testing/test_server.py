import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Never

import pytest

from etude.testing.server import ServerDiedError, ServerProcess
from etude.testing.waiting import StuckError, until


def test_a_server_that_does_not_listen_in_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`with` leaves no process behind when the start fails: its end is never reached then."""

    def too_late(_: object) -> Never:
        raise ServerDiedError

    server = ServerProcess(tmp_path)
    monkeypatch.setattr(server, "wait_for", too_late)
    with pytest.raises(ServerDiedError), server:
        pass
    assert server.wait() != 0


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


# Somebody who starts a server and is killed before stopping it.
STARTS = """
import sys, time
from pathlib import Path
from etude.testing.server import ServerProcess

server = ServerProcess(Path(sys.argv[1]))
server.start()
print(server.port, flush=True)
time.sleep(600)
"""


@pytest.mark.usefixtures("sqlite_url")
def test_a_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Also where that one is killed: soon nobody listens any more."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", STARTS, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            assert listens(port)
        finally:
            process.kill()
    until(lambda: not listens(port), "the end of the server")


@pytest.mark.usefixtures("sqlite_url")
def test_a_server_that_does_not_end_shows_where_it_stands(tmp_path: Path) -> None:
    """Even one that is stopped: the error has the stacks of its threads, and it is ended."""
    with ServerProcess(tmp_path) as server:
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(StuckError, match=r"(?s)`etude web` did not end.*most recent call"):
            server.wait(0.1)
        assert server.wait() != 0
