from pathlib import Path
from typing import Never

import pytest

from etude.testing.server import ServerDiedError, ServerProcess


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
