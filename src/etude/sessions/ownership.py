"""Whose session it is: resolved once, at the first ingest, and kept.

The rules: `docs/sessions.md §Whose session it is`. A session belongs to a principal, a device or a
learner, that may write to it; and to the learner who practised, who is the token's own or held the
device at the session's time.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.errors import EtudeError
from etude.people import audit
from etude.people.erasure import erased_among
from etude.people.errors import LearnerErasedError
from etude.people.holders import Holders, holders_of, learner_key_at
from etude.people.records import Principal
from etude.people.scopes import Scope
from etude.sessions import repository
from etude.sessions.errors import (
    DeviceNotNamedError,
    SessionErasedError,
    SessionForeignError,
    SessionNotYetError,
    SessionUnknownError,
)
from etude.sessions.records import SessionRow, Upload
from etude.sessions.session_time import SessionTime, place
from etude.store.work import UnitOfWork


async def open_sessions(
    work: UnitOfWork, uploads: Sequence[Upload], now_us: int
) -> tuple[dict[str, SessionRow], dict[int, EtudeError]]:
    """Return the sessions of these uploads, opened where new, and the refusals by position.

    An upload without a valid line opens nothing. Statements are one for all, never one an upload.
    """
    sessions = await repository.lock(work, {upload.batch.session_id for upload in uploads})
    refusals: dict[int, EtudeError] = {}
    # Once is enough, unless the upload that would have opened a session is refused and another one
    # may open it, or the session was erased before it could be locked.
    while unopened := _unopened(uploads, sessions, refusals):
        refusals |= await _refuse_erased(work, unopened)
        opening = {
            position: upload
            for position, upload in unopened.items()
            if upload.batch.events and position not in refusals
        }
        if not opening:
            break
        refusals |= await _open(work, opening, now_us, wait=not sessions)
        named = {upload.batch.session_id for upload in opening.values()}
        sessions |= await repository.lock(work, named)
    for position, upload in enumerate(uploads):
        session = sessions.get(upload.batch.session_id)
        if session is None or position in refusals:
            continue
        if upload.principal.kind == "service" and upload.device_key is None:
            refusals[position] = DeviceNotNamedError()
        elif not _may_add(session, upload):
            refusals[position] = SessionForeignError(session_id=session.session_id)
    return sessions, refusals


def _unopened(
    uploads: Sequence[Upload],
    sessions: Mapping[str, SessionRow],
    refusals: Mapping[int, EtudeError],
) -> dict[int, Upload]:
    return {
        position: upload
        for position, upload in enumerate(uploads)
        if upload.batch.session_id not in sessions and position not in refusals
    }


async def _refuse_erased(work: UnitOfWork, uploads: Mapping[int, Upload]) -> dict[int, EtudeError]:
    named = {upload.batch.session_id for upload in uploads.values()}
    erased = await repository.tombstones(work.connection, named)
    return {
        position: SessionErasedError()
        for position, upload in uploads.items()
        if upload.batch.session_id in erased
    }


async def _open(
    work: UnitOfWork, uploads: Mapping[int, Upload], now_us: int, *, wait: bool
) -> dict[int, EtudeError]:
    """Add the sessions of these uploads; return the refusals by position.

    An erasure locks the learner and then the sessions. Who holds a session already may therefore
    not `wait` for a learner (`StoreBusy`): the uploads are then taken one by one.
    """
    holders = await holders_of(
        work.connection, {key for upload in uploads.values() if (key := _device_key(upload))}
    )
    opened: dict[str, SessionRow] = {}
    openers: dict[str, int] = {}
    refusals: dict[int, EtudeError] = {}
    for position, upload in uploads.items():
        if upload.batch.session_id in opened:
            continue
        try:
            opened[upload.batch.session_id] = _opened(upload, holders, now_us)
        except EtudeError as refusal:
            refusals[position] = refusal
        else:
            openers[upload.batch.session_id] = position
    # Held until the commit: an erasure either finds these sessions or they find the erasure.
    learners = {record.learner_key for record in opened.values() if record.learner_key}
    gone = await erased_among(work.connection, learners, lock=True, wait=wait)
    for session_id, position in openers.items():
        if opened[session_id].learner_key in gone:
            refusals[position] = LearnerErasedError()
            del opened[session_id]
    if opened:
        await repository.insert(work, list(opened.values()))
    for session_id in opened:
        await _note_on_behalf(work, uploads[openers[session_id]], now_us)
    return refusals


async def writable(
    connection: AsyncConnection, principal: Principal, session_id: str
) -> SessionRow:
    """Return a session that exists and that the principal may write to.

    Raises:
        SessionUnknownError, SessionErasedError, SessionForeignError: as they say.
    """
    session = await repository.find(connection, session_id)
    if session is None:
        if await repository.tombstones(connection, [session_id]):
            raise SessionErasedError
        raise SessionUnknownError(session_id=session_id)
    if not may_write(session, principal):
        raise SessionForeignError(session_id=session_id)
    return session


def may_write(session: SessionRow, principal: Principal) -> bool:
    """Say whether the session is the principal's own, or one it uploads for (`docs/rules.md 4`)."""
    if principal.kind == "service":
        return session.principal_kind == "device" and Scope.UPLOAD_ON_BEHALF in principal.scopes
    return (principal.kind, principal.key) == (session.principal_kind, session.principal_key)


