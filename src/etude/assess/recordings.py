"""The recording of a turn: which of a session's media it is, and its samples."""

import tempfile
from pathlib import Path
from typing import Final

from etude.speech.audio import Pcm, read_audio

SUFFIXES: Final = {
    "audio/ogg": ".ogg",
    "audio/opus": ".ogg",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/flac": ".flac",
}
"""What can be read, by content type."""


def decode_recording(data: bytes, content_type: str) -> Pcm:
    """Return a recording's samples.

    Raises:
        AudioUnreadableError, AudioEmptyError, AudioTooLongError: it holds none that can be used.
        SoundLibraryMissingError: this machine cannot read sound.
    """
    suffix = SUFFIXES.get(content_type, ".ogg")
    with tempfile.TemporaryDirectory(prefix="etude-assess-") as folder:
        path = Path(folder) / f"recording{suffix}"
        path.write_bytes(data)
        return read_audio(path)
