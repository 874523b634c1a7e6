"""What may happen in a follow-read, and when: `LEGAL` is the whole of it. Pure, without a clock."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from etude.practice.errors import FollowReadMoveError


class State(StrEnum):
    """Where a follow-read is."""

    READY = "ready"
    """Nothing plays and no window is open: before the first step, and for an instant after each."""
    PLAYING = "playing"
    """A clip plays. What the microphone sends is nobody's."""
    LISTENING = "listening"
    """The window is open."""
    OVER = "over"


class Move(StrEnum):
    """What can happen."""

    PLAY = "play"
    """The clip of the next step begins."""
    OPEN = "open"
    """The clip has ended, or the step has none."""
    CLOSE = "close"
    """The window's timer is due. Nothing else closes a window so that the next clip follows."""
    LEAVE = "leave"
    """Exit phrase, stop, preemption, disconnection, or the end of the list."""


LEGAL: Final[Mapping[State, Mapping[Move, State]]] = {
    State.READY: {
        Move.PLAY: State.PLAYING,
        Move.OPEN: State.LISTENING,
        Move.LEAVE: State.OVER,
    },
    State.PLAYING: {Move.OPEN: State.LISTENING, Move.LEAVE: State.OVER},
    State.LISTENING: {Move.CLOSE: State.READY, Move.LEAVE: State.OVER},
    State.OVER: {},
}


class Progress:
    """Where a follow-read of `steps` steps stands.

    Attributes:
        state: where it is.
        step: the first step whose window has not closed.
    """

    def __init__(self, steps: int, first: int = 0) -> None:
        """Stand before step `first`."""
        self.state = State.READY
        self.step = first
        self._steps = steps

    @property
    def exhausted(self) -> bool:
        """Whether no step is left."""
        return self.step >= self._steps

    def make(self, move: Move) -> None:
        """Go on by one move; `FollowReadMoveError` if it is not `LEGAL`, or no step is left."""
        after = LEGAL[self.state].get(move)
        if after is None or (self.exhausted and move is not Move.LEAVE):
            raise FollowReadMoveError(state=self.state.value, move=move.value)
        self.state = after
        if move is Move.CLOSE:
            self.step += 1
