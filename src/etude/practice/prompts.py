"""The few sentences that a device speaks by itself, as short clips of the repository's own making.

Made by `tools/sounds.py`: two tones and the espeak-ng voice, a machine that sounds like one
(`docs/rules.md 48`). The words are those of the catalogues, `prompt.<name>`.
"""

from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import Final

from etude.i18n import DEFAULT_LOCALE, LOCALES, text
from etude.practice.records import EncodedPrompt, Prompt
from etude.speech.clip_cache import ClipCache

SOUNDS: Final = "sounds"
SUFFIX: Final = ".ogg"


class Prompts:
    """Every prompt in every language, in memory. Call it with a prompt and a locale."""

    def __init__(self, prompts: Mapping[tuple[Prompt, str], EncodedPrompt]) -> None:
        """Use `load_prompts`."""
        self._prompts = prompts

    def __call__(self, prompt: Prompt, locale: str) -> EncodedPrompt | None:
        """Return a prompt in `locale`, else in English; None if there is no such clip. No disk."""
        return self._prompts.get((prompt, locale)) or self._prompts.get((prompt, DEFAULT_LOCALE))


def load_prompts(clips: ClipCache) -> Prompts:
    """Load the shipped prompts; half a second the first time, when they are encoded.

    Raises:
        AudioUnknownError, AudioUnreadableError: the installation is damaged.
        SoundLibraryMissingError: libsndfile or libopus is not there.
    """
    return Prompts(
        {(prompt, locale): _load(prompt, locale, clips) for prompt in Prompt for locale in LOCALES}
    )


def sound_name(prompt: Prompt, locale: str) -> str:
    """Return the name of a prompt's file in the package."""
    return f"{prompt}.{locale}{SUFFIX}"


def _load(prompt: Prompt, locale: str, clips: ClipCache) -> EncodedPrompt:
    shipped = files("etude.practice").joinpath(SOUNDS, sound_name(prompt, locale))
    with as_file(shipped) as path:
        clip = clips.encode(path)
    return EncodedPrompt(prompt=prompt, text=text(f"prompt.{prompt}", locale), clip=clip)
