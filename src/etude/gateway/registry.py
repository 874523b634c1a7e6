"""Which device is connected by which connection: the newest wins.

A toy that lost its network comes back while its old socket still looks alive. The old connection is
told that it was replaced (its practice ends or waits for a resume), its socket is torn down in the
background, and the new one waits for nothing.
"""

import itertools
from collections.abc import Callable

from etude.gateway.connection import DeviceConnection
from etude.gateway.ports import CloseReason


class Registry:
    """The connections that have said hello, by device, and all that are open."""

    def __init__(self) -> None:
        """Nobody is connected."""
        self._serials = itertools.count()
        self._open: dict[DeviceConnection, int] = {}
        self._newest: dict[str, DeviceConnection] = {}
        self.on_joined: Callable[[DeviceConnection], None] = lambda _connection: None
        """Called when a connection has become its device's one."""
        self.on_parted: Callable[[DeviceConnection], None] = lambda _connection: None
        """Called when a connection that was its device's one is over."""

    def __len__(self) -> int:
        """How many connections are open, with or without a hello."""
        return len(self._open)

    def opened(self, connection: DeviceConnection) -> None:
        """Know a connection from its handshake on."""
        self._open[connection] = next(self._serials)

    def greeted(self, connection: DeviceConnection) -> None:
        """Let it be its device's one, or close it if a newer one has said hello already.

        Only a hello replaces: a socket that says nothing must not end a lesson.
        """
        other = self._newest.get(connection.device_id)
        if other is connection:
            return
        if other and self._open.get(other, -1) > self._open.get(connection, -1):
            connection.close(CloseReason.REPLACED)
            return
        self._newest[connection.device_id] = connection
        self.on_joined(connection)
        if other:
            other.close(CloseReason.REPLACED)

    def left(self, connection: DeviceConnection) -> None:
        """Forget it; a newer one of the same device stays."""
        self._open.pop(connection, None)
        if self._newest.get(connection.device_id) is connection:
            del self._newest[connection.device_id]
            self.on_parted(connection)

    def connection(self, device_id: str) -> DeviceConnection | None:
        """Return the connection of a device; None = it is not connected."""
        found = self._newest.get(device_id)
        return found if found and found.close_reason is None else None

    def connected(self) -> list[DeviceConnection]:
        """Return the one connection of each device."""
        return [one for one in self._newest.values() if one.close_reason is None]

    def in_use(self) -> bool:
        """Whether anybody practises, or hears something."""
        return any(one.in_use for one in self._newest.values())

    def close_all(self, reason: CloseReason) -> None:
        """Close every connection, greeted or not."""
        for connection in list(self._open):
            connection.close(reason)
