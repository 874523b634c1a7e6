"""Processes that a bench asks line by line: the gateway, the crowd, the bare timer."""

import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

STOP_S: Final = 20.0

Answer = TypeVar("Answer")


class BenchProcessError(Exception):
    """A process of the bench ended early; the text is its command and what it said last."""


class Asked:
    """`python -m MODULE`, which answers lines on its standard input with lines of JSON."""

    def __init__(
        self, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Remember what to run; `environment` None = this process's own."""
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
        )
        return self

    @property
    def pid(self) -> int:
        """Process id of the running process."""
        return self._running().pid

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End its input, and it with it."""
        process = self._process
        if process is None:
            return
        try:
            process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def say(self, line: bytes) -> None:
        """Write one line, without waiting for an answer."""
        stdin = self._running().stdin
        assert stdin is not None  # noqa: S101 - it was asked for
        stdin.write(line + b"\n")
        stdin.flush()

    def hear(self, shape: type[Answer]) -> Answer:
        """Wait for one line.

        Raises:
            BenchProcessError: it ended instead.
        """
        stdout = self._running().stdout
        assert stdout is not None  # noqa: S101 - it was asked for
        line = stdout.readline()
        if not line:
            raise BenchProcessError(" ".join(self._command))
        return msgspec.json.decode(line, type=shape)

    def ask(self, shape: type[Answer], line: bytes = b"") -> Answer:
        """Write a line and wait for its answer."""
        self.say(line)
        return self.hear(shape)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "used outside of `with`"  # noqa: S101 - a mistake of ours
        return self._process


def run_json(shape: type[Answer], module: str, *arguments: str) -> Answer:
    """Run `python -m MODULE` to its end; return the JSON that it prints."""
    command: Sequence[str] = (sys.executable, "-m", module, *arguments)
    ran = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - see above
    return msgspec.json.decode(ran.stdout, type=shape)


def allow_descriptors(wanted: int) -> int:
    """Let this process and its children have as many descriptors as they may; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = hard if hard != resource.RLIM_INFINITY else max(soft, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, allowed)), hard))
    return allowed
