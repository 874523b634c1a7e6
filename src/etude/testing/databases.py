"""Databases for tests: a real PostgreSQL of one's own, and fresh migrated databases in no time.

`PostgresServer` runs a server in a temporary folder, on a Unix socket (no port is taken). It never
runs as root (`docs/rules.md 41`). A database for a test is a copy of a migrated template: a file
copy on SQLite, `CREATE DATABASE … TEMPLATE` on PostgreSQL.
"""

import asyncio
import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from etude.store.migrations import upgrade
from etude.testing.waiting import StuckError

_USER: Final = "postgres"
_DEBIAN: Final = Path("/usr/lib/postgresql")
_TEMPLATE: Final = "etude_template"
LOCK_S: Final = 120.0
"""Whoever holds a lock makes a template, or starts a server: seconds, on a crowded machine more."""
STATEMENT_S: Final = 60.0
STOP_S: Final = 30.0
_PROGRAM_S: Final = 120.0
# Ends the server when the process that asked for it is gone, however that one died.
_WATCHER: Final = """
import os, signal, shutil, sys, time
if os.fork():
    os._exit(0)
os.setsid()
owner, server, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # Ended, and not waited for by whoever took it over: where process 1 waits for nobody.
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
while alive(owner) and alive(server):
    time.sleep(0.5)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
    if alive(server):
        os.kill(server, number)
    until = time.monotonic() + 30
    while alive(server) and time.monotonic() < until:
        time.sleep(0.1)
shutil.rmtree(folder, ignore_errors=True)
"""


class NoPostgres(Exception):  # noqa: N818 - a state of the machine, no failure of the product
    """The machine has no PostgreSQL server program."""


class PostgresServer:
    """A PostgreSQL server in a folder of its own, with `fsync` on, reached over a Unix socket.

    Several processes may describe the same folder; one of them starts it, any of them stops it.
    """

    def __init__(self, folder: Path) -> None:
        """Describe the server of `folder`; keep the path short: a socket has 107 bytes."""
        self.folder = folder
        self._data = folder / "data"

    def url(self, database: str = _USER) -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{_USER}@/{database}?host={self.folder}"

    def pid(self) -> int | None:
        """Return the process id of the running server, `None` if there is none."""
        try:
            return int((self._data / "postmaster.pid").read_text().partition("\n")[0])
        except FileNotFoundError:
            return None

    def start(self, owner_pid: int) -> None:
        """Create the cluster and start it; it stops by itself once `owner_pid` is gone.

        Raises:
            NoPostgres: there is no server program on this machine.
        """
        programs = find_programs()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        initdb = ("initdb", "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        self._run(programs, *initdb, "-D", str(self._data))
        settings = (
            f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'"
            " -c fsync=on -c max_connections=200"
        )
        self._run(
            programs, "pg_ctl", "-w", "-D", str(self._data), "-l", f"{self.folder}/log",
            "-o", settings, "start",
        )  # fmt: skip
        subprocess.run(  # noqa: S603 - our own interpreter and script
            [sys.executable, "-I", "-c", _WATCHER, str(owner_pid), str(self.pid()), self.folder],
            check=True,
            timeout=_PROGRAM_S,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        """Stop the server if it runs, wait for its end, remove its folder."""
        pid = self.pid()
        if pid is not None:
            # Fast, then as after a crash, then by the system: a stop must not wait for a session.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                if _ended(pid, number):
                    break
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, programs: Path, program: str, *arguments: str) -> None:
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with (self.folder / f"{program}.out").open("wb") as output:
            subprocess.run(  # noqa: S603 - the system's own programs, found above
                [programs / program, *arguments],
                check=True,
                timeout=_PROGRAM_S,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,  # a file: the server keeps it open, a pipe would never end
                stderr=output,
                **identity,
            )


def _ended(pid: int, number: signal.Signals) -> bool:
    """Signal a server that is no child of ours; return whether it is gone soon after."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    until_s = time.monotonic() + STOP_S
    while _runs(pid):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def _runs(pid: int) -> bool:
    """Say whether a process is there and has not ended: nobody may have waited for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def find_programs() -> Path:
    """Return the folder of `initdb`, `pg_ctl` and `postgres`: Debian's newest, else on the path.

    Raises:
        NoPostgres: neither has them.
    """
    debian = sorted(_DEBIAN.glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    if debian:
        return debian[-1].parent
    found = shutil.which("pg_ctl")
    if found is None:
        raise NoPostgres
    return Path(found).resolve().parent


class TemplateDatabases:
    """Fresh, migrated databases, copied from templates that the processes of a test run share."""

    __test__ = False  # the name is no test class

    def __init__(self, folder: Path, postgres_url: str | None = None) -> None:
        """Keep templates and server in `folder`, unless `postgres_url` names a server to use."""
        self._folder = folder
        self._given_url = postgres_url

    def stop(self) -> None:
        """Stop the server that this run started, if it did, and remove the folder."""
        PostgresServer(self._folder / "pg").stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def copy_sqlite(self, path: Path) -> str:
        """Create a migrated SQLite database at `path`; return its URL."""
        template = self._folder / "template.db"
        with self._locked("sqlite"):
            if not template.exists():
                building = self._folder / "building.db"
                asyncio.run(upgrade(f"sqlite:///{building}"))
                building.rename(template)
        shutil.copyfile(template, path)
        return f"sqlite:///{path}"

    @contextlib.contextmanager
    def postgres(self, *, migrated: bool = True) -> Iterator[str]:
        """Create a PostgreSQL database, give its URL, drop it at the end.

        Raises:
            NoPostgres: no server was given and there is no program to start one.
        """
        admin, template = self._server_and_template(migrated=migrated)
        name = f"etude_test_{uuid.uuid4().hex}"
        asyncio.run(_execute(admin, f"CREATE DATABASE {name} TEMPLATE {template}"))
        try:
            yield _with_database(admin, name)
        finally:
            asyncio.run(_execute(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def _server_and_template(self, *, migrated: bool) -> tuple[str, str]:
        with self._locked("postgres"):
            admin = self._given_url or self._started_server()
            if not migrated:
                return admin, "template0"
            template = f"{_TEMPLATE}_{self._folder.name.replace('-', '_').lower()}"
            ready = self._folder / "postgres.template"
            if not ready.exists():
                asyncio.run(_execute(admin, f"DROP DATABASE IF EXISTS {template}"))
                asyncio.run(_execute(admin, f"CREATE DATABASE {template} TEMPLATE template0"))
                asyncio.run(upgrade(_with_database(admin, template)))
                ready.touch()
            return admin, template

    def _started_server(self) -> str:
        server = PostgresServer(self._folder / "pg")
        if server.pid() is None:
            server.start(owner_pid=int(os.environ["ETUDE_TEST_OWNER"]))
        return server.url()

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self._folder / f"{name}.lock").open("w") as lock:
            until_s = time.monotonic() + LOCK_S
            while not _taken(lock.fileno()):
                if time.monotonic() > until_s:
                    held = f"not within {LOCK_S:.0f} s: {lock.name}, held by another test process"
                    raise StuckError(held)
                time.sleep(0.02)
            yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=STATEMENT_S)
    try:
        await connection.execute(statement, timeout=STATEMENT_S)
    finally:
        await connection.close(timeout=STATEMENT_S)
