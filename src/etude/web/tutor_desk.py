"""What one process keeps for learners who ask a model: how often each did, and what they read."""

from collections import OrderedDict, deque
from datetime import datetime, timedelta
from typing import Final

from etude.classroom.model import Classroom
from etude.courseware.errors import TutorTooManyError

AN_HOUR: Final = 60
"""So many questions one principal may have answered by one process within an hour."""
_HOUR: Final = timedelta(hours=1)
_KEPT: Final = 8


class TutorDesk:
    """Belongs to one event loop."""

    def __init__(self, an_hour: int = AN_HOUR) -> None:
        """Allow `an_hour` questions each."""
        self._an_hour = an_hour
        self._asked: dict[tuple[str, int], deque[datetime]] = {}
        self._read: OrderedDict[str, Classroom] = OrderedDict()

    def allow(self, principal: tuple[str, int], now: datetime) -> None:
        """Count a question; `TutorTooManyError` if there were enough within the hour."""
        self._forget(now)
        asked = self._asked.setdefault(principal, deque())
        if len(asked) >= self._an_hour:
            wait_s = max(1, round((asked[0] + _HOUR - now).total_seconds()))
            raise TutorTooManyError(limit=self._an_hour, retry_after_s=wait_s)
        asked.append(now)

    def read(self, sha256: str) -> Classroom | None:
        """Return the classroom of a bundle that was read before."""
        if sha256 in self._read:
            self._read.move_to_end(sha256)
        return self._read.get(sha256)

    def keep(self, sha256: str, classroom: Classroom) -> None:
        """Keep the classroom of a bundle for the next question; the oldest goes."""
        self._read[sha256] = classroom
        while len(self._read) > _KEPT:
            self._read.popitem(last=False)

    def _forget(self, now: datetime) -> None:
        for who, asked in list(self._asked.items()):
            while asked and asked[0] <= now - _HOUR:
                asked.popleft()
            if not asked:
                del self._asked[who]
