import os
import signal
from pathlib import Path
from typing import Never

import pytest

from etude.testing.server import ServerDiedError, ServerProcess
from etude.testing.waiting import StuckError


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


@pytest.mark.usefixtures("sqlite_url")
def test_a_server_that_does_not_end_shows_where_it_stands(tmp_path: Path) -> None:
    """Even one that is stopped: the error has the stacks of its threads, and it is ended."""
    with ServerProcess(tmp_path) as server:
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(StuckError, match=r"(?s)`etude web` did not end.*most recent call"):
            server.wait(0.1)
        assert server.wait() != 0
