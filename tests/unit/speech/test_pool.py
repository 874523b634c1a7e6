"""The pool, with engines that are faulty when told to be."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.speech.audio import Pcm
from etude.speech.engines import SpeechOptions
from etude.speech.errors import (
    SpeechBusyError,
    SpeechClosedError,
    SpeechEngineError,
    SpeechWorkerError,
)
from etude.speech.pool import Lane, PoolLimits, SpeechPool, time_limit_s
from etude.speech.requests import Align, Recognise, Synthesise
from etude.testing.speech_engines import FACTORY
from etude.testing.waiting import ended, until

SECOND = Pcm(sample_rate=16_000, samples=bytes(32_000))
LONG_S = 120
LIMITS = PoolLimits(request_s=3.0, request_s_per_s=0.0, memory_bytes=512 * 1024 * 1024)


@pytest.fixture
def pool() -> Iterator[SpeechPool]:
    with SpeechPool(SpeechOptions(), limits=LIMITS, factory=FACTORY) as made:
        yield made


def said(pool: SpeechPool, text: str) -> str:
    return pool.recognise(SECOND, language="en", expected_text=text).result(LONG_S).text


def test_each_kind_of_request_is_answered(pool: SpeechPool) -> None:
    """Recognition, alignment and synthesis come back whole through the process."""
    heard = pool.recognise(SECOND, language="en", expected_text="one two")
    found = pool.align(SECOND, "one two", language="en")
    spoken = pool.synthesise("one", language="en")
    assert [token.text for token in heard.result(LONG_S).expected_tokens or ()] == [" one", " two"]
    alignment = found.result(LONG_S)
    assert alignment is not None
    assert [(word.text, word.start_ms) for word in alignment.words] == [("one", 0), ("two", 500)]
    assert spoken.result(LONG_S).sound.count == 2400
    assert pool.align(SECOND, " ", language="en").result(LONG_S) is None


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("please hang", "hung"),
        ("please crash", "crashed"),
        ("please grow", "out_of_memory"),
    ],
)
def test_a_process_that_fails_is_replaced(pool: SpeechPool, fault: str, reason: str) -> None:
    """Its request fails with the reason; the one that waited behind it is answered."""
    failed = pool.recognise(SECOND, language="en", expected_text=fault)
    behind = pool.recognise(SECOND, language="en", expected_text="still here")
    with pytest.raises(SpeechWorkerError) as caught:
        failed.result(LONG_S)
    assert caught.value.params == {"reason": reason}
    assert behind.result(LONG_S).text == "still here"
    assert pool.state().replaced == 1


def test_an_engine_that_raises_keeps_its_process(pool: SpeechPool) -> None:
    """A foreign exception is a typed error without its words."""
    with pytest.raises(SpeechEngineError) as caught:
        said(pool, "please raise")
    assert caught.value.params["reason"] == "ZeroDivisionError"
    assert said(pool, "next") == "next"
    assert pool.state().replaced == 0


def test_a_process_that_cannot_start_says_so() -> None:
    """Requests fail with `start`; nothing hangs and nothing is tried in a tight loop."""
    options = SpeechOptions(recogniser="please crash")
    with SpeechPool(options, factory=FACTORY) as pool:
        for _ in range(3):
            with pytest.raises(SpeechWorkerError) as caught:
                said(pool, "hello")
            assert caught.value.params == {"reason": "start"}


def test_a_full_lane_refuses_and_the_other_does_not() -> None:
    """Each lane has its bound; a request that has to wait too long is refused."""
    limits = PoolLimits(waiting=2)
    never = SpeechOptions(recogniser="please hang")  # it does not get ready: all waits
    pool = SpeechPool(never, limits=limits, factory=FACTORY)
    for _ in range(2):
        pool.recognise(SECOND, language="en")
    with pytest.raises(SpeechBusyError) as caught:
        pool.recognise(SECOND, language="en")
    assert caught.value.params["waiting"] == 2
    with pytest.raises(SpeechBusyError):
        pool.recognise(SECOND, language="en", wait_s=0.05)
    live = pool.recognise(SECOND, language="en", lane=Lane.LIVE)
    assert pool.state().waiting == 3
    pool.close()
    with pytest.raises(SpeechClosedError):
        live.result(LONG_S)


def test_who_practises_goes_first() -> None:
    """What is live is done before what is swept up, and that before what has its numbers.

    The engines start with the first request; until they are ready all of them wait.
    """
    pool = SpeechPool(SpeechOptions(), factory=FACTORY)
    done: list[str] = []
    lock = threading.Lock()
    futures = []
    for text, lane in (
        ("again", Lane.AGAIN),
        ("sweep", Lane.SWEEP),
        ("live", Lane.LIVE),
        ("live too", Lane.LIVE),
    ):
        future = pool.recognise(SECOND, language="en", expected_text=text, lane=lane)

        def note(_: object, text: str = text) -> None:
            with lock:
                done.append(text)

        future.add_done_callback(note)
        futures.append(future)
    for future in futures:
        future.result(LONG_S)
    pool.close()
    assert done == ["live", "live too", "sweep", "again"]


def test_who_waits_for_a_place_gets_it() -> None:
    """`wait_s` ends as soon as a place is free."""
    limits = PoolLimits(waiting=1)
    with SpeechPool(SpeechOptions(), limits=limits, factory=FACTORY) as pool:
        futures = [
            pool.recognise(SECOND, language="en", expected_text=str(number), wait_s=LONG_S)
            for number in range(8)
        ]
        assert [future.result(LONG_S).text for future in futures] == list("01234567")


def test_what_was_cancelled_is_not_done(pool: SpeechPool) -> None:
    """A request that nobody waits for any more costs nothing."""
    blocking = pool.recognise(SECOND, language="en", expected_text="please hang")
    left = pool.recognise(SECOND, language="en", expected_text="left")
    assert left.cancel()
    with pytest.raises(SpeechWorkerError):
        blocking.result(LONG_S)
    assert said(pool, "next") == "next"
    assert pool.state().answered == 1


def test_a_closed_pool_refuses() -> None:
    """What waits fails, what comes is refused, closing again is nothing, no process is left."""
    pool = SpeechPool(SpeechOptions(), limits=PoolLimits(request_s=LONG_S), factory=FACTORY)
    pool.start()
    said(pool, "warm")
    running = pool.recognise(SECOND, language="en", expected_text="please hang")
    waiting = pool.recognise(SECOND, language="en")
    until(lambda: pool.state().running, "a request that is done", told=lambda: str(pool.state()))
    pool.close()
    pool.close()
    for future in (running, waiting):
        with pytest.raises(SpeechClosedError):
            future.result(LONG_S)
    with pytest.raises(SpeechClosedError):
        pool.recognise(SECOND, language="en")


KEEPING = """
import sys, time
from etude.speech.audio import Pcm
from etude.speech.engines import SpeechOptions
from etude.speech.pool import SpeechPool
from etude.testing.speech_engines import FACTORY

