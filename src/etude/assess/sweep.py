"""The job that assesses a session's turns: every one that lacks metrics, until none does.

Metrics are written through ingest, one event each with an id of its content, so a second run finds
them. An engine that fails costs its turn this run only: the others are written, the job fails and
comes back. Its last transaction looks once more at what the session holds by then.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.listening import Heard
from etude.assess.metrics import Method, Metric
from etude.assess.pooled import PooledEngines
from etude.assess.recordings import decode_recording
from etude.assess.turns import assess_turn, event_line, lacking
from etude.clock import Clock
from etude.errors import EtudeError
from etude.events.ndjson import decode_line
from etude.files import crash_point
from etude.jobs import Job
from etude.people.errors import LearnerErasedError
from etude.people.records import Principal
from etude.sessions import instances, media
from etude.sessions import repository as sessions
from etude.sessions.batch import server_batch
from etude.sessions.errors import SessionErasedError, SessionTooLongError
from etude.sessions.export import lines_within
from etude.sessions.ingest import Ingest
from etude.sessions.records import Media, SessionRow, Upload
from etude.sessions.turns import Turn
from etude.speech.audio import Pcm, floats
from etude.speech.errors import (
    AudioEmptyError,
    AudioTooLongError,
    AudioUnreadableError,
    SoundLibraryMissingError,
    SpeechEngineError,
    SpeechWorkerError,
)
from etude.store import Blobs, Database
from etude.store.errors import BlobMissing

LIMIT_BYTES: Final = 16 * 1024 * 1024
LAST_HEARING: Final = 6
"""The attempt from which an engine that fails is done without: some recording may fell any."""
_log = structlog.get_logger(__name__)


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that can be assessed now, and what it still lacks."""

    turn: Turn
    recording: Media | None
    methods: tuple[str, ...]


