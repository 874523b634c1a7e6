"""A child process that ends when its parent does, however the parent ended.

The parent keeps the writing end of a pipe and never writes. When the parent is gone, `kill -9`
included, the system closes that end and the child reads the end of the file.
"""

import os
import signal
import threading
import time
from typing import Final

GRACE_S: Final = 15.0
"""What a child has for a graceful stop before it ends itself: more than web's own grace."""
_NAME: Final = "lifeline"


def watch(descriptor: int, grace_s: float = GRACE_S) -> None:
    """End this process once the other end of `descriptor` is closed.

    With SIGTERM, and hard `grace_s` later.
    """
    threading.Thread(target=_wait, args=(descriptor, grace_s), name=_NAME, daemon=True).start()


def watched() -> bool:
    """Say whether this process is somebody's child that ends with its parent."""
    return any(thread.name == _NAME for thread in threading.enumerate())


def _wait(descriptor: int, grace_s: float) -> None:
    while os.read(descriptor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    os._exit(1)
