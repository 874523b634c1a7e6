"""Disks that a gateway may have to record on: slow ones, full ones."""

import errno
import os
import time
from pathlib import Path
from typing import Final

from etude.files import AppendFile, Files

SLOW_S: Final = 0.03
"""What each write takes, in real time: a worn card under load."""


class _SlowFile(AppendFile):
    def write(self, data: bytes) -> int:
        time.sleep(SLOW_S)
        return super().write(data)

    def sync(self) -> None:
        time.sleep(SLOW_S)
        super().sync()


class SlowFiles(Files):
    """Every write and sync takes its time."""

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        """Open a slow file."""
        opened = super().open_append(path, mode)
        return _SlowFile(opened.path, opened.fileno())


class _FullFile(AppendFile):
    def write(self, data: bytes) -> int:
        del data
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullFiles(Files):
    """Nothing can be written any more; folders and entries still can be made."""

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        """Open a file that takes nothing."""
        opened = super().open_append(path, mode)
        return _FullFile(opened.path, opened.fileno())

    def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Fail."""
        del path, data, mode
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
