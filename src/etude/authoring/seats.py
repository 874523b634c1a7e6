"""Where an author sits: for whom and in which run it works, and whether it still may write."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from etude.store import UnitOfWork

FRAMEWORK: Final = -1
"""The part of a course that is no module."""


class Seat(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run's place at an author's desk.

    Attributes:
        subject: whose work it is: `course:<key>`.
        run_id: of the run; the same after a kill.
        part: the index of the module, or `FRAMEWORK`.
        owner: whose quota is drawn on.
        fence: raises `Fenced` in a transaction if the run is no longer this process's.
    """

    subject: str
    run_id: str
    part: int
    owner: str
    fence: Callable[[UnitOfWork], Awaitable[None]]
