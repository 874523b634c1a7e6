"""Ingest: an upload's events become durable exactly once, whoever sends them how often.

Uploads that arrive while a transaction is being written are gathered into the next one, so that
many small uploads cost one sync. Each keeps its own answer and its own refusal. An answer is given
after the commit only.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from etude.clock import Clock, to_us
from etude.events.canonical import same_content
from etude.events.ndjson import Scanned
from etude.files import crash_point
from etude.sessions import repository
from etude.sessions.batch import SentEvent
from etude.sessions.bulk import EventRows, Key, PostgresEventRows, SqliteEventRows
from etude.sessions.ownership import open_sessions, resettle
from etude.sessions.projectors import Projector, Stored, chosen
from etude.sessions.records import Answer, SessionRow, Upload
from etude.store.engine import Database
from etude.store.gathering import Gathering
from etude.store.work import UnitOfWork

# About where a larger transaction stops paying (`docs/performance.md`).
GROUP_ROWS: Final = 4_000
# Comparing by meaning takes a second a megabyte: more than this is done off the event loop.
COMPARED_AT_ONCE_BYTES: Final = 16 * 1024


class Ingest:
    """Takes uploads in; one instance a process, living as long as the application."""

    def __init__(
        self, database: Database, clock: Clock, projectors: Sequence[Projector] = ()
    ) -> None:
        """Store into `database`; `clock` gives the time of receipt.

        `projectors` are asked in order within the transaction that stores the events.
        """
        self._database = database
        self._clock = clock
        self._projectors = tuple(projectors)
        self._rows: EventRows = (
            SqliteEventRows() if database.dialect == "sqlite" else PostgresEventRows()
        )
        self._gathering = Gathering(
            self._write, limit=GROUP_ROWS, weigh=lambda upload: len(upload.batch.events)
        )

    async def receive(self, upload: Upload) -> Answer:
        """Store an upload and return its answer; the events are durable by then.

        Raises:
            SessionForeignError: the session belongs to someone else.
            SessionErasedError, LearnerErasedError: it was erased, or its learner was.
            DeviceNotNamedError: a service token began a session without a device.
        """
        return await self._gathering.ask(upload)

    async def _write(self, uploads: Sequence[Upload]) -> list[Answer | Exception]:
        async with self._database.transaction() as work:
            transaction = _Transaction(work, self._rows, to_us(self._clock.now()))
            outcomes, stored = await transaction.store(uploads)
            for projector in self._projectors:
                if wanted := chosen(stored, projector.event_types):
                    await projector.project(work, wanted)
            crash_point("sessions.ingest.before_commit")
        crash_point("sessions.ingest.after_commit")
        return outcomes


class _Tally:
    """What is counted for one upload while the transaction is open."""

    def __init__(self, upload: Upload, session_key: int) -> None:
        self.upload = upload
        self.session_key = session_key
        self.duplicates = 0
        self.conflicts: list[str] = []


class _Transaction:
    """One transaction's work on a group of uploads, statement by statement for all of them."""

    def __init__(self, work: UnitOfWork, rows: EventRows, now_us: int) -> None:
        self._work = work
        self._rows = rows
        self._now_us = now_us

    async def store(self, uploads: Sequence[Upload]) -> tuple[list[Answer | Exception], Stored]:
        """Store uploads; return what each is answered, and the events that are new."""
        sessions, refusals = await open_sessions(self._work, uploads, self._now_us)
        outcomes: list[Answer | Exception | _Tally] = []
        for position, upload in enumerate(uploads):
            session = sessions.get(upload.batch.session_id)
            if refusal := refusals.get(position):
                outcomes.append(refusal)
            elif session is None:
                outcomes.append(_empty(upload))
            else:
                outcomes.append(_Tally(upload, session.session_key))
        tallies = [outcome for outcome in outcomes if isinstance(outcome, _Tally)]
        stored = await self._store_events(tallies)
        known = {session.session_key: session for session in sessions.values()}
        changed = await self._advance(known, tallies, stored)
        answers = [
            _finished(outcome, changed[outcome.session_key])
            if isinstance(outcome, _Tally)
            else outcome
            for outcome in outcomes
        ]
        return answers, stored

    async def _store_events(self, tallies: Sequence[_Tally]) -> dict[int, list[SentEvent]]:
        """Insert what is new, weigh what was known; return what was stored, by session."""
        fresh: dict[Key, tuple[_Tally, SentEvent]] = {}
        again: list[tuple[_Tally, SentEvent]] = []
        for tally in tallies:
            for sent in tally.upload.batch.events:
                key = (tally.session_key, sent.columns.event_id)
                if key in fresh:
                    again.append((tally, sent))
                else:
                    fresh[key] = (tally, sent)
        existed = await self._insert(fresh)
        again.extend(fresh[key] for key in existed)
        if again:
            held = await self._rows.lines(self._work, list(existed)) if existed else {}
            await self._weigh(again, fresh, held)
        stored: dict[int, list[SentEvent]] = {}
        for key, (_, sent) in fresh.items():
            if key not in existed:
                stored.setdefault(key[0], []).append(sent)
        return stored

    async def _insert(self, fresh: Mapping[Key, tuple[_Tally, SentEvent]]) -> set[Key]:
        """Insert events with distinct keys; return the keys that existed."""
        if not fresh:
            return set()
        now_us = self._now_us
        return set(
            await self._rows.insert(
                self._work,
                [
                    (
                        key[0],
                        key[1],
                        line,
                        columns.seq,
                        columns.ts,
                        columns.event_type,
                        columns.signal,
                        columns.phase,
                        columns.confidence,
                        columns.alert_tier,
                        bool(columns.cloud_review_available),
                        now_us,
                    )
                    for key, (_, (columns, line)) in fresh.items()
                ],
            )
        )

    async def _weigh(
        self,
        again: Sequence[tuple[_Tally, SentEvent]],
        fresh: Mapping[Key, tuple[_Tally, SentEvent]],
        held: Mapping[Key, bytes],
    ) -> None:
        """Tell duplicates from conflicts; a conflict's newcomer goes to the quarantine."""
        newcomers: list[repository.Newcomer] = []
        keys = [(tally.session_key, sent.columns.event_id) for tally, sent in again]
        pairs = [
            (held.get(key) or fresh[key][1].line, sent.line)
            for key, (_, sent) in zip(keys, again, strict=True)
        ]
        same = await _compared(pairs)
        for (session_key, event_id), (tally, sent), is_same in zip(keys, again, same, strict=True):
            if is_same:
                tally.duplicates += 1
                continue
            tally.conflicts.append(event_id)
            newcomers.append((session_key, event_id, sent.line, tally.upload.principal))
        if newcomers:
            await repository.quarantine(self._work, newcomers, self._now_us)

    async def _advance(
        self,
        known: dict[int, SessionRow],
        tallies: Sequence[_Tally],
        stored: Stored,
    ) -> dict[int, SessionRow]:
        """Bring the session rows up to what they now hold; return them by key."""
        changed: list[SessionRow] = []
        for session_key, new in stored.items():
            events = [sent.columns for sent in new]
            grown = _grown(known[session_key], events, self._now_us)
            watermark = _next_watermark(known[session_key], events)
            if watermark is None and grown.max_seq is not None:
                watermark = await repository.watermark(
                    self._work, session_key, grown.watermark or 0
                )
            grown = msgspec.structs.replace(grown, watermark=watermark)
            for tally in tallies:
                if tally.session_key == session_key and tally.upload.batch.started:
                    grown = await resettle(self._work, grown, tally.upload, wait=len(known) == 1)
            changed.append(grown)
        await repository.save(self._work, changed)
        return known | {session.session_key: session for session in changed}


