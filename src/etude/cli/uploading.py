"""The work behind `etude events upload`."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.cli import exits, terminal
from etude.cli.event_file import read_lines
from etude.clock import SystemClock
from etude.edge import layout
from etude.edge.errors import ServerAddressError, TokenUnusableError, disk_error
from etude.edge.outbox import Outbox
from etude.edge.upload_state import Refusal, UploadState, UploadStatus
from etude.events.errors import LineError
from etude.events.ndjson import scan_line
from etude.i18n import text
from etude.net import FaultKind, HttpClient, NetworkFault

_PROGRESS_LINES: Final = 20_000
_UNFINISHED: Final = frozenset({UploadStatus.RETRYING, UploadStatus.PENDING})
_AT_REST: Final = frozenset({UploadStatus.REFUSED, UploadStatus.ERASED})


def run(source: Path, *, server: str, token: str, once: bool, as_json: bool) -> int:
    """Upload `source`; say what became of it; return the exit code."""
    rejected: list[LineError] = []
    with _client(server, token) as client, _journals(source, rejected) as (root, only):
        states = _upload(root, only, client, once=once)
    for error in rejected:
        terminal.print_note(terminal.explain(error))
    if as_json:
        terminal.print_json(_report(states, rejected))
    else:
        _print(states, source)
    return _exit_code(states, rejected)


def _client(server: str, token: str) -> HttpClient:
    try:
        return HttpClient(server, bearer=token)
    except NetworkFault as fault:
        if fault.kind is FaultKind.TOKEN:
            raise TokenUnusableError(reason=fault.reason) from fault
        raise ServerAddressError(reason=fault.reason) from fault


@contextmanager
def _journals(source: Path, rejected: list[LineError]) -> Iterator[tuple[Path, str | None]]:
    """Yield a root of journals and the folder to keep to; a file becomes a root for the while."""
    if source.is_dir():
        is_session = any(source.glob("events.jsonl*"))
        yield (source.parent, source.name) if is_session else (source, None)
        return
    with tempfile.TemporaryDirectory(prefix="etude-upload-") as folder:
        _spool(source, Path(folder), rejected)
        yield Path(folder), None


def _spool(file: Path, root: Path, rejected: list[LineError]) -> None:
    """Sort the lines of a file into one journal a session; nothing of it outlives the command."""
    for session_id, lines in groupby(_by_session(file, rejected), key=lambda pair: pair[0]):
        part = root / layout.folder_name(session_id) / layout.part_name(1)
        try:
            part.parent.mkdir(exist_ok=True)
            with part.open("ab") as content:
                content.writelines(line + b"\n" for _, line in lines)
        except OSError as error:
            raise disk_error(error, part, 0) from error


def _by_session(file: Path, rejected: list[LineError]) -> Iterator[tuple[str, bytes]]:
    for number, line in read_lines(file):
        try:
            if isinstance(line, LineError):
                raise line
            yield scan_line(line, number, None).session_id, line
        except LineError as error:
            rejected.append(error)


def _upload(root: Path, only: str | None, client: HttpClient, *, once: bool) -> list[UploadState]:
    """Try until everything is at rest: ten tries a session at most, by the outbox's schedule."""
    shown: dict[str, int] = {}
    with Outbox(root, client, clock=SystemClock(), only=only) as outbox:
        outbox.release()
        outbox.trigger()
        while True:
            tried = outbox.run_due(lambda state: _show_progress(state, shown))
            states = outbox.states()
            wait_s = outbox.next_wait_s()
            if once or not any(one.status is UploadStatus.RETRYING for one in states):
                return states
            for state in tried:
                _show_retry(state, wait_s)
            threading.Event().wait(wait_s)


def _show_progress(state: UploadState, shown: dict[str, int]) -> None:
    lines = state.acknowledged.line
    if lines - shown.get(state.session_id, 0) >= _PROGRESS_LINES:
        shown[state.session_id] = lines
        terminal.say("edge.upload.progress", session_id=state.session_id, lines=lines)


def _show_retry(state: UploadState, wait_s: float) -> None:
    if state.status is UploadStatus.RETRYING and state.problem:
        terminal.say(
            "edge.upload.retry",
            session_id=state.session_id,
            code=state.problem.code,
            message=state.problem.message,
            seconds=round(wait_s, 1),
        )


def _print(states: list[UploadState], source: Path) -> None:
    if not states:
        terminal.say("edge.upload.nothing", file=source)
    for state in states:
        status = text(f"edge.upload.status.{state.status.value}", terminal.locale())
        terminal.print_text(
            text(
                "edge.upload.result",
                terminal.locale(),
                session_id=state.session_id,
                status=status,
                received=state.received,
                duplicates=state.duplicates_skipped,
                refused=state.refused_count,
            )
        )
        _say_what_is_wrong(state)


def _say_what_is_wrong(state: UploadState) -> None:
    if state.problem:
        terminal.say(
            "edge.upload.problem",
            session_id=state.session_id,
            code=state.problem.code,
            message=state.problem.message,
        )
    for refusal in state.refused:
        _say_refusal(state.session_id, refusal)
    if state.refused_count > len(state.refused):
        more = state.refused_count - len(state.refused)
        terminal.say("edge.upload.more_refused", session_id=state.session_id, count=more)
    for event_id in state.conflicts:
        terminal.say("edge.upload.conflict", session_id=state.session_id, event_id=event_id)


def _say_refusal(session_id: str, refusal: Refusal) -> None:
    key = "edge.upload.refused_media" if refusal.sha256 else "edge.upload.refused"
    terminal.say(key, session_id=session_id, **msgspec.to_builtins(refusal))


def _report(states: list[UploadState], rejected: list[LineError]) -> dict[str, Any]:
    return {
        "sessions": states,
        "events_received": sum(state.received for state in states),
        "duplicates_skipped": sum(state.duplicates_skipped for state in states),
        "events_rejected": sum(state.refused_count for state in states) + len(rejected),
        "rejected_lines": [
            {"line": error.line, "code": error.code, "message": terminal.explain(error)}
            for error in rejected
        ],
    }


def _exit_code(states: list[UploadState], rejected: list[LineError]) -> int:
    if any(state.status in _UNFINISHED for state in states):
        return exits.UNAVAILABLE
    wrong = any(
        state.status in _AT_REST or state.refused_count or state.conflicts for state in states
    )
    return exits.REFUSED if wrong or rejected else exits.OK
