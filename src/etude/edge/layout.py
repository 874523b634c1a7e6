"""Where things stand in a journal's folder (`docs/edge.md §The journal`, `docs/rules.md 8, 9, 45`).

In `<root>/<session>/`:

* `events.jsonl`: what the session said, sealed at its end
* `events.seal.json`: lines, bytes and sha256 of the sealed file
* `events.2.jsonl`, `events.2.seal.json`: contests made after the seal, sealed too
* `events.torn`: half-written tails that were cut off
* `media/<sha256>.wav`: recordings that events name
* `state.json`: what the cloud has acknowledged
"""

import hashlib
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

from etude.edge.errors import SessionIdUnusableError
from etude.events.fields import is_id

TORN: Final = "events.torn"
STATE: Final = "state.json"
MEDIA: Final = "media"
COMPRESSED: Final = ".gz"

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_HALF: Final = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no line can say it
_LONGEST_NAME: Final = 200  # file systems end at 255 bytes; temporary names need some of them


def folder_name(session_id: str) -> str:
    """Return the folder name of a session.

    The id itself where it is plain, else percent-encoded, else (too long for a file system) the
    sha256 of its UTF-8 form.

    Raises:
        SessionIdUnusableError: it breaks the protocol's rule for ids, or is no text in UTF-8.
    """
    if not is_id(session_id) or _HALF.search(session_id):
        raise SessionIdUnusableError(session_id=session_id)
    if _PLAIN.fullmatch(session_id):
        return session_id
    encoded = quote(session_id, safe="")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    return hashlib.sha256(session_id.encode()).hexdigest()


def part_name(number: int) -> str:
    """Return the name of part `number` of a journal: 1 is the session, 2… are late contests."""
    return "events.jsonl" if number == 1 else f"events.{number}.jsonl"


def seal_name(number: int) -> str:
    """Return the name of the seal of part `number`."""
    return part_name(number).replace(".jsonl", ".seal.json")


def seal_of(part: Path) -> Path:
    """Return the path of the seal that stands beside `part`."""
    return part.with_name(part.name.replace(".jsonl", ".seal.json"))
