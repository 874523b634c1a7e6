"""The repeater: a file, played a number of times. Neither assessed nor recorded."""

from collections.abc import Callable

from etude.practice.players import ClipEnd, Outcome, Player
from etude.practice.records import Clip, EndReason
from etude.practice.tasks import Task


class Repeater:
    """Plays one clip `repeat` times, then ends as completed; a stop ends it as stopped."""

    def __init__(
        self,
        task: Task,
        clip: Clip,
        repeat: int,
        player: Player,
        finished: Callable[[EndReason], None],
    ) -> None:
        """Make it; `finished` is called once, unless the connection is lost."""
        self._task = task
        self._clip = clip
        self._repeat = repeat
        self._player = player
        self._finished: Callable[[EndReason], None] | None = finished

    def begin(self) -> None:
        """Begin to play."""
        self._player.play(self._task, self._clip, self._ended, self._repeat)

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Nobody listens."""

    def recognised(self, text: str, at_s: float) -> None:
        """Whatever is no exit phrase changes nothing."""

    def listen_stopped(self) -> None:
        """Nobody listens."""

    def aborted(self) -> None:
        """Somebody stopped it."""
        self.leave(EndReason.PLAY_STOPPED)

    def leave(self, reason: EndReason) -> None:
        """Stop."""
        if self._finished is not None:
            self._player.stop()
            self._finish(reason)

    def disconnect(self) -> None:
        """There is nothing to keep."""
        self._finished = None
        self._player.stop()

    def _ended(self, end: ClipEnd) -> None:
        reasons = {
            Outcome.PLAYED: EndReason.PLAY_COMPLETED,
            Outcome.STOPPED: EndReason.PLAY_STOPPED,
            Outcome.FAILED: EndReason.ERROR,
        }
        self._finish(reasons[end.outcome])

    def _finish(self, reason: EndReason) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            finished(reason)
