"""Recognition by sherpa-onnx: SenseVoice, Paraformer or Zipformer on this machine's disk."""

from typing import Final

from etude.speech import sherpa
from etude.speech.audio import Pcm, floats, resampled
from etude.speech.errors import SpeechLanguageError
from etude.speech.libraries import named_version
from etude.speech.models import Models
from etude.speech.recognise import EngineCard, Recognised, base_language
from etude.speech.recognise_whisper import cut_at_pauses

SAMPLE_RATE: Final = 16_000
WINDOW_S: Final = 25
_SPECIAL: Final = ("<", ">")


class SherpaRecogniser:
    """Loads its model when it is made. See `recognise.Recogniser`. It scores no text."""

    def __init__(self, models: Models, model_id: str) -> None:
        """Verify and load; raises what `sherpa.load` raises."""
        model = models.card(model_id)
        self._engine = sherpa.load(models, model_id)
        self.card = EngineCard(
            engine=named_version(sherpa.DISTRIBUTION),
            model=f"{model.id}/{model.version}",
            licence=model.licence,
            languages=model.languages,
            sample_rate=SAMPLE_RATE,
            releases_gil=True,
            notice=model.notice,
        )

    def recognise(
        self,
        sound: Pcm,
        *,
        language: str,
        expected_text: str | None = None,  # noqa: ARG002 - nothing of it is scored
    ) -> Recognised:
        """See `recognise.Recogniser`."""
        known = self.card.languages
        if base_language(language) not in known and "*" not in known:
            raise SpeechLanguageError(
                engine=self.card.engine, language=language, known=", ".join(known)
            )
        pieces = cut_at_pauses(floats(resampled(sound, SAMPLE_RATE)), WINDOW_S)
        heard = (self._heard(piece) for piece in pieces)
        return Recognised(
            text=" ".join(text for text in heard if text),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
        )

    def _heard(self, samples: object) -> str:
        stream = self._engine.create_stream()
        try:
            stream.accept_waveform(SAMPLE_RATE, samples)
            self._engine.decode_stream(stream)
        except (RuntimeError, ValueError) as error:
            raise sherpa.failed(str(error)) from error
        text = str(stream.result.text).strip()
        # Of silence some models make their sign for nothing.
        return "" if text.startswith(_SPECIAL[0]) and text.endswith(_SPECIAL[1]) else text
