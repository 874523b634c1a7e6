"""Reading what the server answers to an upload, strictly (`docs/sessions.md §Upload`)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec

from etude.edge.errors import AnswerInvalidError
from etude.edge.upload_state import Problem
from etude.net import Reply

NONE_VALID: Final = "NO_VALID_LINE"
"""The code with which a server says that every line of a body was bad."""

_RETRIED: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_Count = Annotated[int, msgspec.Meta(ge=0)]


class LineProblem(msgspec.Struct, frozen=True):
    """One line that the server refused; `line` counts from 1 in the body."""

    line: Annotated[int, msgspec.Meta(ge=1)]
    code: str
    message: str = ""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A `200`. The last four fields are additions to the protocol's own four."""

    status: Literal["accepted"]
    session_id: str
    events_received: _Count
    duplicates_skipped: _Count
    events_rejected: _Count | None = None
    errors: list[LineProblem] = []
    conflicts: list[str] = []
    watermark: int | None = None


class _ProblemDocument(msgspec.Struct, frozen=True):
    code: str = ""
    title: str = ""
    detail: str = ""
    errors: msgspec.Raw = msgspec.Raw(b"[]")


def read_accepted(reply: Reply, session_id: str, lines: int) -> Accepted:
    """Return the answer to a body of `lines` lines.

    Raises:
        AnswerInvalidError: it is not the protocol's, is about another session, or does not add up
            (a captive portal also answers 200).
    """
    try:
        accepted = msgspec.json.decode(reply.body, type=Accepted)
    except msgspec.MsgspecError as error:
        raise AnswerInvalidError(reason=str(error)) from error
    rejected = accepted.events_rejected
    if rejected is None:
        rejected = lines - accepted.events_received
        accepted = msgspec.structs.replace(accepted, events_rejected=rejected)
    if accepted.session_id != session_id:
        raise AnswerInvalidError(reason="another session_id")
    if accepted.events_received + rejected != lines or rejected < len(accepted.errors):
        raise AnswerInvalidError(reason=f"its counts do not add up to {lines} lines")
    if accepted.duplicates_skipped + len(accepted.conflicts) > accepted.events_received:
        raise AnswerInvalidError(reason="more duplicates than events")
    if any(error.line > lines for error in accepted.errors):
        raise AnswerInvalidError(reason="a line that was not sent")
    return accepted


def read_problem(reply: Reply) -> Problem:
    """Return what an answer that is no success says; any body will do."""
    document = _document(reply)
    return Problem(
        code=document.code or f"HTTP_{reply.status}",
        message=document.detail or document.title,
        http_status=reply.status,
    )


def refused_lines(reply: Reply) -> list[LineProblem]:
    """Return the lines that a problem document names, if it names any."""
    try:
        return msgspec.json.decode(_document(reply).errors, type=list[LineProblem])
    except msgspec.MsgspecError:
        return []


def is_retried(status: int) -> bool:
    """Whether an answer of this status is worth another try: 4xx is not, but for 408, 425, 429."""
    client_error = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return not client_error or status in _RETRIED


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` (RFC 9110 §10.2.3), given in seconds or as a date."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _document(reply: Reply) -> _ProblemDocument:
    try:
        return msgspec.json.decode(reply.body, type=_ProblemDocument)
    except msgspec.MsgspecError:
        return _ProblemDocument()