def _may_add(session: SessionRow, upload: Upload) -> bool:
    principal = upload.principal
    if may_write(session, principal):
        return principal.kind != "service" or upload.device_key == session.device_key
    return (
        principal.kind == "learner"
        and principal.key == session.learner_key
        and _only_contests(upload)
    )


def _only_contests(upload: Upload) -> bool:
    return all(sent.columns.event_type == "signal_contested" for sent in upload.batch.events)


async def resettle(
    work: UnitOfWork, session: SessionRow, upload: Upload, *, wait: bool
) -> SessionRow:
    """Take in what a late `session_start` says of the session's time, and so of its learner.

    Only what was estimated before can change; a person's decision about the owner stands. `wait`
    for another learner only where no other session is held, see `_open`.

    Raises:
        LearnerErasedError: that learner was erased.
    """
    batch = upload.batch
    if session.device_started_us is not None or batch.device_start is None:
        return session
    time = place(
        batch.device_start,
        unreadable=batch.start_unreadable,
        received=from_us(session.first_received_us),
        last_ts_s=session.last_ts_s,
    )
    changed = msgspec.structs.replace(session, **_time_columns(time, upload))
    if session.owner_basis != "receipt_time" or time.estimated or session.device_key is None:
        return changed
    learner_key = await learner_key_at(work.connection, session.device_key, time.started)
    if (
        learner_key is not None
        # An erasure under way looks for its sessions once, and this is not among them yet.
        and learner_key != session.learner_key
        and await erased_among(work.connection, [learner_key], lock=True, wait=wait)
    ):
        raise LearnerErasedError
    return msgspec.structs.replace(changed, learner_key=learner_key, owner_basis="session_time")


def _opened(upload: Upload, holders: Holders, now_us: int) -> SessionRow:
    kind, key = _writer(upload)
    batch = upload.batch
    time = place(
        batch.device_start,
        unreadable=batch.start_unreadable,
        received=from_us(now_us),
        last_ts_s=batch.last_ts_s,
    )
    if kind == "learner":
        learner_key: int | None = key
        basis = "token"
    else:
        learner_key = holders.learner_key_at(key, time.started)
        basis = "receipt_time" if time.estimated else "session_time"
    return SessionRow(
        session_key=0,
        session_id=batch.session_id,
        principal_kind=kind,
        principal_key=key,
        device_key=key if kind == "device" else None,
        learner_key=learner_key,
        owner_basis=basis,
        status="open",
        event_count=0,
        max_seq=None,
        watermark=None,
        last_ts_s=0.0,
        first_received_us=now_us,
        last_received_us=now_us,
        ended=False,
        **_time_columns(time, upload),
    )


def _device_key(upload: Upload) -> int | None:
    return upload.principal.key if upload.principal.kind == "device" else upload.device_key


def _writer(upload: Upload) -> tuple[str, int]:
    principal = upload.principal
    if principal.kind == "learner" and _only_contests(upload):
        raise SessionNotYetError  # else a contest that is early would take the toy's session
    if principal.kind in {"device", "learner"}:
        return principal.kind, principal.key
    if Scope.UPLOAD_ON_BEHALF not in principal.scopes or upload.device_key is None:
        raise DeviceNotNamedError
    return "device", upload.device_key


async def _note_on_behalf(work: UnitOfWork, upload: Upload, now_us: int) -> None:
    """The session names the device; the audit log keeps who uploaded for it (`docs/rules.md 4`)."""
    if upload.principal.kind == "service" and upload.device_key is not None:
        await audit.record(
            work,
            upload.principal,
            "session.opened_on_behalf",
            subject=("device", upload.device_key),
            now=from_us(now_us),
        )


class _TimeColumns(TypedDict):
    device_started_us: int | None
    utc_offset_min: int | None
    started_us: int
    started_estimated: bool
    clock_flag: str | None


def _time_columns(time: SessionTime, upload: Upload) -> _TimeColumns:
    device = upload.batch.device_start
    return {
        "device_started_us": None if device is None else to_us(device.at),
        "utc_offset_min": None if device is None else device.utc_offset_min,
        "started_us": to_us(time.started),
        "started_estimated": time.estimated,
        "clock_flag": time.flag,
    }