pool = SpeechPool(SpeechOptions(), factory=FACTORY)
pool.start()
sound = Pcm(sample_rate=16_000, samples=bytes(3200))
pool.recognise(sound, language="en").result()
pool.recognise(sound, language="en", expected_text="please hang")
print(pool._workers[0]._process._popen.pid, flush=True)
time.sleep(600)
"""


def test_a_parent_that_is_killed_leaves_no_process() -> None:
    """After `kill -9` of whoever asks, a process that hangs in an engine ends too."""
    parent = subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-c", KEEPING], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    overdue = threading.Timer(LONG_S, parent.kill)  # then there is no line
    overdue.start()
    try:
        child = int(parent.stdout.readline())
    finally:
        overdue.cancel()
        parent.kill()
        ended(parent)
        parent.stdout.close()
    until(lambda: _state(child) == "Z", "the end of the engine's process")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_the_time_limit_grows_with_the_sound() -> None:
    """A minute, and four seconds for each second of sound or ten letters."""
    limits = PoolLimits()
    assert time_limit_s(Recognise(sound=SECOND, language="en"), limits) == 64
    assert time_limit_s(Align(sound=SECOND, text="x", language="en"), limits) == 64
    assert time_limit_s(Synthesise(text="x" * 20, language="en"), limits) == 68
