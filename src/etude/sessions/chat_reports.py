"""What was said in a session outside of its turns, as another server reports it.

One report is one event; its recording, if there is one, is kept with the session.
"""

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from etude.clock import Clock, to_us
from etude.sessions import media
from etude.sessions.errors import RecordingUnusableError
from etude.sessions.ingest import Ingest
from etude.sessions.instance_puts import Group, Name, batch_of, identify
from etude.sessions.instances import Sender
from etude.sessions.ownership import writable
from etude.sessions.records import Upload
from etude.sessions.turns import PUT_SOURCE
from etude.store.blobs import Blobs
from etude.store.engine import Database

WAV: Final = "audio/wav"
# Some senders mean milliseconds and some seconds: this many of the latter are in the year 5138.
_SECONDS_BELOW: Final = 1e11
_LAST_MS: Final = 253_402_300_799_999
_SPEAKERS: Final[Mapping[int, str]] = {1: "user", 2: "agent", 3: "tool"}


class ChatReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing said: `chatType` 1 by the learner, 2 by the agent, 3 by a tool."""

    mac_address: Name
    session_id: Name
    chat_type: Literal[1, 2, 3]
    content: Annotated[str, Meta(pattern=r"\S", max_length=16_000)]
    audio_base64: str | None = None
    report_time: Annotated[float, Meta(ge=0, le=_LAST_MS)] | None = None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A WAV file and its digest."""

    sha256: str
    data: bytes


def recording_of(report: ChatReport) -> Recording | None:
    """Return the recording of a report.

    Raises:
        RecordingUnusableError: it is not base64, or not a WAV file.
    """
    if not report.audio_base64:
        return None
    try:
        data = base64.b64decode(report.audio_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordingUnusableError(reason="base64") from error
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise RecordingUnusableError(reason="WAV")
    return Recording(sha256=hashlib.sha256(data).hexdigest(), data=data)


def group_of(report: ChatReport, recording: Recording | None, now_ms: int) -> Group:
    """Return a report as an event without id; a report without a time was made just `now_ms`."""
    reported_at = now_ms if report.report_time is None else _milliseconds(report.report_time)
    meta: dict[str, Any] = {"source": PUT_SOURCE}
    if recording is not None:
        meta["media"] = [{"sha256": recording.sha256}]
    content = {
        "ts": 0.0,  # when in the session it was, a report does not tell
        "event_type": "chat_message",
        "signal": _SPEAKERS[report.chat_type],
        "value": {
            "chat_type": report.chat_type,
            "content": report.content,
            "reported_at": reported_at,
            "audio_id": None if recording is None else recording.sha256,
        },
        "confidence": 1.0,
        "meta": meta,
    }
    return Group(place="content", part=None, contents=(content,))


async def keep(
    database: Database,
    blobs: Blobs,
    clock: Clock,
    ingest: Ingest,
    report: ChatReport,
    sender: Sender,
) -> str | None:
    """Store a report and its recording; return the recording's id.

    The event comes first: a crash in between leaves an event that names a recording to come, and
    a report without an answer, which is sent again.

    Raises:
        RecordingUnusableError, InstancePartUnusableError: nothing was stored.
        SessionForeignError, SessionErasedError, LearnerErasedError, DeviceNotNamedError: as for
            every upload.
    """
    recording = recording_of(report)
    said = identify(report.session_id, group_of(report, recording, to_us(clock.now()) // 1000))
    batch = batch_of(report.session_id, [said])
    await ingest.receive(
        Upload(principal=sender.principal, device_key=sender.device_key, batch=batch)
    )
    if recording is None:
        return None
    async with database.read() as connection:
        session = await writable(connection, sender.principal, report.session_id)
    await media.put(
        database,
        blobs,
        clock,
        session,
        sha256=recording.sha256,
        content_type=WAV,
        chunks=_whole(recording.data),
    )
    return recording.sha256


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _milliseconds(told: float) -> int:
    return round(told * 1000 if told < _SECONDS_BELOW else told)
