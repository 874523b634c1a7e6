"""The settings of an installation as what `etude.speech` takes."""

from etude.settings import Settings
from etude.speech.engines import SpeechOptions
from etude.speech.speech_server import ServerOptions


def speech_options(settings: Settings) -> SpeechOptions:
    """Return which engines the settings choose."""
    key = "" if settings.speech_key is None else settings.speech_key.get_secret_value()
    recogniser = settings.speech_recogniser_url
    voice = settings.speech_voice_url
    model, _, speaker = settings.speech_voice.partition("/")
    return SpeechOptions(
        models=settings.models,
        recogniser=settings.speech_recogniser,
        recogniser_server=None
        if recogniser is None
        else ServerOptions(url=recogniser, model=settings.speech_recogniser, api_key=key),
        voice=settings.speech_voice,
        voice_server=None
        if voice is None
        else ServerOptions(url=voice, model=model, voice=speaker, api_key=key),
    )
