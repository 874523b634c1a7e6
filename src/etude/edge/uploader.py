"""Sending one session: events first, then recordings.

The rules are those of `docs/sessions.md §Upload` and `docs/rules.md 5`. After each answer the state
is saved, so that a session that was half sent goes on from what the server acknowledged. Whatever
is sent twice, because this process was killed between answer and state, the server counts as
duplicate.
"""

import gzip
import re
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

from etude.clock import Clock
from etude.edge.answer import (
    NONE_VALID,
    is_retried,
    read_accepted,
    read_problem,
    refused_lines,
    retry_after_s,
)
from etude.edge.batch import MAX_LINES, Batch, next_batch
from etude.edge.errors import JournalUnreadableError
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder
from etude.edge.upload_state import Problem, Refusal, UploadState
from etude.files import crash_point
from etude.net import HttpClient, NetworkFault, Reply

_WORTH_PACKING_BYTES: Final = 1024
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")  # what a header can carry
_SUCCESS: Final = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT})
_TOO_MUCH: Final = frozenset({HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})


class TryLaterError(Exception):
    """The try failed; another one is worth it."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        """Keep what happened, and when the server wants to be asked again."""
        super().__init__(problem.code)
        self.problem = problem
        self.retry_after_s = retry_after_s


class SessionRefusedError(Exception):
    """The server will not have the session; `erased` if it never will."""

    def __init__(self, problem: Problem, *, erased: bool) -> None:
        """Keep what the server said."""
        super().__init__(problem.code)
        self.problem = problem
        self.erased = erased


class Uploader:
    """One try to send a session.

    Args:
        client: the server.
        folder: the session's journal.
        state: where the upload stands.
        save: called with the new state after each acknowledgement, to make it durable.
        clock: for `Retry-After` dates.

    Attributes:
        state: the state as it was saved last.
    """

    def __init__(
        self,
        client: HttpClient,
        folder: JournalFolder,
        state: UploadState,
        *,
        save: Callable[[UploadState], None],
        clock: Clock,
    ) -> None:
        """Send nothing yet."""
        self.state = state
        self._client = client
        self._folder = folder
        self._save = save
        self._clock = clock
        self._lines_at_once = MAX_LINES
        self._device_id: str | None = None
        self._path = f"/api/v1/sessions/{quote(state.session_id, safe='')}"

    def run(self) -> None:
        """Send everything that is unsent.

        Raises:
            TryLaterError, SessionRefusedError: it stopped; `state` holds what was acknowledged.
            JournalUnreadableError, JournalWaitingError: the disk failed.
        """
        while batch := next_batch(
            self._folder, self.state.acknowledged, max_lines=self._lines_at_once
        ):
            self._send_batch(batch)
        settled = self.state.settled_media()
        for sha256, path, content_type in recordings(self._folder.path):
            if sha256 not in settled:
                reply = self._request("PUT", f"/media/{sha256}", path, content_type)
                self._take_recording(sha256, reply)

    def _send_batch(self, batch: Batch) -> None:
        if not batch.lines:
            self._acknowledge(batch, [], self.state)
            return
        reply = self._request("POST", "/events", batch.body(), "application/x-ndjson")
        crash_point("edge.outbox.answered")
        if reply.status == HTTPStatus.OK:
            self._take_accepted(batch, reply)
        elif reply.status in _TOO_MUCH:
            self._take_refused(batch, reply)
        else:
            raise self._failure(reply)

    def _take_accepted(self, batch: Batch, reply: Reply) -> None:
        accepted = read_accepted(reply, self.state.session_id, len(batch.lines))
        named = {error.line: error for error in accepted.errors}
        if len(named) < (accepted.events_rejected or 0) and named:
            # The server names its first refusals only: the lines behind the last one named are
            # sent again, so that each refused line is known by its place.
            batch = batch.up_to(max(named))
        refused = [batch.refusal(line, one.code, one.message) for line, one in named.items()]
        unnamed = 0 if named else accepted.events_rejected or 0
        conflicts = [one for one in accepted.conflicts if one not in self.state.conflicts]
        state = self.state.but(
            received=self.state.received + accepted.events_received,
            duplicates_skipped=self.state.duplicates_skipped + accepted.duplicates_skipped,
            refused_count=self.state.refused_count + unnamed,
            conflicts=[*self.state.conflicts, *conflicts],
            watermark=accepted.watermark,
            acknowledged_event=batch.last_event(frozenset(named)) or self.state.acknowledged_event,
        )
        self._acknowledge(batch, refused, state)

    def _take_refused(self, batch: Batch, reply: Reply) -> None:
        """One bad line must not keep its neighbours: find it, and keep it aside alone."""
        problem = read_problem(reply)
        all_bad = problem.code == NONE_VALID and reply.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        if len(batch.lines) > 1 and not all_bad:
            self._lines_at_once = len(batch.lines) // 2
            return
        said = {one.line: one for one in refused_lines(reply)}
        refused = [
            batch.refusal(
                number,
                said[number].code if number in said else problem.code,
                said[number].message if number in said else problem.message,
            )
            for number in range(1, len(batch.lines) + 1)
        ]
        self._acknowledge(batch, refused, self.state)

    def _acknowledge(self, batch: Batch, refused: list[Refusal], state: UploadState) -> None:
        self._lines_at_once = min(MAX_LINES, 2 * self._lines_at_once)
        settled = [*batch.too_long, *refused]
        self._keep(state.with_refusals(settled).but(acknowledged=batch.end))

    def _take_recording(self, sha256: str, reply: Reply) -> None:
        if reply.status in _SUCCESS:
            self._keep(self.state.but(media=[*self.state.media, sha256]))
            return
        failure = self._failure(reply)
        if isinstance(failure, TryLaterError) or failure.erased or _about_the_sender(reply.status):
            raise failure
        refusal = Refusal(code=failure.problem.code, message=failure.problem.message, sha256=sha256)
        self._keep(self.state.with_refusals([refusal]))

    def _keep(self, state: UploadState) -> None:
        self._save(state)
        self.state = state

    def _request(self, method: str, path: str, body: bytes | Path, content_type: str) -> Reply:
        headers = {"Content-Type": content_type, **self._on_behalf()}
        if isinstance(body, bytes) and len(body) > _WORTH_PACKING_BYTES:
            body = gzip.compress(body, compresslevel=6, mtime=0)
            headers["Content-Encoding"] = "gzip"
        crash_point("edge.outbox.sending")
        try:
            return self._client.send(method, self._path + path, body, headers)
        except NetworkFault as fault:
            code = f"NETWORK_{fault.kind.upper()}"
            raise TryLaterError(Problem(code=code, message=fault.reason)) from fault
        except OSError as error:
            raise JournalUnreadableError(path=str(body), reason=str(error)) from error

    def _on_behalf(self) -> dict[str, str]:
        """Name the session's device: a service's token uploads for it, others take no notice."""
        if self._device_id is None:
            named = self._folder.device_id() or ""
            self._device_id = named if _PRINTABLE.fullmatch(named) else ""
        return {"Etude-Device": self._device_id} if self._device_id else {}

    def _failure(self, reply: Reply) -> TryLaterError | SessionRefusedError:
        problem = read_problem(reply)
        if is_retried(reply.status):
            return TryLaterError(problem, retry_after_s(reply.headers, self._clock.now()))
        return SessionRefusedError(problem, erased=reply.status == HTTPStatus.GONE)


def _about_the_sender(status: int) -> bool:
    return status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
