"""How much one process holds in memory for its callers at a time.

A body is kept whole until its lines are durable. Without a bound, a class of toys that comes back
online at the same moment could end the process by its memory. Over the bound a caller is told to
come again (429 with `Retry-After`): nothing of the body was kept, and the outbox retries by itself.
"""

from typing import Final

from etude.web.errors import BusyError

MAX_BYTES: Final = 64 * 1024 * 1024
RETRY_AFTER_S: Final = 2


class InFlight:
    """Counts the inflated body bytes that are held now. One per process, one event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """Allow `max_bytes` at a time."""
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def hold(self, size_bytes: int) -> None:
        """Count `size_bytes` more; `BusyError` if that is over the bound (and counts nothing)."""
        if self.held_bytes + size_bytes > self._max_bytes:
            raise BusyError(retry_after_s=RETRY_AFTER_S)
        self.held_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """Count `size_bytes` less."""
        self.held_bytes -= size_bytes
