"""The rubrics at hand in a process that runs for months: read again when a file changes."""

import threading
from pathlib import Path
from typing import Final

from etude.rubric.library import SUFFIXES, RubricLibrary

Signature = frozenset[tuple[str, int, int]]
_NOTHING: Final[Signature] = frozenset()


class RubricShelf:
    """The shipped rubrics and those of a school's folder, as they are now. Any thread may ask."""

    def __init__(self, folder: Path) -> None:
        """Look into `folder`, which need not exist."""
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: Signature | None = None
        self._library = RubricLibrary(())

    def library(self) -> RubricLibrary:
        """Return the rubrics; reads files if they changed since the last time."""
        with self._lock:
            now = self._signature()
            if now != self._seen:
                self._library, self._seen = RubricLibrary.load(self._folder), now
            return self._library

    def _signature(self) -> Signature:
        try:
            files = [one for one in self._folder.iterdir() if one.suffix in SUFFIXES]
            stats = [(file.name, file.stat()) for file in files]
        except OSError:  # `RubricLibrary.load` says what is wrong with the folder
            return _NOTHING
        return frozenset((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
