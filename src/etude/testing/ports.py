"""Ports for servers of tests, which no other test takes, in whatever process it runs.

A port that is asked of the system (port 0), closed, and given to a server to listen on may be
somebody else's by then: another test process was given the same one. Then a server does not start,
or a test talks to a stranger's.
"""

import fcntl
import functools
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

FIRST: Final = 15_000
LAST: Final = 32_000
"""Below what the system itself gives out, to whoever asks for port 0 and to outgoing connections
(`net.ipv4.ip_local_port_range`)."""
_TRIES: Final = 1_000

_mine: set[int] = set()  # the system would let a process lock the same byte again


def free_port() -> int:
    """Return a port of the loopback that is free, and this process's for as long as it lives.

    Raises:
        OSError: a thousand that were tried are taken.
    """
    chance = random.Random()  # noqa: S311 - spreads processes, hides nothing
    for _ in range(_TRIES):
        port = chance.randrange(FIRST, LAST)
        if port not in _mine and _claimed(port) and _unused(port):
            _mine.add(port)
            return port
    message = "no port is free"
    raise OSError(message)


@functools.cache
def _claims() -> int:
    """Open the file that has a byte a port: its lock ends with the process, however that ends."""
    file = Path(tempfile.gettempdir()) / f"etude-test-ports-{os.getuid()}"
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _claimed(port: int) -> bool:
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _unused(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            return False
    return True
