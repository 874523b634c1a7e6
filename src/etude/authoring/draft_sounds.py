"""The sounds of a classroom that is being made: recordings of the material, else a voice's."""

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from etude.authoring.material import Fact
from etude.authoring.outline.lesson import Sound
from etude.authoring.records import SoundFile
from etude.authoring.stopping import StoppedError
from etude.classroom.library import Draft

_NOT_OF_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
Recording = Callable[[str], tuple[Path, int]]
"""Returns the file of a recording by its SHA-256, and its length in milliseconds."""
Speak = Callable[[str], tuple[bytes, int]]
"""Returns words as the bytes of an MP3 file, and its length in milliseconds."""


class DraftSounds:
    """Puts sounds into a draft."""

    def __init__(
        self,
        recording: Recording,
        recordings: Sequence[SoundFile],
        draft: Draft,
        speak: Speak | None,
        stop: threading.Event,
    ) -> None:
        """`speak` None: there is no voice. Once `stop` is set, nothing more is put."""
        self._recording = recording
        self._draft = draft
        self._voice = speak
        self._stop = stop
        self._recordings = {one.name: one.sha256 for one in recordings}
        self._spoken: dict[str, Sound] = {}

    def speech(self, words: str) -> str | None:
        """Return the reference of spoken words, if there is a voice."""
        sound = self._speak(words)
        return None if sound is None else sound.reference

    def clip(self, fact: Fact) -> Sound | None:
        """Return a sentence's recording, else its spoken form, else None."""
        if fact.sound is None:
            return self._speak(fact.text)
        path, length_ms = self._recording(self._recordings[fact.sound])
        stem, _, suffix = fact.sound.rpartition(".")
        name = f"audio/clip-{_NOT_OF_A_NAME.sub('-', stem)[:80]}.{suffix.lower()}"
        self._put(name, path.read_bytes())
        return Sound(reference=name, duration_ms=length_ms)

    def _speak(self, words: str) -> Sound | None:
        if self._voice is None:
            return None
        if words not in self._spoken:
            self._raise_if_stopped()
            data, length_ms = self._voice(words)
            name = f"audio/say-{len(self._spoken) + 1:03d}.mp3"
            self._put(name, data)
            self._spoken[words] = Sound(reference=name, duration_ms=length_ms)
        return self._spoken[words]

    def _put(self, reference: str, data: bytes) -> None:
        self._raise_if_stopped()
        self._draft.put(reference, [data])

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise StoppedError
