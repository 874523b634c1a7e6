import socket
import subprocess
import sys

import pytest

from etude.testing import ports

TAKES = """
from etude.testing.ports import free_port
print(*(free_port() for _ in range(50)), flush=True)
input()
"""


def test_nobody_is_given_the_same_port() -> None:
    """Not this process, and no other one: each keeps its ports though nobody listens on them."""
    found = [ports.free_port() for _ in range(50)]
    others = [
        subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", TAKES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        for other in others:
            assert other.stdout is not None
            found += map(int, other.stdout.readline().split())
    finally:
        for other in others:
            other.communicate("\n", timeout=60)
    assert len(found) == len(set(found)) == 200
    assert all(ports.FIRST <= port < ports.LAST for port in found)


def test_a_port_that_somebody_listens_on_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever it is, with or without a claim; one can listen on what is given."""
    port = ports.free_port()
    monkeypatch.setattr(ports, "_mine", set())
    monkeypatch.setattr(ports, "FIRST", port)
    monkeypatch.setattr(ports, "LAST", port + 1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match="no port is free"):
        ports.free_port()
    assert ports.free_port() == port
