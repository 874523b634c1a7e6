"""Trials with `kill -9`: of the server while it is uploaded to, of the uploader while it uploads.

A trial takes a seed, which decides what is sent and when the kill comes, and returns figures. What
it looks at is what any client sees: the answers that came, and the sessions read back afterwards.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from etude.clock import SystemClock
from etude.edge.journal import Journal, SyncPolicy
from etude.edge.media import keep_recording
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder, journal_folders
from etude.edge.upload_state import UploadState, UploadStatus
from etude.events.ndjson import encode_event
from etude.net import HttpClient
from etude.testing import builders
from etude.testing.installation import Installation
from etude.testing.nursery import ForkedProcess, Nursery
from etude.testing.outbox_process import ENDED
from etude.testing.ports import free_port
from etude.testing.school import body, event
from etude.testing.server import DEADLINE_S
from etude.testing.waiting import joined

UPLOADERS: Final = 3
NDJSON: Final = {"Content-Type": "application/x-ndjson"}
_TOYS: Final = ("toy-1", "toy-2")


class Figures(msgspec.Struct, kw_only=True):
    """What came of one trial or of many."""

    kills: int = 0
    acknowledged: int = 0
    """Events that a client was told were stored."""
    unacknowledged_stored: int = 0
    """Events that were stored although the answer did not arrive."""
    sent_again: int = 0
    """Events that the server had already when they came again."""
    lost: int = 0
    """Events that were acknowledged, or at the end uploaded, and are not there."""
    doubled: int = 0
    """Events that are there more than once, or counted more than once."""

    def add(self, other: "Figures") -> None:
        """Take the figures of another trial in."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class KillableServer:
    """`etude web` on an installation, from a nursery: it is back a moment after a kill."""

    def __init__(
        self,
        nursery: Nursery,
        installation: Installation,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet; `environment` are further variables."""
        self.installation = installation
        self.environment = dict(environment or {})
        self._nursery = nursery
        self._port = free_port()
        self._process: ForkedProcess | None = None

    @property
    def url(self) -> str:
        """The base URL; the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    def client(self, name: str) -> httpx2.Client:
        """Return a client with the token of `name`."""
        return self.installation.client(self.url, name)

    def start(self, crash_at: str = "") -> None:
        """Start the server and return once it answers; it ends at the crash point `crash_at`.

        Raises:
            TimeoutError: it does not; the text is what it logged.
        """
        self._process = self._nursery.start(
            "etude.cli.app",
            "web",
            environment={
                "ETUDE_DATA": str(self.installation.data),
                "ETUDE_DATABASE_URL": self.installation.database_url,
                "ETUDE_HOST": "127.0.0.1",
                "ETUDE_PORT": str(self._port),
                "ETUDE_LOG_FORMAT": "json",
                "ETUDE_CRASH_AT": crash_at,
                **self.environment,
            },
        )
        deadline = time.monotonic() + DEADLINE_S
        with self.installation.client(self.url) as client:
            while not _answers(client):
                if time.monotonic() > deadline or not self._process.running():
                    raise TimeoutError(self._process.log_text())
                time.sleep(0.01)

    @property
    def pid(self) -> int:
        """Process id of the process that was started last."""
        return self._started().pid

    def log_text(self) -> str:
        """Return what it, and other servers of its nursery, wrote to stderr."""
        return self._started().log_text()

    def kill(self) -> None:
        """`kill -9`; ended already, nothing happens."""
        self._started().kill()

    def wait(self) -> None:
        """Return once it has ended by itself; `ChildStuckError` if it does not."""
        self._started().wait()

    def _started(self) -> ForkedProcess:
        assert self._process is not None, "not started"  # noqa: S101 - a mistake in a test
        return self._process


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/health").is_success
    except httpx2.TransportError:
        return False


class _Upload(threading.Thread):
    """One client that sends a session in pieces until the server is gone."""

    def __init__(
        self, server: KillableServer, toy: str, session_id: str, seed: int, told: Callable[[], None]
    ) -> None:
        super().__init__(daemon=True)
        self.toy = toy
        self.session_id = session_id
        self.sent = 0
        self.acknowledged: set[str] = set()
        self.stop = threading.Event()
        self.fault: str | None = None
        self._server = server
        self._chance = random.Random(seed)  # noqa: S311 - seeded, so that a failure repeats
        self._told = told

    def events(self, first: int, last: int) -> list[dict[str, Any]]:
        return [event(self.session_id, number) for number in range(first, last + 1)]

    def run(self) -> None:
        try:
            with self._server.client(self.toy) as client:
                while not self.stop.is_set():
                    self._send_piece(client)
        except httpx2.TransportError:
            return  # killed: what was on its way may be stored or not

    def _send_piece(self, client: httpx2.Client) -> None:
        # Every fourth piece or so goes back a little, as a client does that missed an answer.
        back = self._chance.randint(0, min(self.sent, 20)) if self._chance.random() < 0.25 else 0  # noqa: PLR2004 - see above
        first, last = self.sent - back + 1, self.sent + self._chance.randint(1, 40)
        self.sent = last
        sending = self.events(first, last)
        answer = upload(client, self.session_id, sending)
        if answer.status_code != httpx2.codes.OK:
            self.fault = answer.text
            self.stop.set()
            return
        self.acknowledged.update(each["event_id"] for each in sending)
        self._told()


def upload(
    client: httpx2.Client, session_id: str, events: Iterable[dict[str, Any]]
) -> httpx2.Response:
    """Send events of a session."""
    path = f"/api/v1/sessions/{session_id}/events"
    return client.post(path, content=body(*events), headers=NDJSON)


def stored_ids(client: httpx2.Client, session_id: str) -> list[str]:
    """Return the ids of a session's stored events in their order; none if there is no session."""
    answer = client.get(f"/api/v1/sessions/{session_id}/events")
    if answer.status_code == httpx2.codes.NOT_FOUND:
        return []
    answer.raise_for_status()
    return [msgspec.json.decode(line)["event_id"] for line in answer.content.splitlines()]


def kill_server(server: KillableServer, seed: int) -> Figures:
    """Kill a running server under three uploads, start it again, finish the uploads.

    Raises:
        AssertionError: the server answered an upload with an error.
    """
    chance = random.Random(seed)  # noqa: S311 - seeded, so that a failure repeats
    answers = threading.Semaphore(0)
    uploads = [
        _Upload(server, _TOYS[n % 2], f"k-{seed}-{n}", seed * 10 + n, answers.release)
        for n in range(UPLOADERS)
    ]
    for one in uploads:
        one.start()
    for _ in range(chance.randint(1, 30)):
        if not answers.acquire(timeout=DEADLINE_S):
            break  # the figures will tell
    time.sleep(chance.uniform(0, 0.02))
    server.kill()
    figures = Figures(kills=1)
    for one in uploads:
        one.stop.set()
        joined(one)
        assert one.fault is None, one.fault  # noqa: S101 - the trial's own claim
    server.start()
    for one in uploads:
        figures.add(_after_restart(server, one))
    return figures


def _after_restart(server: KillableServer, one: _Upload) -> Figures:
    with server.client(one.toy) as client:
        found = stored_ids(client, one.session_id)
        kept = set(found)
        figures = Figures(
            acknowledged=len(one.acknowledged),
            unacknowledged_stored=len(kept - one.acknowledged),
            lost=len(one.acknowledged - kept),
            doubled=len(found) - len(kept),
        )
        whole = one.events(1, max(one.sent, 1))
        told = upload(client, one.session_id, whole).raise_for_status().json()
        figures.sent_again = told["duplicates_skipped"]
        found = stored_ids(client, one.session_id)
        counted = client.get(f"/api/v1/sessions/{one.session_id}").json()["events"]
    figures.lost += len({each["event_id"] for each in whole} - set(found))
    figures.doubled += len(found) - len(set(found)) + abs(counted - len(found))
    # The answer must say exactly what it had: no event stored that it does not know of.
    figures.doubled += abs(told["duplicates_skipped"] - len(kept))
    return figures


def kill_uploader(nursery: Nursery, server: KillableServer, root: Path, seed: int) -> Figures:
    """Write sessions, kill their outbox at up to three seeded instants, let it finish.

    Args:
        nursery: where the outbox is started.
        server: running.
        root: an empty folder.
        seed: which sessions, which instants.
    """
    chance = random.Random(seed)  # noqa: S311 - seeded, so that a failure repeats
    _write_journals(root, seed, chance)
    figures = Figures()
    for _ in range(chance.randint(1, 3)):
        figures.kills += _killed_once(nursery, server, root, chance)
    token = server.installation.tokens["toy-1"]
    with (
        HttpClient(server.url, bearer=token) as http,
        Outbox(root, http, clock=SystemClock()) as outbox,
    ):
        outbox.trigger()
        outbox.run_due()
        states = {state.session_id: state for state in outbox.states()}
    with server.client("toy-1") as client:
        for folder in journal_folders(root):
            figures.add(_arrived(client, folder, states[str(folder.session_id())]))
    return figures


_POINTS: Final = (
    "edge.outbox.sending",
    "edge.outbox.answered",
    "edge.outbox.before_state",
    "edge.outbox.state_saved",
    "files.replace.written",
    "files.replace.renamed",
)


def _killed_once(
    nursery: Nursery, server: KillableServer, root: Path, chance: random.Random
) -> int:
    """Run the outbox until a crash point or a moment; return 1 if it was killed before its end."""
    environment = {"ETUDE_TOKEN": server.installation.tokens["toy-1"]}
    at_a_point = chance.random() < 0.5  # noqa: PLR2004 - half and half
    if at_a_point:
        environment["ETUDE_CRASH_AT"] = f"{chance.choice(_POINTS)}:{chance.randint(1, 8)}"
    pause_s = chance.uniform(0, 0.3)
    ended = nursery.log_text("etude.testing.outbox_process").count(ENDED)
    outbox = nursery.start(
        "etude.testing.outbox_process", str(root), server.url, environment=environment
    )
    if not at_a_point:
        until_s = time.monotonic() + DEADLINE_S
        while outbox.running() and not any(root.glob("*/state.json")):
            if time.monotonic() > until_s:
                raise TimeoutError(outbox.log_text())
            time.sleep(0.001)  # the first acknowledgement: from here on there is something to harm
        time.sleep(pause_s)
        outbox.kill()
    outbox.wait()
    return int(outbox.log_text().count(ENDED) == ended)


def _write_journals(root: Path, seed: int, chance: random.Random) -> None:
    for number in range(8):
        session_id = f"u-{seed}-{number}-{root.name}"
        with Journal.open(root, session_id, policy=SyncPolicy.OS) as journal:
            for one in builders.session(chance.randint(4, 60), session_id, seed=seed):
                journal.append(one)
            journal.seal(SystemClock().now())
            if number % 3 == 0:
                keep_recording(journal.folder, chance.randbytes(20_000), "audio/wav")


def _arrived(client: httpx2.Client, folder: JournalFolder, state: UploadState) -> Figures:
    written = [encode_event(one) for one in folder.events()]
    session_id = state.session_id
    answer = client.get(f"/api/v1/sessions/{session_id}/events").raise_for_status()
    found = answer.content.splitlines()
    shown = client.get(f"/api/v1/sessions/{session_id}").json()
    recordings = len(list(folder.path.glob("media/*.wav")))
    assert state.status is UploadStatus.DONE, state  # noqa: S101 - the trial's own claim
    assert len(shown["media"]) == recordings, shown  # noqa: S101 - the trial's own claim
    return Figures(
        acknowledged=len(found),
        sent_again=state.duplicates_skipped,
        lost=len(set(written) - set(found)),
        doubled=len(found) - len(set(found)) + abs(shown["events"] - len(found)),
    )
