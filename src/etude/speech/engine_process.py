"""A process of the pool as its parent sees it: asked one thing at a time, for a limited time."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping

import msgspec

from etude.speech.errors import SpeechWorkerError
from etude.speech.libraries import SILENT
from etude.speech.requests import Answer, Begin, Failed, Ready, Request, receive, send


class EngineProcess:
    """One process of `pool_process`. Used by one thread; `kill` by any."""

    def __init__(self) -> None:
        """Start it."""
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "etude.speech.pool_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(os.environ),
        )
        self._expired = False
        self._lock = threading.Lock()
        self._asked: object | None = None
        self._decoder = msgspec.msgpack.Decoder(Answer)

    @property
    def exit_code(self) -> int | None:
        """How it ended: negative = the signal; None = it lives."""
        return self._popen.returncode

    def is_alive(self) -> bool:
        """Whether it is there."""
        return self._popen.poll() is None

    def begin(self, begin: Begin, limit_s: float) -> bool:
        """Say what it is to be; return whether it got ready."""
        return isinstance(self._exchange(begin, limit_s), Ready)

    def ask(self, request: Request, limit_s: float) -> Answer:
        """Have a request done. If the process failed, the answer says how and it must be ended."""
        return self._exchange(request, limit_s)

    def _exchange(self, message: Request | Begin, limit_s: float) -> Answer:
        """Send and wait, no longer than `limit_s`: then the process is killed, which ends both."""
        with self._watched(limit_s):
            try:
                assert self._popen.stdin is not None  # noqa: S101 - for the type checker
                assert self._popen.stdout is not None  # noqa: S101 - for the type checker
                send(self._popen.stdin, message)
                body = receive(self._popen.stdout)
            except (OSError, ValueError):
                body = None
        if body is None:
            return worker_failed("hung" if self._expired else "crashed")
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError:  # half an answer, or another version's
            return worker_failed("crashed")

    @contextlib.contextmanager
    def _watched(self, limit_s: float) -> Iterator[None]:
        asked = object()
        with self._lock:
            self._asked = asked
        timer = threading.Timer(limit_s, self._expire, args=(asked,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:  # a timer that fires only now finds nothing to end
                self._asked = None

    def _expire(self, asked: object) -> None:
        with self._lock:
            if self._asked is not asked:
                return
            self._expired = True
            self.kill()

    def kill(self) -> None:
        """End it now; whoever waits for it learns that."""
        self._popen.kill()

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        self._popen.kill()
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent goes nowhere
                    stream.close()


def worker_failed(reason: str) -> Failed:
    """Return the answer of a process that gave none: `hung`, `crashed` or `start`."""
    return Failed(SpeechWorkerError.code, {"reason": reason})


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """One thread a process: more would fight for the cores, and could add numbers in any order."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**own, **SILENT, **dict.fromkeys(names, "1")}
