"""Synthesis by a voice in Piper's format: embedded, no network, no espeak-ng, one thread.

A voice is one VITS network in ONNX and a JSON file with the numbers of its phonemes. It draws
random numbers; they are seeded when the voice is loaded, and so two calls may differ a little:
keep what was made, do not make it again to compare.
"""

import unicodedata
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from etude.speech.audio import from_floats
from etude.speech.errors import SpeechEngineError, SpeechLanguageError
from etude.speech.g2p import Pronouncer
from etude.speech.libraries import load_library, named_version
from etude.speech.models import Models
from etude.speech.recognise import EngineCard, base_language
from etude.speech.synthesise import Speech, levelled, require_rate

_BEGIN, _END, _GAP = "^", "$", "_"
_SEED: Final = 1


class _Audio(msgspec.Struct, frozen=True):
    sample_rate: int


class _Inference(msgspec.Struct, frozen=True):
    noise_scale: float = 0.667
    length_scale: float = 1.0
    noise_w: float = 0.8


class _Voice(msgspec.Struct, frozen=True):
    """What is used of a voice's JSON file."""

    audio: _Audio
    phoneme_id_map: dict[str, list[int]]
    inference: _Inference = _Inference()
    num_speakers: int = 1


class PiperSynthesiser:
    """Loads its voice when it is made (1 to 3 s). See `synthesise.Synthesiser`."""

    def __init__(self, models: Models, model_id: str, pronouncer: Pronouncer | None = None) -> None:
        """Verify and load; `pronouncer` = one that is loaded already.

        Raises:
            ModelUnknownError, ModelMissingError, ModelChangedError: the voice is not there.
            SpeechExtraMissingError: `etude[speech]` is not installed.
            SpeechEngineError: the library refuses the voice.
        """
        card = models.card(model_id)
        folder = models.require(model_id)
        (weights,) = (name for name in card.files if name.endswith(".onnx"))
        self._numpy = load_library("numpy")
        self._pronouncer = pronouncer or Pronouncer(models)
        self._voice = _read_voice((folder / f"{weights}.json").read_bytes())
        self._session = _session(str(folder / weights))
        self.card = EngineCard(
            engine=named_version("onnxruntime"),
            model=f"{card.id}/{card.version}",
            licence=card.licence,
            languages=card.languages,
            sample_rate=self._voice.audio.sample_rate,
            releases_gil=True,
            notice=card.notice,
        )

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        """See `synthesise.Synthesiser`."""
        if base_language(language) not in self.card.languages:
            known = ", ".join(self.card.languages)
            raise SpeechLanguageError(engine=self.card.engine, language=language, known=known)
        require_rate(rate)
        numbers = list(phoneme_numbers(self._pronouncer.ipa(text), self._voice.phoneme_id_map))
        samples = self._spoken(numbers, rate)
        sound = from_floats(samples, self._voice.audio.sample_rate)
        return Speech(
            sound=levelled(sound),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
            licence=self.card.licence,
            notice=self.card.notice,
        )

    def _spoken(self, numbers: list[int], rate: float) -> Any:  # noqa: ANN401 - see load_library
        np, how = self._numpy, self._voice.inference
        scales = [how.noise_scale, how.length_scale / rate, how.noise_w]
        try:
            (wave,) = self._session.run(
                None,
                {
                    "input": np.asarray([numbers], dtype=np.int64),
                    "input_lengths": np.asarray([len(numbers)], dtype=np.int64),
                    "scales": np.asarray(scales, dtype=np.float32),
                },
            )
        except Exception as error:  # onnxruntime's errors share no base but this
            raise _failed(error) from error
        return np.clip(wave.reshape(-1), -1.0, 1.0)


def phoneme_numbers(ipa: str, numbers: dict[str, list[int]]) -> Iterator[int]:
    """Return what the network is given: begin, each symbol with a gap behind it, end. Pure.

    A symbol that the voice does not know is left out.
    """
    known = (symbol for symbol in unicodedata.normalize("NFD", ipa) if symbol in numbers)
    yield from numbers[_BEGIN]
    yield from numbers[_GAP]
    for symbol in known:
        yield from numbers[symbol]
        yield from numbers[_GAP]
    yield from numbers[_END]


def _read_voice(data: bytes) -> _Voice:
    try:
        voice = msgspec.json.decode(data, type=_Voice)
    except msgspec.MsgspecError as error:
        raise _failed(error) from error
    missing = {_BEGIN, _END, _GAP} - voice.phoneme_id_map.keys()
    if missing or voice.num_speakers != 1:
        raise SpeechEngineError(engine="piper", reason="not a voice of one speaker with ^ _ $")
    return voice


def _session(path: str) -> Any:  # noqa: ANN401 - see load_library
    runtime = load_library("onnxruntime")
    options = runtime.SessionOptions()
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    runtime.set_seed(_SEED)
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # see `_spoken`
        raise _failed(error) from error


def _failed(error: Exception) -> SpeechEngineError:
    return SpeechEngineError(engine=named_version("onnxruntime"), reason=str(error)[:200])
