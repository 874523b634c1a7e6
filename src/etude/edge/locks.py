"""Advisory locks: one writer a journal, one uploader a root.

The lock is on the folder itself, so there is no lock file to forget, and it goes with the process.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from etude.errors import EtudeError


class FolderLock:
    """An exclusive lock on a folder, held until `release` or the end of the process."""

    def __init__(self, path: Path, refused: Callable[[], EtudeError]) -> None:
        """Take the lock without waiting.

        Raises:
            EtudeError: what `refused` makes, if somebody else has it.
        """
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            os.close(self._descriptor)
            raise refused() from taken

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Hold the lock for a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back."""
        self.release()
