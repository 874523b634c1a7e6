"""The border to practice: what it raises ends its task, and nothing else."""

from collections.abc import Callable
from typing import Final, TypeVarTuple

import structlog

from etude.gateway.ports import PlaybackEnd, Practice

_Arguments = TypeVarTuple("_Arguments")

LOGGED_FAILURES: Final = 20
"""Of one connection; a method that fails for every packet must not fill a disk."""

_log = structlog.get_logger(__name__)


class PracticeBorder:
    """Calls the practice of one connection, and what it gave to `Device`."""

    def __init__(self, connection_id: str) -> None:
        """There is no practice yet."""
        self._connection_id = connection_id
        self._failures = 0
        self.practice: Practice | None = None

    @property
    def failures(self) -> int:
        """How often practice has raised."""
        return self._failures

    def tell(self, method: Callable[[*_Arguments], None], *arguments: *_Arguments) -> None:
        """Call a method of practice; if it raises, practice ends its task (`Practice.failed`)."""
        try:
            method(*arguments)
        except Exception:  # noqa: BLE001 - the border: practice's errors are its own
            self._log_failure()
            self._fail()

    def played(self, ended: Callable[[PlaybackEnd], None], how: PlaybackEnd) -> None:
        """Call what practice gave to `Device.play`."""
        self.tell(ended, how)

    def busy(self) -> bool:
        """Whether practice has a task running."""
        try:
            return self.practice is not None and self.practice.busy
        except Exception:  # noqa: BLE001 - the border: practice's errors are its own
            self._log_failure()
            return False

    def _fail(self) -> None:
        try:
            if self.practice:
                self.practice.failed()
        except Exception:  # noqa: BLE001 - even its clean-up may fail
            self._log_failure()

    def _log_failure(self) -> None:
        self._failures += 1
        if self._failures <= LOGGED_FAILURES:
            _log.exception(
                "practice failed", action="practice.failed", connection=self._connection_id
            )
