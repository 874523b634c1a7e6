"""A part of something that is sent: which one is asked for (RFC 9110 §14)."""

import re
from typing import Final

from etude.courseware.errors import RangeUnsatisfiableError
from etude.web.services import HttpRequest

_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})", re.ASCII)


def asked_part(request: HttpRequest, etag: str, size: int) -> tuple[int, int] | None:
    """Return which bytes are asked for, first and behind the last; None = all of them.

    Several ranges, or a form that is not known, count as none (RFC 9110 §14.2).

    Raises:
        RangeUnsatisfiableError: 416, there are no such bytes.
    """
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    if request.headers.get("if-range", etag) != etag:
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= size or start >= end:
        raise RangeUnsatisfiableError(size=size)
    return start, end
