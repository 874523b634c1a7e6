import signal
import subprocess
import sys

from etude.testing.databases import _ended, _runs

SLEEPS = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]


def test_a_server_that_nobody_waited_for_has_ended_all_the_same() -> None:
    """Where process 1 waits for nobody its entry stays, and signals can be sent to it for ever."""
    with subprocess.Popen(SLEEPS, stdout=subprocess.PIPE) as server:  # noqa: S603 - our own words
        assert server.stdout is not None
        server.stdout.readline()
        assert _runs(server.pid)
        assert _ended(server.pid, signal.SIGKILL)
        server.send_signal(0)  # it is still there
        assert not _runs(server.pid)
    assert not _runs(server.pid)
