"""One process of the pool: `python -m etude.speech.pool_process`. Requests in, answers out.

It ends when its standard input does, so no parent, however it died, leaves one behind. It takes
less of the processor than those who keep the clock of practice, and holds no more memory than it
was told: an engine that leaks ends alone.
"""

import contextlib
import importlib
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Final, NoReturn, Protocol

import msgspec

from etude.errors import EtudeError
from etude.speech.align import SphinxAligner
from etude.speech.errors import SpeechEngineError
from etude.speech.recognise import Recogniser
from etude.speech.requests import (
    Align,
    Answer,
    Begin,
    Detect,
    Detected,
    Failed,
    Found,
    Heard,
    Kind,
    Ready,
    Recognise,
    Request,
    Spoke,
    read_begin,
    receive,
    send,
)
from etude.speech.synthesise import Synthesiser
from etude.speech.voice_activity import VoiceActivity, spoken_in

_NICENESS: Final = 10
_OUT_OF_MEMORY: Final = Failed("SPEECH_WORKER_FAILED", {"reason": "out_of_memory"})


class EngineSet(Protocol):
    """What a factory makes: `engines.Engines`, or a test's."""

    def recogniser(self) -> Recogniser:
        """Return what hears."""

    def aligner(self) -> SphinxAligner:
        """Return what finds words and phones in a sound."""

    def synthesiser(self) -> Synthesiser:
        """Return what speaks."""

    def detector(self) -> VoiceActivity:
        """Return what tells speech from silence in a whole sound."""


def main() -> NoReturn:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    os.nice(_NICENESS)
    answers = _own_output()
    requests = sys.stdin.buffer
    first = receive(requests)
    if first is None:
        os._exit(0)
    begin = read_begin(first)
    _limit_memory(begin.memory_bytes)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    engines = _made(begin)
    send(answers, Ready())
    decoder = msgspec.msgpack.Decoder(Request)
    while True:
        answer = answer_to(engines, decoder.decode(waiting.get()))
        send(answers, answer)
        if answer == _OUT_OF_MEMORY:
            os._exit(1)


def answer_to(engines: EngineSet, request: Request) -> Answer:
    """Do what is asked; whatever fails is an answer too."""
    try:
        return _done(engines, request)
    except MemoryError:
        return _OUT_OF_MEMORY
    except EtudeError as error:
        return Failed(error.code, error.params)
    except Exception as error:  # noqa: BLE001 - an engine is foreign code: its fault ends one request
        return _foreign(error)


def _done(engines: EngineSet, request: Request) -> Answer:
    if isinstance(request, Recognise):
        return Heard(
            engines.recogniser().recognise(
                request.sound, language=request.language, expected_text=request.expected_text
            )
        )
    if isinstance(request, Align):
        return Found(
            engines.aligner().align(request.sound, request.text, language=request.language)
        )
    if isinstance(request, Detect):
        return Detected(spoken_in(request.sound, engines.detector()))
    return Spoke(
        engines.synthesiser().synthesise(request.text, language=request.language, rate=request.rate)
    )


def _foreign(error: Exception) -> Failed:
    # Its words may repeat what was read: only its kind is told.
    made = SpeechEngineError(engine=type(error).__module__, reason=type(error).__name__)
    return Failed(made.code, made.params)


def _made(begin: Begin) -> EngineSet:
    module, _, name = begin.factory.partition(":")
    factory: Callable[[object], EngineSet] = getattr(importlib.import_module(module), name)
    engines = factory(begin.options)
    loaders: dict[Kind, Callable[[], object]] = {
        "recognise": engines.recogniser,
        "align": engines.aligner,
        "synthesise": engines.synthesiser,
        "voice_activity": engines.detector,
    }
    for kind in begin.warm:
        # What cannot be loaded is said to whoever asks for it.
        with contextlib.suppress(EtudeError):
            loaders[kind]()
    return engines


def _own_output() -> BinaryIO:
    """Keep standard output for answers; what a library prints there goes to standard error."""
    own = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(own, "wb")


def _limit_memory(most_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > most_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, hard))


def _read(requests: BinaryIO, waiting: "queue.SimpleQueue[bytes]") -> None:
    while (body := receive(requests)) is not None:
        waiting.put(body)
    os._exit(0)


if __name__ == "__main__":
    main()
