"""Processes that start in no time: forked from one that has imported everything already.

A test that kills a server hundreds of times would spend all its time on imports. The nursery is a
process of its own without threads; each child is a real process (own id, own files, own sockets)
that runs what `python -m MODULE` would run, and can be killed with `kill -9` at any instruction.

>>> with Nursery(tmp_path) as nursery:
...     child = nursery.start("etude.cli.app", "web", environment={"ETUDE_DATA": "…"})
...     child.kill()
"""

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

DEADLINE_S: Final = 60.0
START_S: Final = 120.0
_DYING_S: Final = 5.0
_COMMAND: Final = "etude.cli.app"
_IMPORTED: Final = (
    "etude.cli.app",
    "etude.cli.gateway",
    "etude.cli.serve",
    "etude.edge.outbox",
    "etude.store.postgresql",
    "etude.store.sqlite",
    "etude.testing.linked",
    "etude.web.main",
    "etude.web.protocol",
    "uvloop",
)


class ChildStuckError(Exception):
    """A child did not end in time; the text is what it wrote to stderr."""


class ForkedProcess:
    """A child of the nursery. Not a child of this process, so it is waited for by descriptor."""

    def __init__(self, pid: int, log: Path) -> None:
        """Refer to a process that was started just now and has not been waited for."""
        self.pid = pid
        self.log = log
        self._descriptor = os.pidfd_open(pid)

    def running(self) -> bool:
        """Say whether it has not ended yet."""
        return not self._ended(0)

    def wait(self) -> None:
        """Return once it has ended.

        Raises:
            ChildStuckError: it has not after `DEADLINE_S`, and was ended.
        """
        if not self._ended(DEADLINE_S):
            with contextlib.suppress(ProcessLookupError):  # its stacks go into the log
                signal.pidfd_send_signal(self._descriptor, signal.SIGABRT)
                self._ended(_DYING_S)
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            raise ChildStuckError(self.log_text())

    def kill(self) -> None:
        """`kill -9`; when this returns nothing of it runs any more."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        self.wait()

    def log_text(self) -> str:
        """Return what it and those before it wrote to stderr."""
        return self.log.read_text("utf-8", "replace")

    def close(self) -> None:
        """Let go of the process, running or not."""
        os.close(self._descriptor)

    def _ended(self, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))


class Nursery:
    """Starts children; those that still run at its end are killed."""

    def __init__(self, folder: Path) -> None:
        """Keep the children's stderr below `folder`."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._children: list[ForkedProcess] = []

    def start(
        self, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> ForkedProcess:
        """Run `module`'s `main()` with `arguments` as `sys.argv`, in a new process.

        Raises:
            ChildStuckError: the nursery itself gives none.
        """
        return self._start(module, arguments, environment, self._log(module))

    def run(
        self, *arguments: str, environment: Mapping[str, str] | None = None, given: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run `etude` with `arguments` to its end, `given` on stdin; as `subprocess.run` does.

        Raises:
            ChildStuckError: it did not end, or the nursery gave none.
        """
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            (folder / "in").write_text(given, "utf-8")
            child = self._start(_COMMAND, arguments, environment, folder / "error", folder)
            child.wait()
            code = folder / "code"  # none: it was killed
            return subprocess.CompletedProcess(
                arguments,
                int(code.read_text("ascii")) if code.exists() else -signal.SIGKILL,
                (folder / "out").read_text("utf-8"),
                child.log_text(),
            )

    def _start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None,
        log: Path,
        folder: Path | None = None,
    ) -> ForkedProcess:
        process = self._process
        assert process is not None, "used outside of `with`"  # noqa: S101 - a mistake in a test
        assert process.stdin is not None  # noqa: S101 - it was asked for
        assert process.stdout is not None  # noqa: S101 - it was asked for
        order = {
            "module": module,
            "arguments": arguments,
            "environment": dict(environment or {}),
            "log": str(log),
            "folder": None if folder is None else str(folder),
        }
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        # It imports the whole product first, which takes a crowded machine a while.
        if not select.select([process.stdout], [], [], START_S)[0]:
            message = f"no process for {module} within {START_S:.0f} s"
            raise ChildStuckError(message)
        line = process.stdout.readline()
        if not line:
            message = f"the nursery ended: exit code {process.poll()}"
            raise ChildStuckError(message)
        child = ForkedProcess(int(line), log)
        self._children.append(child)
        return child

    def log_text(self, module: str) -> str:
        """Return what all children that ran `module` wrote to stderr."""
        log = self._log(module)
        return log.read_text("utf-8", "replace") if log.exists() else ""

    def _log(self, module: str) -> Path:
        return self._folder / f"{module}.log"

    def __enter__(self) -> Self:
        """Start it."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "etude.testing.nursery"],
            env=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill what runs."""
        with contextlib.ExitStack() as stack:  # whatever fails, the rest is ended too
            stack.callback(self._close)
            for child in self._children:
                stack.callback(child.close)
                stack.callback(child.kill)

    def _close(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=DEADLINE_S)
            raise


def main() -> None:
    """Fork a child for each line on stdin; its process id is the line on stdout."""
    for name in _IMPORTED:
        importlib.import_module(name)
    children: set[int] = set()
    for line in sys.stdin.buffer:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(order)
        children.add(pid)
        os.write(1, b"%d\n" % pid)
        # Only those that ended before this line: the pid of a zombie cannot be given away.
        children -= {child for child in children if os.waitpid(child, os.WNOHANG)[0] == child}
    for child in children:  # whoever asked is gone, however it ended
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _run(order: Mapping[str, Any]) -> None:
    code = 70
    folder = order["folder"]
    try:
        os.environ.update(order["environment"])
        given = f"{folder}/in" if folder else os.devnull
        os.dup2(os.open(given, os.O_RDONLY), 0)
        for target, name in ((1, f"{folder}/out" if folder else os.devnull), (2, order["log"])):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), target)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)  # the old one has read ahead
        faulthandler.enable()
        sys.argv = [order["module"], *order["arguments"]]
        importlib.import_module(order["module"]).main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if folder is not None:
            Path(folder, "code").write_text(str(code), "ascii")
        os._exit(code)


if __name__ == "__main__":
    main()
