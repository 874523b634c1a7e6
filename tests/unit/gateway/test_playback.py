import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.gateway.playback import HOLD_S, Pacing, Player, Ticker
from etude.gateway.ports import PlaybackEnd
from etude.testing.memory_wire import plain_clip
from etude.testing.virtual_time import run

SLOT_S = Ticker.SLOT_S


class Stage:
    """A player and what came out of it, with times from the moment of its making."""

    def __init__(self, pacing: Pacing | None = None, ticker: Ticker | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.zero_s = self.loop.time()
        self.out: list[tuple[float, str]] = []
        self.ends: list[PlaybackEnd] = []
        self.player = Player(
            ticker or Ticker(),
            pacing or Pacing(),
            send=lambda packet, _: self.note(packet.decode()),
            started=lambda text: self.note(f"start {text}"),
            sentence=lambda text: self.note(f"sentence {text}"),
            stopped=lambda: self.note("stop"),
            guard=lambda ended, how: ended(how),
        )

    def note(self, what: str) -> None:
        self.out.append((self.loop.time() - self.zero_s, what))

    def play(self, frames: int = 10, text: str = "", *, more: bool = False) -> None:
        self.player.play(plain_clip(frames), self.ends.append, text, more=more)

    def words(self) -> list[str]:
        return [what for _, what in self.out]


def test_a_clip_is_paced() -> None:
    """`tts start`, 80 ms, frames each in its time, `tts stop` 200 ms after the nominal end."""

    async def body() -> None:
        stage = Stage(Pacing(ahead_frames=0))
        stage.play(10, "hi")
        await asyncio.sleep(5)
        times = [at for at, _ in stage.out]
        assert stage.words() == ["start hi", *(f"packet-{n:04d}" for n in range(10)), "stop"]
        for number, at in enumerate(times[1:-1]):
            assert 0 <= at - (0.08 + number * 0.06) <= SLOT_S + 1e-6
        assert times[-1] == pytest.approx(0.08 + 0.6 + 0.2, abs=1e-6)
        assert stage.ends == [PlaybackEnd.COMPLETED]

    run(body)


def test_errors_do_not_add_up() -> None:
    """The thousandth frame is as punctual as the first."""

    async def body() -> None:
        stage = Stage(Pacing(ahead_frames=0))
        stage.play(1000)
        await asyncio.sleep(70)
        assert stage.out[1000][0] - (0.08 + 999 * 0.06) <= SLOT_S + 1e-6
        assert stage.out[-1][0] == pytest.approx(60.28, abs=1e-6)

    run(body)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_the_pre_buffer_changes_no_end(ahead: int) -> None:
    """So many frames leave early, the end stays where the sound ends."""

    async def body() -> None:
        stage = Stage(Pacing(ahead_frames=ahead))
        stage.play(10)
        await asyncio.sleep(0.081)
        assert len(stage.out) == 1 + 1 + ahead
        await asyncio.sleep(5)
        assert stage.out[-1][0] == pytest.approx(0.88, abs=1e-6)

    run(body)


def test_an_empty_clip_ends() -> None:
    """Without a frame, with its messages."""

    async def body() -> None:
        stage = Stage()
        stage.play(0)
        await asyncio.sleep(1)
        assert stage.words() == ["start ", "stop"]
        assert stage.ends == [PlaybackEnd.COMPLETED]

    run(body)


@given(st.floats(0, 1.5))
@settings(max_examples=40, deadline=None)
def test_nothing_leaves_after_a_stop(at_s: float) -> None:
    """Whenever it comes: `tts stop` is last, and the end is told once."""

    async def body() -> None:
        stage = Stage()
        stage.play(10)
        await asyncio.sleep(at_s)
        stopped = stage.player.stop()
        assert stage.player.stop() is False
        before = stage.words()
        await asyncio.sleep(5)
        assert stage.words() == before
        assert before[-1] == "stop"
        assert before.count("stop") == 1
        assert stage.ends == [PlaybackEnd.STOPPED if stopped else PlaybackEnd.COMPLETED]

    run(body)


def test_another_clip_stops_the_first() -> None:
    """Whose end is told after `play` has returned; nothing of it follows the new start."""

    async def body() -> None:
        stage = Stage()
        ends: list[tuple[str, PlaybackEnd]] = []
        stage.player.play(plain_clip(50), lambda how: ends.append(("old", how)), "old")
        await asyncio.sleep(1)
        stage.player.play(plain_clip(3), lambda how: ends.append(("new", how)), "new")
        assert ends == []
        await asyncio.sleep(5)
        words = stage.words()
        assert words[words.index("start new") - 1 :] == [
            "stop", "start new", "packet-0000", "packet-0001", "packet-0002", "stop",
        ]  # fmt: skip
        assert ends == [("old", PlaybackEnd.STOPPED), ("new", PlaybackEnd.COMPLETED)]

    run(body)


def test_the_end_of_a_clip_may_start_the_next() -> None:
    """From within `ended`, whichever way it came."""

    async def body() -> None:
        stage = Stage()
        ends: list[PlaybackEnd] = []

        def again(how: PlaybackEnd) -> None:
            ends.append(how)
            stage.player.play(plain_clip(1), ends.append, "")

        stage.player.play(plain_clip(1), again, "")
        await asyncio.sleep(5)
        stage.player.play(plain_clip(9), again, "")
        stage.player.stop()
        await asyncio.sleep(5)
        assert ends == [
            PlaybackEnd.COMPLETED,
            PlaybackEnd.COMPLETED,
            PlaybackEnd.STOPPED,
            PlaybackEnd.COMPLETED,
        ]

    run(body)


def test_a_closed_player_ends_everything() -> None:
    """What plays, at once; what is asked for later, in the next turn of the loop."""

    async def body() -> None:
        stage = Stage()
        stage.play(10)
        await asyncio.sleep(0.3)
        sent = len(stage.out)
        stage.player.close()
        assert stage.ends == [PlaybackEnd.CLOSED]
        stage.play(1)
        assert stage.ends == [PlaybackEnd.CLOSED]
        await asyncio.sleep(5)
        assert stage.ends == [PlaybackEnd.CLOSED] * 2
        assert len(stage.out) == sent

    run(body)


def test_after_a_standstill_the_clip_moves() -> None:
    """At most four frames go at once, and the end moves as the device's sound does."""

    async def body() -> None:
        stage = Stage(Pacing(ahead_frames=1, burst_frames=4))
        stage.play(20)
        await asyncio.sleep(0.3)
        before = len(stage.out)
        stage.loop._jumping.now_s += 1.0  # type: ignore[attr-defined] # the loop stood still
        await asyncio.sleep(0.001)
        assert len(stage.out) - before <= 4
        await asyncio.sleep(5)
        lasts_s = 0.08 + 20 * 0.06 + 0.2
        assert len(stage.out) == 22
        assert lasts_s + 0.7 < stage.out[-1][0] < lasts_s + 1.0

    run(body)


def test_one_failing_stream_silences_no_other() -> None:
    """The ticker goes on."""

    async def body() -> None:
        ticker = Ticker()
        heard: list[str] = []

        def fail() -> None:
            raise RuntimeError

        due_s = asyncio.get_running_loop().time() + 1
        ticker.at(due_s, fail)
        ticker.at(due_s, lambda: heard.append("other"))
        await asyncio.sleep(2)
        assert heard == ["other"]

    run(body)


def test_many_streams_share_their_wakes() -> None:
    """250 streams of one phase wake the loop once a frame, and keep no timer at the end."""

    async def body() -> None:
        ticker = Ticker()
        stages = [Stage(ticker=ticker) for _ in range(250)]
        for stage in stages:
            stage.play(20)
        await asyncio.sleep(0.5)
        assert len(ticker._timers) == 1
        await asyncio.sleep(5)
        assert all(stage.ends == [PlaybackEnd.COMPLETED] for stage in stages)
        assert (ticker._timers, ticker._slots) == ({}, {})

    run(body)


def test_sentences_of_one_speech_share_their_start_and_stop() -> None:
    """The next clip goes on with the next frame: no `tts stop` between, one at the end."""

    async def body() -> None:
        stage = Stage(Pacing(ahead_frames=0))
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        stage.player.play(plain_clip(2), over.set_result, "one", more=True)
        assert await over is PlaybackEnd.COMPLETED
        assert stage.player.playing
        stage.play(2, "two")
        await asyncio.sleep(5)
        packets = ["packet-0000", "packet-0001"]
        assert stage.words() == ["start one", *packets, "sentence two", *packets, "stop"]
        at_s = [at for at, what in stage.out if what.startswith("packet")]
        for before, after in pairwise(at_s):
            assert after - before == pytest.approx(0.06, abs=SLOT_S + 1e-6)
        assert not stage.player.playing

    run(body)


@pytest.mark.parametrize("how", ["nothing follows", "stop", "close"])
def test_a_speech_that_does_not_go_on_is_ended(how: str) -> None:
    """`tts stop` after a while, at once when asked, never on a closed connection; sent once."""

    async def body() -> None:
        stage = Stage()
        stage.play(2, "one", more=True)
        await asyncio.sleep(0.3)
        assert stage.ends == [PlaybackEnd.COMPLETED]
        if how == "stop":
            assert stage.player.stop()
            assert not stage.player.stop()
        elif how == "close":
            stage.player.close()
        await asyncio.sleep(HOLD_S)
        assert stage.words().count("stop") == (0 if how == "close" else 1)
        assert not stage.player.playing
        assert stage.ends == [PlaybackEnd.COMPLETED]

    run(body)
