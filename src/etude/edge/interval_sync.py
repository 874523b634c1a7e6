"""The `interval` policy: a sync at most 250 ms after a write, off the writer's thread."""

import threading
from collections.abc import Callable
from typing import Final

from etude.errors import EtudeError

INTERVAL_S: Final = 0.25


class IntervalSync:
    """Calls `sync` some time after each `wanted`, once for many."""

    def __init__(self, sync: Callable[[], None], interval_s: float = INTERVAL_S) -> None:
        """Start the thread; it ends at `stop` and never keeps the process alive."""
        self._sync = sync
        self._interval_s = interval_s
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        thread = threading.Thread(target=self._run, name="journal-sync", daemon=True)
        thread.start()

    def wanted(self) -> None:
        """Ask for a sync within the interval."""
        self._wanted.set()

    def stop(self) -> None:
        """End the thread without a further sync; does not wait for it."""
        self._stopped.set()
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._stopped.wait(self._interval_s):
                return
            self._wanted.clear()
            try:
                self._sync()
            except EtudeError:
                if not self._stopped.is_set():
                    self._wanted.set()  # a failing disk: try again after the interval
