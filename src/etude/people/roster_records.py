"""Rosters as values, without a database: what web tells gateways about who is in which class.

Down the link goes `LearnerClasses` (kind `ROSTERS`), one item a learner: who joins or leaves is a
change of one small item, however large the class.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

ROSTERS: Final = "roster"


class InClass(msgspec.Struct, frozen=True, kw_only=True):
    """The learner is in a class (surrogate key) from `starts_us` until just before `ends_us`."""

    class_key: int
    starts_us: int
    ends_us: int | None = None

    def covers(self, at_us: int) -> bool:
        """Whether the learner is in it at that time (µs since 1970)."""
        return self.starts_us <= at_us and (self.ends_us is None or at_us < self.ends_us)


class LearnerClasses(msgspec.Struct, frozen=True, kw_only=True):
    """The classes that a learner (surrogate key) is in now or later; an item of `ROSTERS`.

    Archived classes are not among them. Without any, a gateway forgets the learner.
    """

    learner_key: int
    classes: tuple[InClass, ...] = ()

    def at(self, at_us: int) -> Iterator[int]:
        """Yield the keys of the classes that the learner is in at that time."""
        return (each.class_key for each in self.classes if each.covers(at_us))
