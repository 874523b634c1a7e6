"""The engines of an installation, chosen by options, loaded at first use.

**How the rest of Etude uses speech.** Numbers come from the pool (`speech.pool`), never from an
engine in one's own process: an engine may hang, crash or hold the lock of the interpreter.

    options = SpeechOptions(models=settings.models)
    with SpeechPool(options, processes=2) as pool:
        heard = pool.recognise(sound, language="en", expected_text=text)     # Future[Recognised]
        found = pool.align(sound, text, language="en")                # Future[Alignment | None]
        spoken = pool.synthesise("Well read!", language="en")             # Future[Speech]
        heard.result()                            # or: await asyncio.wrap_future(heard)

* `sound` is an `audio.Pcm` at any rate (`read_audio(path, 16_000)`, a decoded recording).
* `Recognised`: `text`, `no_speech_probability`, `tokens` and `expected_tokens` (each a `TokenScore`
  of text and probability; the expected text is scored in lower case without punctuation, from the
  same encoding), `engine`, `model`. Sound beyond 25 s: `expected_tokens` is None.
* `Alignment`: `words` of `phones`, each with `start_ms`, `duration_ms`, `score` (nats, summed over
  the frames of 10 ms: divide by `frames`); `word.index` counts the words of the text as written.
  None: the text was not found in the sound.
* `lane=Lane.LIVE` goes before `Lane.SWEEP` (the default). A full lane raises `SpeechBusyError` at
  once: a live turn is then left to the sweep; the sweep waits (`wait_s`) or comes back.
* The same request gives the same answer, to the bit, in any process, alone or under load. Only
  synthesis draws random numbers.
* A future fails with `SpeechWorkerError` (`reason`: `hung`, `crashed`, `out_of_memory`, `start`),
  `SpeechEngineError`, `SpeechServerError`, `SpeechLanguageError` (no engine for the language),
  `SpeechExtraMissingError`, `ModelMissingError`, `ModelChangedError` (no engine at all) or
  `SpeechTextError`. Each is an `EtudeError`; the first three may go better later, the others not.
"""

from pathlib import Path
from typing import Final

import msgspec

from etude.speech import sherpa
from etude.speech.align import SphinxAligner
from etude.speech.g2p import Pronouncer
from etude.speech.models import Models
from etude.speech.recognise import Recogniser
from etude.speech.recognise_http import HttpRecogniser
from etude.speech.recognise_sherpa import SherpaRecogniser
from etude.speech.recognise_whisper import WhisperRecogniser
from etude.speech.speech_server import ServerOptions
from etude.speech.synthesise import Synthesiser
from etude.speech.synthesise_http import HttpSynthesiser
from etude.speech.synthesise_piper import PiperSynthesiser
from etude.speech.synthesise_sherpa import SherpaSynthesiser
from etude.speech.voice_activity import EnergyActivity, SileroActivity, VoiceActivity

DEFAULT_RECOGNISER: Final = "whisper-tiny.en"
DEFAULT_VOICE: Final = "voice-joe-en-us"


class SpeechOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which engines.

    Attributes:
        models: `<data>/models`; None = only what ships.
        recogniser: the id of a model that recognises; its `format` says which engine it is for.
        recogniser_server: asked instead, if there is one.
        voice: the id of a voice; likewise.
        voice_server: asked instead, if there is one.
    """

    models: Path | None = None
    recogniser: str = DEFAULT_RECOGNISER
    recogniser_server: ServerOptions | None = None
    voice: str = DEFAULT_VOICE
    voice_server: ServerOptions | None = None


class Engines:
    """Each engine once, made when it is first asked for. One thread at a time.

    The error of one that cannot be made is raised at every call: `ModelMissingError`,
    `ModelChangedError`, `ModelUnknownError`, `SpeechExtraMissingError`, `SpeechEngineError`.
    """

    def __init__(self, options: SpeechOptions) -> None:
        """Read the lists of models; load none.

        Raises:
            ModelListInvalidError: a list is wrong.
        """
        self.options = options
        self.models = Models(options.models)
        self._pronouncer: Pronouncer | None = None
        self._recogniser: Recogniser | None = None
        self._aligner: SphinxAligner | None = None
        self._synthesiser: Synthesiser | None = None
        self._detector: VoiceActivity | None = None

    def recogniser(self) -> Recogniser:
        """Return what hears."""
        if self._recogniser is None:
            server = self.options.recogniser_server
            self._recogniser = self._own_recogniser() if server is None else HttpRecogniser(server)
        return self._recogniser

    def aligner(self) -> SphinxAligner:
        """Return what finds words and phones in a sound."""
        if self._aligner is None:
            self._aligner = SphinxAligner(self.models, self._words())
        return self._aligner

    def synthesiser(self) -> Synthesiser:
        """Return what speaks."""
        if self._synthesiser is None:
            server = self.options.voice_server
            self._synthesiser = (
                self._own_synthesiser() if server is None else HttpSynthesiser(server)
            )
        return self._synthesiser

    def voice_activity(self, *, learned: bool = True) -> VoiceActivity:
        """Return a new detector, one a stream: Silero's, or by energy alone."""
        return SileroActivity(self.models) if learned else EnergyActivity()

    def detector(self) -> VoiceActivity:
        """Return the detector for whole sounds, which are asked about one after the other."""
        if self._detector is None:
            self._detector = self.voice_activity()
        return self._detector

    def _own_recogniser(self) -> Recogniser:
        model_id = self.options.recogniser
        if self.models.card(model_id).format in sherpa.MAKERS:
            return SherpaRecogniser(self.models, model_id)
        return WhisperRecogniser(self.models, model_id)

    def _own_synthesiser(self) -> Synthesiser:
        model_id = self.options.voice
        if self.models.card(model_id).format in sherpa.MAKERS:
            return SherpaSynthesiser(self.models, model_id)
        return PiperSynthesiser(self.models, model_id, self._words())

    def _words(self) -> Pronouncer:
        if self._pronouncer is None:
            self._pronouncer = Pronouncer(self.models)
        return self._pronouncer
