"""A school in small: two toys, two learners who hold them, and an ingest that stores for them.

For tests of whatever happens on the server. Senders are principals made by hand, so nothing here
depends on tokens or HTTP.
"""

import itertools
import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from etude.examiner.enqueue import projectors
from etude.people.devices import add_device
from etude.people.holders import hold_device
from etude.people.learners import add_learner
from etude.people.records import Principal
from etude.people.scopes import Scope
from etude.sessions import repository
from etude.sessions.batch import read_batch
from etude.sessions.export import lines
from etude.sessions.ingest import Ingest
from etude.sessions.records import Answer, SessionRow, Upload
from etude.store import Database
from etude.testing.clocks import ManualClock

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class School:
    """Learners `anna` and `ben`, toys `toy-1` (held by anna) and `toy-2` (held by ben)."""

    def __init__(self, database: Database, run: Run) -> None:
        """Work on an open, migrated database; `run` runs a coroutine on its loop."""
        self.database = database
        self.clock = ManualClock()
        self.ingest = Ingest(database, self.clock, projectors=projectors(self.clock))
        self.run = run
        self.learners: dict[str, int] = {}
        self.devices: dict[str, int] = {}
        self._tokens = itertools.count(1)

    def restart(self) -> None:
        """Take uploads in with a new `Ingest`, as a process that starts again does."""
        self.ingest = Ingest(self.database, self.clock, projectors=projectors(self.clock))

    async def furnish(self) -> None:
        """Add the learners, the toys and who has held them for 30 days."""
        now = self.clock.now()
        async with self.database.transaction() as work:
            for name, toy in (("anna", "toy-1"), ("ben", "toy-2")):
                learner = await add_learner(
                    work.connection, learner_id=name, display_name=name, locale="en", now=now
                )
                device = await add_device(work.connection, device_id=toy, name=toy, now=now)
                await hold_device(
                    work.connection,
                    device_id=toy,
                    learner_id=name,
                    starts_at=now - timedelta(days=30),
                )
                self.learners[name] = learner.learner_key
                self.devices[toy] = device.device_key

    def device(self, name: str) -> Principal:
        """Return a toy as a sender, with a token of its own each time."""
        return Principal(
            kind="device",
            key=self.devices[name],
            id=name,
            scopes=frozenset({Scope.SESSIONS_WRITE, Scope.SESSIONS_READ}),
            token_key=next(self._tokens),
        )

    def learner(self, name: str) -> Principal:
        """Return a learner as a sender, with a token of its own each time."""
        return Principal(
            kind="learner",
            key=self.learners[name],
            id=name,
            scopes=frozenset({Scope.SESSIONS_WRITE, Scope.SESSIONS_READ}),
            token_key=next(self._tokens),
        )

    def gateway(self) -> Principal:
        """Return a service that uploads for devices."""
        return Principal(
            kind="service",
            key=1,
            id="gateway",
            scopes=frozenset({Scope.SESSIONS_WRITE, Scope.UPLOAD_ON_BEHALF}),
            token_key=next(self._tokens),
        )

    async def send(
        self, sender: Principal, session_id: str, body: bytes, device: str | None = None
    ) -> Answer:
        """Send an upload; `device` is the one that a service names."""
        return await self.ingest.receive(
            Upload(
                principal=sender,
                device_key=None if device is None else self.devices[device],
                batch=read_batch(body, session_id),
            )
        )

    def upload(
        self, sender: Principal, session_id: str, body: bytes, device: str | None = None
    ) -> Answer:
        """Send an upload and wait for its answer."""
        answer: Answer = self.run(self.send(sender, session_id, body, device))
        return answer

    def row(self, session_id: str) -> SessionRow:
        """Return what is stored of a session."""

        async def find() -> SessionRow | None:
            async with self.database.read() as connection:
                return await repository.find(connection, session_id)

        found: SessionRow | None = self.run(find())
        if found is None:
            raise KeyError(session_id)
        return found

    def stored(self, session_id: str) -> list[bytes]:
        """Return a session's lines in their order."""

        async def read(session_key: int) -> list[bytes]:
            return [line async for line in lines(self.database, session_key)]

        stored: list[bytes] = self.run(read(self.row(session_id).session_key))
        return stored


def event(session_id: str, number: int, **fields: object) -> dict[str, Any]:
    """An ordinary event, the `number`th of its session."""
    return {
        "event_id": f"e{number:05}",
        "session_id": session_id,
        "ts": float(number),
        "event_type": "audio_observation",
        "signal": "pitch_accuracy",
        "value": {"measure": number, "accuracy": 0.9},
        "confidence": 0.9,
        "seq": number,
    } | fields


def body(*events: dict[str, Any]) -> bytes:
    """Return events as an NDJSON body."""
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in events)
