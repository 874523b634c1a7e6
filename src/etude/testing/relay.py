"""A network that breaks at the worst moment.

The server has the request and its answer never comes, or a large request ends in the middle.
"""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Final, Self

from etude.cli.listening import listen

_BLOCK_BYTES: Final = 1 << 16


class Relay:
    """Passes connections on to a local port, until told to lose an answer.

    >>> with Relay(server.port) as network:
    ...     network.lose_next_answer()
    ...     client = HttpClient(network.url)
    """

    def __init__(self, port: int) -> None:
        """Listen on a free port; connections go on to `port` of this machine."""
        self._target = port
        self._listener = listen("127.0.0.1", 0)
        self._listener.setblocking(True)  # noqa: FBT003 - the socket's own signature
        self._lose = threading.Event()
        self._left: int | None = None
        self.answers_lost = 0

    @property
    def url(self) -> str:
        """Where a client finds the server through this network."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def lose_next_answer(self) -> None:
        """Break the connection when the server's next answer begins to arrive."""
        self._lose.set()

    def cut_after(self, size: int | None) -> None:
        """Break a connection once so many bytes of it were passed on; None = let them be."""
        self._left = size

    def __enter__(self) -> Self:
        """Pass connections on."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take no more connections; those that are open end with their partners."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed by `__exit__`
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),  # either partner may go at any time
            socket.create_connection(("127.0.0.1", self._target)) as server,
        ):
            threading.Thread(target=self._pump, args=(client, server), daemon=True).start()
            while answer := server.recv(_BLOCK_BYTES):
                if self._lose.is_set():
                    self._lose.clear()
                    self.answers_lost += 1
                    client.shutdown(socket.SHUT_RDWR)  # also ends the other direction's thread
                    return
                client.sendall(answer)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        passed = 0
        with contextlib.suppress(OSError):  # either partner may go at any time
            while block := source.recv(_BLOCK_BYTES):
                passed += len(block)
                if self._left is not None and passed > self._left:
                    source.shutdown(socket.SHUT_RDWR)
                    target.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(block)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
