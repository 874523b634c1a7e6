"""Time and ids that a test decides."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """A `Clock` that stands still until it is told to go on."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)) -> None:
        """Start at `now`, aware; the monotonic time starts at 1000 s."""
        self._now = now
        self._monotonic_s = 1000.0

    def now(self) -> datetime:
        """Wall-clock time."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks."""
        self._now += timedelta(seconds=seconds)
        self._monotonic_s += seconds

    def set_wall(self, now: datetime) -> None:
        """Set the wall clock alone, as a person or a time server does."""
        self._now = now


class CountingIds:
    """`Ids` that a person can read: `e001`, `e002` and so on."""

    def __init__(self, prefix: str = "e") -> None:
        """Count from 1 behind `prefix`."""
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        """Return the next id."""
        self._count += 1
        return f"{self._prefix}{self._count:03}"
