"""The pool: engines in processes of their own, so that none can hurt whoever asks.

Bounded: a lane that is full refuses at once. Whoever hangs is killed after a time that grows with
the sound, whoever crashes or takes too much memory is replaced; the one request that it had fails
with `SpeechWorkerError`, the others never notice. How to use it: `engines`.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

import msgspec
import structlog

from etude.speech.align import Alignment
from etude.speech.audio import Pcm
from etude.speech.engine_process import EngineProcess, worker_failed
from etude.speech.engines import SpeechOptions
from etude.speech.errors import SpeechBusyError, SpeechClosedError, SpeechWorkerError
from etude.speech.recognise import Recognised
from etude.speech.requests import (
    Align,
    Answer,
    Begin,
    Detect,
    Failed,
    Kind,
    Ready,
    Recognise,
    Request,
    Synthesise,
)
from etude.speech.synthesise import Speech
from etude.speech.voice_activity import Spoken

FACTORY: Final = "etude.speech.engines:Engines"
_RETRY_AFTER_S: Final = 5
_LONGEST_PAUSE_S: Final = 60.0

_log = structlog.get_logger(__name__)


class Lane(IntEnum):
    """Who waits for the answer. A lower number goes first."""

    LIVE = 0
    """Somebody who is practising."""
    SWEEP = 1
    """A job that comes back if it must."""
    AGAIN = 2
    """What has its numbers already, from older engines."""


class PoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool allows.

    Attributes:
        waiting: requests in each lane.
        start_s: until a process is ready, models loaded.
        request_s: for a request without sound, and on top of the next.
        request_s_per_s: for each second of sound, or ten letters of text.
        memory_bytes: of one process.
    """

    waiting: int = 64
    start_s: float = 120.0
    request_s: float = 60.0
    request_s_per_s: float = 4.0
    memory_bytes: int = 2 * 1024 * 1024 * 1024


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool did and does: numbers of requests, and of processes that were replaced."""

    waiting: int
    running: int
    answered: int
    failed: int
    replaced: int


@dataclass(frozen=True)
class _Job:
    request: Request
    future: "Future[Any]"


class SpeechPool:
    """Processes with engines, started by the first request. Any thread may ask; close it.

    Args:
        options: which engines.
        processes: how many; each takes about 300 MB and fills one core.
        warm: what each loads before its first request.
        limits: see `PoolLimits`.
        factory: what makes the engines in the process (`module:name`).
    """

    def __init__(
        self,
        options: SpeechOptions,
        *,
        processes: int = 1,
        warm: tuple[Kind, ...] = ("recognise", "align"),
        limits: PoolLimits | None = None,
        factory: str = FACTORY,
    ) -> None:
        """Start nothing yet."""
        self._limits = limits or PoolLimits()
        self._begin = Begin(
            options=options,
            factory=factory,
            warm=warm,
            memory_bytes=self._limits.memory_bytes,
        )
        self._changed = threading.Condition()
        self._lanes: dict[Lane, deque[_Job]] = {lane: deque() for lane in Lane}
        self._started = self._closed = False
        self._running = self._answered = self._failed = self._replaced = 0
        self._workers = [
            _Worker(self, f"speech-{number}", self._begin, self._limits)
            for number in range(processes)
        ]

    def start(self) -> None:
        """Start the processes; they load their models while requests already wait.

        The first request starts them, too: a pool that nobody asks holds no models in memory.
        """
        with self._changed:
            if self._started or self._closed:
                return
            self._started = True
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Refuse and fail what waits, end the processes. Returns when they are gone."""
        with self._changed:
            self._closed = True
            left = [job for lane in self._lanes.values() for job in lane]
            for lane in self._lanes.values():
                lane.clear()
            self._changed.notify_all()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(SpeechClosedError())
        for worker in self._workers:
            worker.stop()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def recognise(
        self,
        sound: Pcm,
        *,
        language: str,
        expected_text: str | None = None,
        lane: Lane = Lane.SWEEP,
        wait_s: float = 0.0,
    ) -> "Future[Recognised]":
        """Ask what was said. See `recognise.Recogniser` and `submit`."""
        request = Recognise(sound=sound, language=language, expected_text=expected_text)
        return self.submit(request, lane=lane, wait_s=wait_s)

    def align(
        self,
        sound: Pcm,
        text: str,
        *,
        language: str,
        lane: Lane = Lane.SWEEP,
        wait_s: float = 0.0,
    ) -> "Future[Alignment | None]":
        """Ask where a text is in a sound. See `align.SphinxAligner` and `submit`."""
        return self.submit(
            Align(sound=sound, text=text, language=language), lane=lane, wait_s=wait_s
        )

    def detect(
        self, sound: Pcm, *, lane: Lane = Lane.SWEEP, wait_s: float = 0.0
    ) -> "Future[Spoken]":
        """Ask where somebody speaks. See `voice_activity.spoken_in` and `submit`."""
        return self.submit(Detect(sound=sound), lane=lane, wait_s=wait_s)

    def synthesise(
        self,
        text: str,
        *,
        language: str,
        rate: float = 1.0,
        lane: Lane = Lane.SWEEP,
        wait_s: float = 0.0,
    ) -> "Future[Speech]":
        """Ask for a text as sound. See `synthesise.Synthesiser` and `submit`."""
        return self.submit(
            Synthesise(text=text, language=language, rate=rate), lane=lane, wait_s=wait_s
        )

    def submit(self, request: Request, *, lane: Lane, wait_s: float = 0.0) -> "Future[Any]":
        """Queue a request.

        Args:
            request: what to do.
            lane: who goes first.
            wait_s: how long to wait for a place; 0 = not at all. Never on an event loop.

        Raises:
            SpeechBusyError: the lane stayed full.
            SpeechClosedError: the pool is closed.
        """
        self.start()
        job = _Job(request, Future())
        queue = self._lanes[lane]
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or len(queue) < self._limits.waiting, timeout=wait_s
            )
            if self._closed:
                raise SpeechClosedError
            if len(queue) >= self._limits.waiting:
                raise SpeechBusyError(waiting=len(queue), retry_after_s=_RETRY_AFTER_S)
            queue.append(job)
            self._changed.notify_all()
        return job.future

    def state(self) -> PoolState:
        """Return what it does now and did so far."""
        with self._changed:
            return PoolState(
                waiting=sum(map(len, self._lanes.values())),
                running=self._running,
                answered=self._answered,
                failed=self._failed,
                replaced=self._replaced,
            )

    def next_job(self) -> _Job | None:
        """Wait for a job (a worker's thread); None = closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or any(self._lanes.values()))
                if self._closed:
                    return None
                job = next(lane.popleft() for lane in self._lanes.values() if lane)
                self._changed.notify_all()
            if job.future.set_running_or_notify_cancel():
                with self._changed:
                    self._running += 1
                return job

    def finish(self, job: _Job, answer: Answer, *, replaced: bool) -> None:
        """Settle a job (a worker's thread)."""
        failed = isinstance(answer, Failed)
        with self._changed:
            self._running -= 1
            self._answered += not failed
            self._failed += failed
            self._replaced += replaced
        if isinstance(answer, Failed):
            job.future.set_exception(answer.error())
        elif isinstance(answer, Ready):  # to a request: whoever asked may not wait for ever
            job.future.set_exception(SpeechWorkerError(reason="crashed"))
        else:
            job.future.set_result(answer.value)


class _Worker:
    """A thread that keeps one process and gives it one job at a time."""

    def __init__(self, pool: SpeechPool, name: str, begin: Begin, limits: PoolLimits) -> None:
        self._pool = pool
        self._name = name
        self._begin = begin
        self._limits = limits
        self._process: EngineProcess | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._failures = 0
        self._resting_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None:
            process.kill()
        if self._thread.ident is not None:
            self._thread.join()
        if self._process is not None:
            self._process.end()

    def _run(self) -> None:
        self._warm()
        while (job := self._pool.next_job()) is not None:
            answer = self._answer(job.request)
            gone = isinstance(answer, Failed) and answer.code == SpeechWorkerError.code
            if gone:
                self._drop(answer)
            if gone and self._stopped:  # it was `stop` that ended the process
                answer = Failed(SpeechClosedError.code, {})
            self._pool.finish(job, answer, replaced=gone and not self._stopped)
            if gone:
                self._warm()

    def _warm(self) -> None:
        """Have the process ready before it is asked; whoever asks learns why there is none."""
        with self._outlived():
            self._ready()

    def _answer(self, request: Request) -> Answer:
        answer = worker_failed("start")
        with self._outlived():
            process = self._ready()
            if process is not None:
                answer = worker_failed("crashed")
                return process.ask(request, time_limit_s(request, self._limits))
        return answer

    @contextlib.contextmanager
    def _outlived(self) -> Iterator[None]:
        """Go on whatever goes wrong: the system may have no room for a process or a thread."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - without this thread all who ask wait for ever
            self._rest()
            self._drop(None)
            _log.warning(
                "a speech engine cannot be used",
                action="speech.unusable",
                worker=self._name,
                error=type(error).__name__,
            )

    def _ready(self) -> "EngineProcess | None":
        """Return the process, started if there is none; None = it cannot be started now."""
        if self._process is not None and self._process.is_alive():
            return self._process
        self._drop(None)
        if time.monotonic() < self._resting_until_s:
            return None
        process = EngineProcess()
        with self._lock:
            if self._stopped:
                process.kill()
            self._process = process
        if process.begin(self._begin, self._limits.start_s):
            self._failures = 0
            return process
        self._rest()
        self._drop(None)
        return None

    def _rest(self) -> None:
        """Start no process for a while, longer from time to time."""
        self._failures += 1
        pause_s = min(2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE_S)
        self._resting_until_s = time.monotonic() + pause_s

    def _drop(self, answer: Answer | None) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.end()
        if isinstance(answer, Failed) and not self._stopped:
            reason = answer.params.get("reason")
            _log.warning(
                "a speech engine is replaced",
                action="speech.replaced",
                worker=self._name,
                reason=reason,
                exit_code=process.exit_code,
            )


def time_limit_s(request: Request, limits: PoolLimits) -> float:
    """Return how long a request may take. Pure."""
    if isinstance(request, Synthesise):
        seconds = len(request.text) / 10
    else:
        seconds = request.sound.duration_ms / 1000
    return limits.request_s + limits.request_s_per_s * seconds