async def _compared(pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """Say which pairs of lines have the same content."""
    spelled_otherwise = sum(len(line) for held, line in pairs if held != line)
    if spelled_otherwise > COMPARED_AT_ONCE_BYTES:
        return await asyncio.to_thread(_compare, pairs)
    return _compare(pairs)


def _compare(pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    return [same_content(held, line) for held, line in pairs]


def _empty(upload: Upload) -> Answer:
    return Answer(session_id=upload.batch.session_id, events_rejected=upload.batch.rejected)


def _finished(tally: _Tally, session: SessionRow) -> Answer:
    batch = tally.upload.batch
    return Answer(
        session_id=batch.session_id,
        events_received=len(batch.events),
        duplicates_skipped=tally.duplicates,
        events_rejected=batch.rejected,
        errors=batch.errors,
        conflicts=tally.conflicts,
        watermark=session.watermark,
    )


def _grown(session: SessionRow, events: Sequence[Scanned], now_us: int) -> SessionRow:
    seqs = [event.seq for event in events if event.seq is not None]
    ended = session.ended or any(event.event_type == "session_end" for event in events)
    return msgspec.structs.replace(
        session,
        status="ended" if ended else "open",
        ended=ended,
        event_count=session.event_count + len(events),
        max_seq=max([*seqs, *([] if session.max_seq is None else [session.max_seq])], default=None),
        last_ts_s=max(session.last_ts_s, *(event.ts for event in events)),
        last_received_us=max(session.last_received_us, now_us),
    )


def _next_watermark(session: SessionRow, events: Sequence[Scanned]) -> int | None:
    """Return the new watermark if the new events alone can tell it, else None: count in SQL."""
    reached = session.watermark or 0
    numbers = {event.seq for event in events if event.seq is not None}
    if reached + 1 not in numbers:  # what was missing is missing still
        return reached if numbers else session.watermark
    follows = session.max_seq is None or session.max_seq <= reached
    if follows and numbers == set(range(reached + 1, reached + 1 + len(numbers))):
        return reached + len(numbers)
    return None
