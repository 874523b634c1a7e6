"""Where an author sits: for whom and in which run it works, and whether it still may write."""

from collections.abc import Awaitable, Callable
from typing import Final

from etude.people.spending.ledger import Place
from etude.store import UnitOfWork

FRAMEWORK: Final = -1
"""The part of a course that is no module."""


class Seat(Place, frozen=True, kw_only=True, eq=False):
    """A run's place at an author's desk.

    Attributes:
        fence: raises `Fenced` in a transaction if the run is no longer this process's.
    """

    fence: Callable[[UnitOfWork], Awaitable[None]]
