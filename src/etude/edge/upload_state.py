"""`state.json`: what the cloud has acknowledged of a session, and when it is tried again.

Written by the outbox alone, as a whole (temporary file, sync, rename, folder sync). A state that
is missing or broken costs a second upload, never an event: the server stores each once.
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.edge import layout
from etude.edge.errors import disk_error
from etude.edge.reader import Position
from etude.files import Files, crash_point, replace_file

LISTED_REFUSALS: Final = 1000
"""So many refused lines are listed; all are counted."""


class UploadStatus(StrEnum):
    """Where the upload of a session is."""

    WAITING = "waiting"
    """Nothing has failed; what is unsent goes with the next trigger."""
    RETRYING = "retrying"
    """The last try failed; the next one is due at `next_try_at`."""
    PENDING = "pending"
    """Ten tries failed; the next trigger begins again."""
    REFUSED = "refused"
    """The server will not have the session; a person has to look (`Outbox.release`)."""
    ERASED = "erased"
    """The session was erased on the server and is never sent again."""
    DONE = "done"
    """The session is over and all of it is acknowledged."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a try failed. `http_status` is None where there was no answer."""

    code: str
    message: str = ""
    http_status: int | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """One line, or one recording, that the server will not have: kept aside and shown.

    `part` and `line` (from 1) say where it stands in the journal; a recording has `sha256` alone.
    """

    code: str
    message: str = ""
    part: int | None = None
    line: int | None = None
    event_id: str | None = None
    sha256: str | None = None


class UploadState(msgspec.Struct, frozen=True, kw_only=True):
    """All that the outbox knows of one session. Times are the device's wall clock, aware.

    Args:
        session_id: whose state it is.
        status: see `UploadStatus`.
        acknowledged: everything before this place was received or refused by the server.
        acknowledged_event: id of the last event the server received.
        watermark: the server's: the highest `seq` up to which nothing is missing.
        received: lines the server has counted as received, duplicates included.
        duplicates_skipped: how many of them it had already.
        attempts: tries of this round that failed.
        next_try_at: not before, unless a trigger comes.
        scheduled_at: when that was decided; a clock behind it was set back and proves nothing.
        not_before: `Retry-After` of the server; no trigger comes before it.
        problem: why the last try failed.
        refused: the first of the lines and recordings that the server will not have.
        refused_count: how many they are in all.
        conflicts: ids the server holds with other content.
        media: sha256 of each recording the server has.
    """

    version: int = 1
    session_id: str
    status: UploadStatus = UploadStatus.WAITING
    acknowledged: Position = Position()
    acknowledged_event: str | None = None
    watermark: int | None = None
    received: int = 0
    duplicates_skipped: int = 0
    attempts: int = 0
    next_try_at: datetime | None = None
    scheduled_at: datetime | None = None
    not_before: datetime | None = None
    problem: Problem | None = None
    refused: list[Refusal] = []
    refused_count: int = 0
    conflicts: list[str] = []
    media: list[str] = []

    def but(self, **changes: Any) -> "UploadState":  # noqa: ANN401 - any field of this record
        """Return this state with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    def with_refusals(self, refusals: list[Refusal]) -> "UploadState":
        """Return this state with more refused lines."""
        room = max(0, LISTED_REFUSALS - len(self.refused))
        return self.but(
            refused=[*self.refused, *refusals[:room]],
            refused_count=self.refused_count + len(refusals),
        )

    def settled_media(self) -> frozenset[str]:
        """Return the sha256 of each recording that is not to be sent again."""
        refused = {refusal.sha256 for refusal in self.refused if refusal.sha256}
        return frozenset(self.media) | refused


def load_state(folder: Path, session_id: str) -> UploadState:
    """Return the state of a session; a fresh one if there is none, or none that can be read."""
    try:
        state = msgspec.json.decode((folder / layout.STATE).read_bytes(), type=UploadState)
    except (OSError, msgspec.MsgspecError):
        return UploadState(session_id=session_id)
    return state if state.session_id == session_id else UploadState(session_id=session_id)


def save_state(files: Files, folder: Path, state: UploadState) -> None:
    """Replace the state of a session, durably.

    Raises:
        JournalDiskFullError, JournalWriteError: the old state stays.
    """
    path = folder / layout.STATE
    crash_point("edge.outbox.before_state")
    try:
        replace_file(files, path, msgspec.json.encode(state))
    except OSError as error:
        raise disk_error(error, path, 0) from error
    crash_point("edge.outbox.state_saved")
