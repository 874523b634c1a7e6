"""A real server process for tests: on a free port, with a data folder of its own, killable.

The process is `python -m etude web` (or `serve`), started as a person would start it, but that it
ends when this process does, `kill -9` included. Its log lines are read from its stderr, so that a
test can wait for one instead of for a while.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from etude.testing.ports import free_port
from etude.testing.waiting import StuckError, put_down

# Only a failing test waits this long; a start takes seconds, on a crowded machine a minute.
DEADLINE_S: Final = 120.0
# The one setting that a process takes over: engines of speech cost it 300 MB and seconds of a core,
# which a run of tests spares whoever does not ask for them.
ENGINES: Final = "ETUDE_SPEECH_PROCESSES"
STOP_S: Final = 60.0
"""For an end that was asked for: `etude serve` gives its processes 15 s."""
_LAST_LINES_S: Final = 10.0

Line = Mapping[str, Any]


class ServerDiedError(Exception):
    """The process ended, or did not say what was waited for; the text is all that it logged."""


class ServerProcess:
    """`etude web` or `etude serve` on `data`, which must hold a migrated database.

    >>> with ServerProcess(tmp_path) as server:
    ...     httpx2.get(f"{server.url}/health")
    ...     server.kill()
    ...     server.start()
    """

    def __init__(
        self,
        data: Path,
        *,
        command: str = "web",
        database_url: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the process; `start` or `with` starts it.

        Args:
            data: the data folder; without `database_url` it holds `etude.db`.
            command: `web` or `serve`.
            database_url: another database.
            environment: further variables (`ETUDE_CRASH_AT`, `ETUDE_LOG_LEVEL`, …).
        """
        self.data = data
        self.command = command
        self.port = free_port()
        self._environment = dict(environment or {})
        if database_url is not None:
            self._environment["ETUDE_DATABASE_URL"] = database_url
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None  # the end of `etude.cli.lifeline` that is never written
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end; the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running process."""
        return self._running().pid

    def start(self, *, wait: bool = True) -> None:
        """Start the process and, unless told otherwise, return once it accepts requests."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ETUDE_") or name == ENGINES
        }
        own = {
            "ETUDE_DATA": str(self.data),
            "ETUDE_HOST": "127.0.0.1",
            "ETUDE_PORT": str(self.port),
            "ETUDE_GATEWAY_HOST": "127.0.0.1",
            "ETUDE_GATEWAY_PORT": "0",
            "ETUDE_GATEWAY_HTTP_PORT": "0",
            "ETUDE_LOG_FORMAT": "json",
            "PYTHONFAULTHANDLER": "1",  # one that does not end is made to write its stacks
        }
        self._lines = []
        self._let_go()
        watched, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "etude", self.command, "--lifeline", str(watched)],
                env=inherited | own | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(watched,),
            )
        finally:
            os.close(watched)
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stderr,), daemon=True
        )
        self._reader.start()
        if wait:
            self.wait_for("web.listening")

    def wait_for(
        self, action: str, matches: Callable[[Line], bool] = lambda _: True, *, after: int = 0
    ) -> Line:
        """Return the first log line with `action` that `matches`, from line `after` on, waiting.

        Raises:
            ServerDiedError: it does not come within `DEADLINE_S`, or the process ends first.
        """

        def found() -> Line | None:
            lines = (line for line in self.log_lines()[after:] if line.get("action") == action)
            return next((line for line in lines if matches(line)), None)

        with self._news:
            self._news.wait_for(lambda: found() or self._at_end(), DEADLINE_S)
        line = found()
        if line is None:
            raise ServerDiedError(f"no {action!r} in:\n{self.log_text()}")  # noqa: EM102, TRY003 - a test reads it
        return line

    def log_text(self) -> str:
        """Return everything that the process wrote to stderr since its start."""
        return "".join(self._lines)

    def log_lines(self) -> list[Line]:
        """Return its structured log lines; what is no JSON object is left out."""
        return [json.loads(line) for line in list(self._lines) if line.startswith("{")]

    def kill(self) -> None:
        """`kill -9`: nothing of the process runs any more when this returns."""
        self._end(signal.SIGKILL)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask the process to stop; return its exit code.

        Raises:
            StuckError: see `wait`.
        """
        return self._end(number)

    def wait(self, limit_s: float = DEADLINE_S) -> int:
        """Return the exit code once the process has ended by itself.

        Raises:
            StuckError: it has not within `limit_s`, and was ended; the text is all that it logged,
                and its stacks.
        """
        process = self._running()
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            put_down(process)
            self._let_go()
            self._read_on()
            message = f"`etude {self.command}` did not end within {limit_s:.0f} s:\n"
            raise StuckError(message + self.log_text()) from error
        self._let_go()
        self._read_on()
        return code

    def _let_go(self) -> None:
        """Close the lifeline of a process that has ended."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _read_on(self) -> None:
        """Wait for its last lines, but not for a child of its that outlives it and has its pipe."""
        if self._reader is not None:
            self._reader.join(_LAST_LINES_S)

    def __enter__(self) -> Self:
        """Start it; one that does not get to listening is killed, for nobody else would."""
        try:
            self.start()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill it if it still runs."""
        self._clear()

    def _clear(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._let_go()

    def _end(self, number: signal.Signals) -> int:
        process = self._running()
        process.send_signal(number)
        return self.wait(STOP_S)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            message = "the server was not started"
            raise ServerDiedError(message)
        return self._process

    def _at_end(self) -> bool:
        return self._reader is not None and not self._reader.is_alive()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                with self._news:
                    self._lines.append(line.decode("utf-8", "replace"))
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()
