"""MP3 files that say in a comment where they come from: what a card's player plays."""

import io
from pathlib import Path
from typing import Final

from etude.speech.audio import Pcm, floats, sound_library

_LONGEST_COMMENT: Final = 4_000


def encode_mp3(sound: Pcm, comment: str) -> bytes:
    """Return a sound of 8 to 48 kHz as MP3, with a comment in its ID3 tag. The same each time.

    Raises:
        SoundLibraryMissingError: libsndfile is not there.
    """
    written = io.BytesIO()
    with sound_library("soundfile").SoundFile(
        written,
        "w",
        samplerate=sound.sample_rate,
        channels=1,
        format="MP3",
        subtype="MPEG_LAYER_III",
    ) as file:
        file.comment = comment
        file.write(floats(sound))
    return written.getvalue()


def read_comment(path: Path) -> str:
    """Return the comment of a sound file; empty = none, or it cannot be read.

    Raises:
        SoundLibraryMissingError: libsndfile is not there.
    """
    library = sound_library("soundfile")
    try:
        with library.SoundFile(path) as file:
            return str(file.comment or "")[:_LONGEST_COMMENT]
    except (library.SoundFileError, OSError):
        return ""
