"""Voices for authors: one that speaks, and the promise that another process has one."""

from collections.abc import Callable, Collection
from typing import Final

from etude.authoring.errors import CourseVoiceMissingError
from etude.authoring.material import Language
from etude.speech.mp3 import encode_mp3
from etude.speech.recognise import base_language
from etude.speech.synthesise import Speech

_RATE: Final = 0.9
"""A little slower than the voice's own pace: this is for learners."""


class SpokenVoice:
    """Speaks by `etude.speech`."""

    def __init__(
        self, speak: Callable[[str, str, float], Speech], languages: Collection[str] | None
    ) -> None:
        """`speak` takes text, language and pace; `languages` None: it is not known which."""
        self._speak = speak
        self._languages = languages

    def knows(self, language: Language) -> bool:
        """Whether it can speak a language."""
        return self._languages is None or base_language(language) in self._languages

    def speak(self, text: str, language: Language) -> tuple[bytes, int]:
        """Return a text as the bytes of an MP3 file and its length in milliseconds."""
        spoken = self._speak(text, language, _RATE)
        note = f"{spoken.engine}; {spoken.model}; {spoken.licence} {spoken.notice}".strip()
        return encode_mp3(spoken.sound, note), spoken.sound.duration_ms


class PromisedVoice:
    """Stands where nothing is spoken, for the voice that the worker has."""

    def knows(self, language: Language) -> bool:
        """Believe it: the worker refuses a course that it cannot speak."""
        del language
        return True

    def speak(self, text: str, language: Language) -> tuple[bytes, int]:
        """Refuse: this process makes no modules."""
        del text
        raise CourseVoiceMissingError(language=language)
