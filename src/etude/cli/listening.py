"""The socket that the server listens on. Made here so that it outlives a restart of the server.

While `web` restarts, callers wait in the socket's queue instead of being refused.
"""

import os
import socket
from typing import Final

from etude.errors import UnavailableError

BACKLOG: Final = 2048


class AddressUnusableError(UnavailableError):
    """The address is taken, is not this machine's, or needs rights that this user lacks."""

    code = "ADDRESS_UNUSABLE"


def listen(host: str, port: int) -> socket.socket:
    """Return a TCP socket that queues connections on `host` and `port` (0: any free port).

    Raises:
        AddressUnusableError: the address cannot be listened on; `reason` is the system's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _bound(socket.socket(family, kind, protocol), address)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise AddressUnusableError(host=host, port=port, reason=reason) from error


def _bound(listener: socket.socket, address: tuple[object, ...]) -> socket.socket:
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.settimeout(0)  # never wait: an event loop accepts
    except OSError:
        listener.close()
        raise
    return listener


def inherited(descriptor: int) -> socket.socket:
    """Return the listening socket that the parent process passed on."""
    return socket.socket(fileno=descriptor)


def url_of(listener: socket.socket, host: str) -> str:
    """Return the URL at which a caller reaches `listener`."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"
