"""Which voice has spoken a clip: a note inside the file, so that it goes wherever the file goes."""

from pathlib import Path
from typing import Final

import msgspec

from etude.speech.mp3 import read_comment

_MARK: Final = "etude-voice "


class SpokenBy(msgspec.Struct, frozen=True, kw_only=True):
    """What made a clip; the fields are those of `speech.synthesise.Speech`."""

    engine: str
    model: str
    language: str
    licence: str
    notice: str = ""


def note_of(by: SpokenBy) -> str:
    """Return the comment that is written into a clip."""
    return _MARK + msgspec.json.encode(by).decode()


def spoken_by(clip: Path) -> SpokenBy | None:
    """Return which voice has spoken a clip, None = it is a recording as far as the file says."""
    comment = read_comment(clip)
    if not comment.startswith(_MARK):
        return None
    try:
        return msgspec.json.decode(comment.removeprefix(_MARK), type=SpokenBy)
    except (msgspec.MsgspecError, UnicodeError):
        return None
