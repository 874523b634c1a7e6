import pytest

from etude.practice.errors import FollowReadMoveError
from etude.practice.follow_read_moves import LEGAL, Move, Progress, State


def standing(state: State) -> Progress:
    """A follow-read of two steps that has come to `state` by legal moves."""
    progress = Progress(2)
    ways = {
        State.READY: [],
        State.PLAYING: [Move.PLAY],
        State.LISTENING: [Move.PLAY, Move.OPEN],
        State.OVER: [Move.LEAVE],
    }
    for move in ways[state]:
        progress.make(move)
    assert progress.state is state
    return progress


def refused(state: State, move: Move) -> None:
    progress = standing(state)
    with pytest.raises(FollowReadMoveError) as raised:
        progress.make(move)
    assert raised.value.params == {"state": state.value, "move": move.value}
    assert (progress.state, progress.step) == (state, 0)


def test_a_window_cannot_close_before_it_has_opened() -> None:
    """READY has no window whose clock could run out."""
    refused(State.READY, Move.CLOSE)


def test_a_clip_cannot_begin_while_another_plays() -> None:
    """One clip plays at a time."""
    refused(State.PLAYING, Move.PLAY)


def test_a_window_cannot_close_while_the_clip_plays() -> None:
    """Speech that is early closes nothing: no window is open."""
    refused(State.PLAYING, Move.CLOSE)


def test_a_clip_cannot_begin_while_the_window_is_open() -> None:
    """Only the clock ends a window; the same clip or the next cannot cut into it."""
    refused(State.LISTENING, Move.PLAY)


def test_a_window_cannot_open_twice() -> None:
    """A second end of the same clip opens nothing."""
    refused(State.LISTENING, Move.OPEN)


@pytest.mark.parametrize("move", list(Move))
def test_nothing_happens_after_the_end(move: Move) -> None:
    """A follow-read that is over stays over; it does not even end again."""
    refused(State.OVER, move)


def test_no_clip_follows_the_last() -> None:
    """After the last window nothing can begin, only end."""
    progress = standing(State.LISTENING)
    progress.make(Move.CLOSE)
    for move in (Move.PLAY, Move.OPEN, Move.CLOSE):
        progress.make(move)
    assert progress.exhausted
    for move in (Move.PLAY, Move.OPEN, Move.CLOSE):
        with pytest.raises(FollowReadMoveError):
            progress.make(move)
    progress.make(Move.LEAVE)


def test_only_the_closing_of_a_window_goes_to_the_next_step() -> None:
    """Of all legal moves one counts the step up, and by one: no step is repeated or skipped."""
    for state, moves in LEGAL.items():
        for move in moves:
            progress = standing(state)
            progress.make(move)
            assert progress.step == (1 if move is Move.CLOSE else 0), (state, move)
