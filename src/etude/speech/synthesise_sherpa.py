"""Synthesis by sherpa-onnx: a VITS voice with a lexicon, Chinese ones among them, on disk.

It draws random numbers, as `synthesise_piper` does: keep what was made.
"""

from etude.speech import sherpa
from etude.speech.audio import from_floats
from etude.speech.errors import SpeechLanguageError, SpeechTextError
from etude.speech.libraries import load_library, named_version
from etude.speech.models import Models
from etude.speech.recognise import EngineCard, base_language
from etude.speech.synthesise import Speech, levelled, require_rate


class SherpaSynthesiser:
    """Loads its voice when it is made. See `synthesise.Synthesiser`. Its first speaker speaks."""

    def __init__(self, models: Models, model_id: str) -> None:
        """Verify and load; raises what `sherpa.load` raises."""
        model = models.card(model_id)
        self._numpy = load_library("numpy")
        self._voice = sherpa.load(models, model_id)
        self.card = EngineCard(
            engine=named_version(sherpa.DISTRIBUTION),
            model=f"{model.id}/{model.version}",
            licence=model.licence,
            languages=model.languages,
            sample_rate=int(self._voice.sample_rate),
            releases_gil=True,
            notice=model.notice,
        )

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        """See `synthesise.Synthesiser`."""
        known = self.card.languages
        if base_language(language) not in known and "*" not in known:
            raise SpeechLanguageError(
                engine=self.card.engine, language=language, known=", ".join(known)
            )
        require_rate(rate)
        if not any(character.isalnum() for character in text):
            raise SpeechTextError(reason="there is no word in it")
        try:
            spoken = self._voice.generate(text, sid=0, speed=rate)
        except (RuntimeError, ValueError) as error:
            raise sherpa.failed(str(error)) from error
        samples = self._numpy.clip(self._numpy.asarray(spoken.samples, dtype="float32"), -1.0, 1.0)
        if not len(samples):
            raise SpeechTextError(reason="the voice knows none of its characters")
        return Speech(
            sound=levelled(from_floats(samples, int(spoken.sample_rate))),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
            licence=self.card.licence,
            notice=self.card.notice,
        )