class AssessTurns:
    """The handler of `assess.turns` jobs."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        ingest: Ingest,
        clock: Clock,
        methods: Mapping[str, Method],
        engines: PooledEngines | None,
    ) -> None:
        """Assess with `methods`; `engines` None: there are none, so only texts are compared."""
        self._database = database
        self._blobs = blobs
        self._ingest = ingest
        self._clock = clock
        self._methods = methods
        self._engines = engines

    async def __call__(self, job: Job) -> None:
        """Assess the session that the job names."""
        session_key = job.args["session_key"]
        async with self._database.read() as connection:
            session = await _session(connection, session_key)
            waiting = () if session is None else await self._waiting(connection, session)
        failed: EtudeError | None = None
        if session is not None and waiting:
            times = await self._times(session)
            for one in waiting:
                try:
                    ts_s = times.get(one.turn.step_index, 0.0)
                    await self._assess(session, one, ts_s, last=job.attempt >= LAST_HEARING)
                except (SessionErasedError, LearnerErasedError):
                    return
                except EtudeError as error:
                    _log.warning(
                        "a turn waits", action="assess.failed", code=error.code, key=session_key
                    )
                    failed = error
        if failed is not None:
            raise failed
        await self._finish(job, waiting)

    async def _assess(
        self, session: SessionRow, pending: Pending, ts_s: float, *, last: bool
    ) -> None:
        turn = pending.turn
        sound = await self._sound(pending.recording)
        heard = None if sound is None else await self._heard(turn, sound, last=last)
        metrics = await asyncio.to_thread(self._found, turn, heard, sound)
        crash_point("assess.turns.found")
        if metrics:
            await self._write(session, turn.step_index, ts_s, metrics)

    async def _heard(self, turn: Turn, sound: Pcm, *, last: bool) -> Heard | None:
        if self._engines is None:
            return None
        try:
            return await self._engines.hear(turn.expected_text, sound)
        except (SpeechEngineError, SpeechWorkerError) as error:
            if not last:
                raise
            _log.error("a recording fells engines", action="assess.unheard", code=error.code)
            return None

    def _found(self, turn: Turn, heard: Heard | None, sound: Pcm | None) -> list[Metric]:
        if sound is None:
            return assess_turn(turn, self._methods, heard, None, 0)
        return assess_turn(turn, self._methods, heard, floats(sound), sound.sample_rate)

    async def _sound(self, recording: Media | None) -> Pcm | None:
        """Return a recording's samples; None where there is none that can be read."""
        if recording is None:
            return None
        try:
            data = await self._blobs.read(recording.sha256)
            return await asyncio.to_thread(decode_recording, data, recording.content_type)
        except (
            AudioEmptyError,
            AudioTooLongError,
            AudioUnreadableError,
            SoundLibraryMissingError,
            BlobMissing,
        ) as error:
            _log.warning("a recording is not heard", action="assess.unreadable", code=error.code)
            return None

    async def _write(
        self, session: SessionRow, step_index: int, ts_s: float, metrics: Iterable[Metric]
    ) -> None:
        lines = [event_line(session.session_id, step_index, ts_s, one) for one in metrics]
        writer = Principal(
            kind=session.principal_kind,  # type: ignore[arg-type]  # stored from such a value
            key=session.principal_key,
            id="",
            scopes=frozenset(),
            token_key=None,
        )
        await self._ingest.receive(
            Upload(
                principal=writer,
                device_key=session.device_key,
                batch=server_batch(lines, session.session_id),
            )
        )
        crash_point("assess.turns.written")

    async def _waiting(
        self, connection: AsyncConnection, session: SessionRow
    ) -> tuple[Pending, ...]:
        try:
            folded = await instances.load(connection, session)
        except SessionTooLongError as error:
            _log.warning("a session is too long", action="assess.too_long", code=error.code)
            return ()
        if folded is None:
            return ()
        recordings = {
            one.sha256: one for one in await media.listed(connection, session.session_key)
        }
        return tuple(
            pending
            for turn in folded.instance.turns
            if (pending := _pending(turn, recordings, self._methods)) is not None
        )

    async def _times(self, session: SessionRow) -> dict[int, float]:
        """Return when each step was observed, in seconds of the session."""
        found: dict[int, float] = {}
        for line in await lines_within(self._database, session, LIMIT_BYTES):
            if b"signal_observation" not in line:
                continue
            event = decode_line(line)
            if event.event_type == "signal_observation" and isinstance(event.value, Mapping):
                step = event.value.get("step_index")
                if isinstance(step, int):
                    found[step] = event.ts
        return found

    async def _finish(self, job: Job, done: Sequence[Pending]) -> None:
        """End the job, or put it back if the session holds by now what this run did not see."""
        async with self._database.transaction() as work:
            session = await _session(work.connection, job.args["session_key"])
            if session is not None:
                await sessions.lock(work, [session.session_id])
                seen = {_name(one) for one in done}
                now = await self._waiting(work.connection, session)
                if any(_name(one) not in seen for one in now):
                    await job.again(work, self._clock.now())
                    return
            await job.finish(work)
            crash_point("assess.turns.before_commit")


def _pending(
    turn: Turn, recordings: Mapping[str, Media], methods: Mapping[str, Method]
) -> Pending | None:
    recording = recordings.get(turn.audio_id or "")
    if recording is None and turn.asr_text is None:
        return None  # nothing was heard, or the recording has not arrived
    missing = tuple(lacking(turn, methods))
    return Pending(turn=turn, recording=recording, methods=missing) if missing else None


def _name(pending: Pending) -> tuple[int, str | None, str | None, str | None]:
    """Return what a run has seen of a turn: a change of it is to be assessed again."""
    turn = pending.turn
    recording = None if pending.recording is None else pending.recording.sha256
    return turn.step_index, turn.expected_text, turn.asr_text, recording


async def _session(connection: AsyncConnection, session_key: int) -> SessionRow | None:
    return (await sessions.by_keys(connection, [session_key])).get(session_key)


async def is_pending(
    connection: AsyncConnection, session_key: int, methods: Mapping[str, Method]
) -> bool:
    """Say whether turns of a session have recordings that no method has spoken about yet."""
    session = await _session(connection, session_key)
    if session is None:
        return False
    folded = await instances.load(connection, session)
    if folded is None:
        return False
    have = {one.sha256 for one in await media.listed(connection, session_key)}
    return any(
        turn.audio_id in have and not any(one.method in methods for one in turn.metrics)
        for turn in folded.instance.turns
    )
