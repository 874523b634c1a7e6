"""One turn of a stored session assessed: its sound read, heard, measured, and written as events.

What a method said before stays. Something else is a new event that names the one it `replaces`; the
same is no event at all. So a second run, by whomever, adds nothing.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.listening import Heard
from etude.assess.metrics import Method, Metric
from etude.assess.pooled import PooledEngines
from etude.assess.recordings import decode_recording
from etude.assess.turns import assess_turn, event_line, is_no_engine, text_line, why_unread
from etude.assess.words import plain
from etude.events.ndjson import decode_line
from etude.files import crash_point
from etude.sessions import instances, media
from etude.sessions import repository as sessions
from etude.sessions.assessment import Assessment
from etude.sessions.errors import SessionTooLongError
from etude.sessions.export import lines_within
from etude.sessions.ingest import Ingest
from etude.sessions.records import Media, SessionRow
from etude.sessions.server_events import server_upload
from etude.sessions.turns import Folded, HeardLater, Turn
from etude.sessions.turns import Metric as FoldedMetric
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
VERSIONS: Final = (
    "recogniser",
    "model",
    "aligner",
    "acoustic_model",
    "detector",
    "detector_model",
    "assessor",
)
"""Members of a metric's `detail` that say what it was made by."""
LAST_HEARING: Final = 6
"""The attempt from which an engine that fails is done without: some recording may fell any."""
_log = structlog.get_logger(__name__)


class StoredTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, its recording if that has arrived, and what this server has said of it.

    Attributes:
        turn: as folded.
        recording: None = there is none (yet).
        said_by: by method, the event of a metric that this server found.
        heard: what was heard in the recording afterwards; None = nothing yet.
        assessment: what the task's app declares: by which methods it is assessed.
    """

    turn: Turn
    recording: Media | None
    said_by: Mapping[str, str] = {}
    heard: HeardLater | None = None
    assessment: Assessment = Assessment()


class TurnAssessor:
    """Assesses turns with the methods and engines of this process."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        ingest: Ingest,
        methods: Mapping[str, Method],
        engines: PooledEngines | None,
    ) -> None:
        """Assess with `methods`; `engines` None: there are none, so only texts are compared."""
        self.database = database
        self.methods = methods
        self.hears = engines is not None
        self._blobs = blobs
        self._ingest = ingest
        self._engines = engines

    async def assess(
        self,
        session: SessionRow,
        stored: StoredTurn,
        ts_s: float,
        *,
        last: bool,
        anew: bool = False,
    ) -> Mapping[str, str]:
        """Assess a turn and write what is new; return what it was heard and measured by.

        Args:
            session: whose turn it is.
            stored: the turn.
            ts_s: when it was, in seconds of the session.
            last: an engine that fails is done without.
            anew: where engines hear it, ask also those methods that have said something.

        Raises:
            SpeechBusyError, SpeechServerError, SpeechClosedError; without `last` also
            SpeechWorkerError, SpeechEngineError: not now; the turn waits.
            SessionErasedError, LearnerErasedError: there is nothing to assess any more.
        """
        turn = stored.turn
        methods = stored.assessment.among(self.methods)
        sound = await self._sound(stored.recording)
        heard = None if sound is None else await self._heard(turn, sound, last=last)
        if anew and heard is not None and heard.recognised is not None:
            turn = msgspec.structs.replace(turn, metrics=())  # all of them have something to say
        metrics, unread = await asyncio.to_thread(self._found, turn, methods, heard, sound)
        crash_point("assess.turns.found")
        lines = list(_new_lines(session.session_id, ts_s, stored, metrics))
        if heard is not None and unread is None:
            lines += _new_text(session.session_id, ts_s, stored, heard)
        if lines:
            await self._ingest.receive(server_upload(session, lines))
            crash_point("assess.turns.written")
        return {} if heard is None else heard.engines | versions_of(metrics)

    async def turns(
        self, connection: AsyncConnection, session: SessionRow
    ) -> tuple[StoredTurn, ...]:
        """Return the turns of a session in which there is something to assess."""
        try:
            folded = await instances.load(connection, session)
        except SessionTooLongError as error:
            _log.warning("a session is too long", action="assess.too_long", code=error.code)
            return ()
        if folded is None:
            return ()
        if missing := set(folded.assessment.methods) - self.methods.keys():
            # Their names are whatever was uploaded.
            _log.warning("methods are missing", action="assess.missing", count=len(missing))
        if not folded.assessment.among(self.methods):
            return ()
        kept = await media.listed(connection, session.session_key)
        return tuple(_stored(folded, {one.sha256: one for one in kept}))

    async def times(self, session: SessionRow) -> dict[int, float]:
        """Return when each step was observed, in seconds of the session."""
        found: dict[int, float] = {}
        for line in await lines_within(self.database, session, LIMIT_BYTES):
            if b"signal_observation" not in line:
                continue
            event = decode_line(line)
            if event.event_type == "signal_observation" and isinstance(event.value, Mapping):
                step = event.value.get("step_index")
                if isinstance(step, int):
                    found[step] = event.ts
        return found

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

    def _found(
        self,
        turn: Turn,
        methods: Mapping[str, Method],
        heard: Heard | None,
        sound: Pcm | None,
    ) -> tuple[list[Metric], str | None]:
        """Return what the methods find, and why the text was not read; None = it was."""
        if sound is None:
            return assess_turn(turn, methods, heard, None, 0), None
        found = assess_turn(turn, methods, heard, floats(sound), sound.sample_rate)
        return found, None if heard is None else why_unread(turn.expected_text, heard)

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


