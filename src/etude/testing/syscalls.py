"""What a process asks of the system, in order, by strace: the proof that a sync comes first.

`kill -9` cannot show it, because the system keeps what a killed process has written
(`docs/rules.md 14, 51`).
"""

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

PATIENCE_S: Final = 30.0
_CALLS: Final = "write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,fsync,fdatasync"
_LINE: Final = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")


class NoTraceError(Exception):
    """Nothing can be traced here; the text says why."""


class AnsweredTooEarlyError(Exception):
    """An answer left before what it tells of was synced; the text is the call that sent it."""


class Trace:
    """Traces running processes while the context is open.

    >>> with Trace([server.pid], tmp_path / "trace") as trace:
    ...     client.post(…)
    >>> trace.text()
    """

    def __init__(self, pids: Sequence[int], output: Path) -> None:
        """Trace `pids` with all of their threads, and the children they get, into a file."""
        self._pids = pids
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def text(self) -> str:
        """Return the calls, one a line, in the order in which they were seen."""
        return self._output.read_text("utf-8", "replace")

    def __enter__(self) -> Self:
        """Attach.

        Raises:
            NoTraceError: there is no strace, or it may not look into these processes.
        """
        strace = shutil.which("strace")
        if strace is None:
            message = "strace is not installed"
            raise NoTraceError(message)
        said = self._output.with_suffix(".said")
        options = ["-f", "-y", "-s", "65536", "-e", f"trace={_CALLS}", "-o", str(self._output)]
        attach = [argument for pid in self._pids for argument in ("-p", str(pid))]
        with said.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the system's own program
                [strace, *options, *attach], stderr=output
            )
        deadline = time.monotonic() + PATIENCE_S
        while said.read_text().count("attached") < len(self._pids):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._detach()
                raise NoTraceError(said.read_text())
            time.sleep(0.01)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Detach; the processes go on."""
        self._detach()

    def _detach(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()  # whom it traces goes on, and must not stand still for ever
                self._process.wait(PATIENCE_S)
                raise


class _Moment(NamedTuple):
    """The beginning or the end of a system call."""

    pid: str
    call: str
    ends: bool
    arguments: str


def synced_answers(trace: str, *, log: str, marker: str, answer: str) -> int:
    """Count answers, each of which must follow the sync of what was written to the log before.

    Args:
        trace: what `Trace.text` returns.
        log: pattern of the path of the write-ahead log.
        marker: text in what is written to the log; whoever writes it is watched.
        answer: text in what is sent as an answer.

    Raises:
        AnsweredTooEarlyError: an answer was begun before that sync had ended.
    """
    moments = list(_moments(trace))
    onto_log = re.compile(rf"\d+<{log}>")
    writers = {
        moment.pid
        for moment in moments
        if moment.call.startswith(("write", "pwrite"))
        and onto_log.match(moment.arguments)
        and marker in moment.arguments
    }
    written = synced = answers = 0
    begun: dict[str, int] = {}
    for moment in moments:
        if "sync" in moment.call and onto_log.match(moment.arguments):
            if not moment.ends:
                begun[moment.pid] = written
            elif "= 0" in moment.arguments:
                synced = max(synced, begun[moment.pid])
        elif moment.ends:
            continue
        elif onto_log.match(moment.arguments):
            written += moment.pid in writers
        elif answer in moment.arguments:
            if synced < written or not written:
                raise AnsweredTooEarlyError(moment.arguments[:200])
            answers += 1
    return answers


def _moments(trace: str) -> Iterator[_Moment]:
    """Yield beginnings and ends; a call that nothing interrupted has both at once."""
    unfinished: dict[str, str] = {}
    for line in trace.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        pid, resumed, begun, rest = found.groups()
        if resumed:
            yield _Moment(pid, resumed, ends=True, arguments=unfinished.pop(pid, "") + rest)
        elif rest.endswith("<unfinished ...>"):
            unfinished[pid] = rest
            yield _Moment(pid, begun, ends=False, arguments=rest)
        else:
            yield _Moment(pid, begun, ends=False, arguments=rest)
            yield _Moment(pid, begun, ends=True, arguments=rest)
