"""Whatever happens to a process of the pool: who asked gets an answer, and it can be closed."""

import errno
import threading
from typing import Any

import pytest

from etude.speech import engine_process
from etude.speech import pool as pool_module
from etude.speech.audio import Pcm
from etude.speech.engine_process import EngineProcess
from etude.speech.engines import SpeechOptions
from etude.speech.errors import SpeechClosedError, SpeechWorkerError
from etude.speech.pool import PoolLimits, SpeechPool
from etude.speech.requests import Answer, Begin, Ready, Request
from etude.testing.speech_engines import FACTORY

SECOND = Pcm(sample_rate=16_000, samples=bytes(32_000))
LONG_S = 60


def pool_of(**others: Any) -> SpeechPool:
    return SpeechPool(SpeechOptions(), factory=FACTORY, **others)


def close(pool: SpeechPool) -> None:
    """Close a pool; fail where that never ends."""
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(LONG_S)
    assert not closing.is_alive()


def reason_of(pool: SpeechPool) -> str:
    with pytest.raises(SpeechWorkerError) as caught:
        pool.recognise(SECOND, language="en", expected_text="one").result(LONG_S)
    return str(caught.value.params["reason"])


def test_a_system_without_room_for_a_process_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork that fails fails one request; the pool works again once there is room."""
    full = [True]

    def made() -> EngineProcess:
        if full[0]:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return EngineProcess()

    monkeypatch.setattr(pool_module, "EngineProcess", made)
    monkeypatch.setattr(pool_module, "_LONGEST_PAUSE_S", 0.0)
    pool = pool_of()
    assert [reason_of(pool), reason_of(pool)] == ["start", "start"]
    full[0] = False
    heard = pool.recognise(SECOND, language="en", expected_text="one").result(LONG_S)
    assert heard.text == "one"
    close(pool)


def test_a_system_without_room_for_a_thread_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that watches the time cannot be started: one request fails, the next is done."""
    pool = pool_of()
    first = pool.recognise(SECOND, language="en", expected_text="one")
    assert first.result(LONG_S).text == "one"

    def refused(*_: object) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(pool_module, "_LONGEST_PAUSE_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(engine_process.threading.Timer, "start", refused)
        assert reason_of(pool) == "crashed"
    heard = pool.recognise(SECOND, language="en", expected_text="two").result(LONG_S)
    assert heard.text == "two"
    close(pool)


@pytest.mark.parametrize(
    "answer", [b"", b"\xc1", b"\x80", b"\x92\xa5Heard\x01"], ids=["empty", "never", "map", "half"]
)
def test_an_answer_that_is_none_is_a_crash(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read ends its process and fails its request; the next is done."""
    pool = pool_of()
    first = pool.recognise(SECOND, language="en", expected_text="one")
    assert first.result(LONG_S).text == "one"
    monkeypatch.setattr(pool_module, "_LONGEST_PAUSE_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(engine_process, "receive", lambda _: answer)
        assert reason_of(pool) in {"crashed", "start"}
    heard = pool.recognise(SECOND, language="en", expected_text="two").result(LONG_S)
    assert heard.text == "two"
    close(pool)


class _Confused:
    """A process that answers a request as it would answer its beginning."""

    exit_code = None

    def is_alive(self) -> bool:
        return True

    def begin(self, begin: Begin, limit_s: float) -> bool:
        return bool(begin.factory and limit_s)

    def ask(self, request: Request, limit_s: float) -> Answer:
        assert request is not None
        assert limit_s
        return Ready()

    def kill(self) -> None:
        pass

    def end(self) -> None:
        pass


def test_an_answer_to_nothing_settles_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even `Ready` where a result was asked for: nobody waits for ever."""
    monkeypatch.setattr(pool_module, "EngineProcess", _Confused)
    pool = pool_of()
    assert reason_of(pool) == "crashed"
    close(pool)


@pytest.mark.parametrize("asks", [0, 1, 3])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_pool_can_be_closed_at_any_moment(asks: int, processes: int) -> None:
    """While its processes start, while they work: it ends, and so does all that was asked."""
    for after_s in (0.0, 0.02, 0.2):
        pool = pool_of(processes=processes, limits=PoolLimits(request_s=LONG_S))
        pool.start()
        asked = [
            pool.recognise(SECOND, language="en", expected_text="please hang") for _ in range(asks)
        ]
        threading.Event().wait(after_s)
        close(pool)
        for one in asked:
            with pytest.raises(SpeechClosedError):
                one.result(0)


def test_a_pool_that_cannot_start_for_a_day_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it failed, the pause has its bound."""
    monkeypatch.setattr(pool_module, "EngineProcess", _refusing)
    pool = pool_of()
    (worker,) = pool._workers
    worker._failures = 5000
    assert reason_of(pool) == "start"
    close(pool)


def _refusing() -> EngineProcess:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")