def versions_of(metrics: Iterable[Metric | FoldedMetric]) -> dict[str, str]:
    """Return what metrics were made by; of several the last."""
    found: dict[str, str] = {}
    for metric in metrics:
        if isinstance(metric.detail, Mapping):
            found |= {key: metric.detail[key] for key in VERSIONS if key in metric.detail}
    return found


async def session_of(connection: AsyncConnection, session_key: int) -> SessionRow | None:
    """Return a session by its key; None if it was erased."""
    return (await sessions.by_keys(connection, [session_key])).get(session_key)


def _stored(folded: Folded, recordings: Mapping[str, Media]) -> Iterator[StoredTurn]:
    for turn in folded.instance.turns:
        recording = recordings.get(turn.audio_id or "")
        if recording is None and turn.asr_text is None:
            continue  # nothing was heard, or the recording has not arrived
        step = turn.step_index
        said_by = {method: each for (at, method), each in folded.said_by.items() if at == step}
        yield StoredTurn(
            turn=turn,
            recording=recording,
            said_by=said_by,
            heard=folded.heard.get(step),
            assessment=folded.assessment,
        )


def _new_lines(
    session_id: str, ts_s: float, stored: StoredTurn, found: Iterable[Metric]
) -> Iterator[bytes]:
    """Yield what differs from what was said before; a missing engine takes no number back."""
    before = {one.method: one for one in stored.turn.metrics}
    for metric in found:
        known = before.get(metric.method)
        replaces = stored.said_by.get(metric.method)
        if known is not None:
            if replaces is None:
                continue  # another server's
            gone = is_no_engine(metric.detail) and not is_no_engine(known.detail)
            if gone or _content(metric) == _content(known):
                continue
        yield event_line(session_id, stored.turn.step_index, ts_s, metric, replaces=replaces)


def _new_text(session_id: str, ts_s: float, stored: StoredTurn, heard: Heard) -> Iterator[bytes]:
    """Yield what was heard, where the turn has no text of its own."""
    recognised, before = heard.recognised, stored.heard
    if recognised is None or not plain(recognised.text):
        return
    if before is None:
        if stored.turn.asr_text is not None:
            return
    elif before.text == plain(recognised.text) and before.engines == recognised.engines:
        return
    yield text_line(
        session_id,
        stored.turn.step_index,
        ts_s,
        recognised,
        replaces=None if before is None else before.event_id,
    )


def _content(metric: Metric | FoldedMetric) -> tuple[Any, Any, Any]:
    unit = None if metric.unit is msgspec.UNSET else metric.unit
    detail = {} if metric.detail is msgspec.UNSET else metric.detail
    return metric.value, unit, msgspec.to_builtins(detail)
