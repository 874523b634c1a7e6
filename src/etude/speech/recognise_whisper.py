"""Recognition by Whisper in CTranslate2: embedded, no network, one thread.

The settings are measured (`docs/speech.md`): the encoder sees the utterance and five seconds of
silence instead of thirty, which is a quarter of the work, and fewer seconds make it invent words;
greedy, with a bound on the length and a slight penalty on repetition, which end its loops. The
sound is encoded once for hearing it and for scoring the expected text.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from etude.speech.audio import Pcm, floats, resampled
from etude.speech.errors import SpeechEngineError, SpeechLanguageError
from etude.speech.libraries import load_library, named_version
from etude.speech.log_mel import FRAMES_A_SECOND, SAMPLE_RATE, log_mel
from etude.speech.models import ModelCard, Models
from etude.speech.recognise import Encoding, EngineCard, Recognised, TokenScore, base_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_S: Final = 25
"""The longest piece that is heard at once; with the silence behind it, Whisper's thirty seconds."""

_PAD_S: Final = 5
_CUT_SEARCH_S: Final = 5
_CUT_FRAME: Final = SAMPLE_RATE // 50
_REPETITION_PENALTY: Final = 1.1
_TOKENS_A_SECOND: Final = 8
_MOST_TOKENS: Final = 200
_SPARE_TOKENS: Final = 8
_CAP: Final = 1.5
_ENCODER_FRAME_MS: Final = 20
_NOTHING_S: Final = 0.05
_WORD: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*'?")


class _Special(msgspec.Struct, frozen=True):
    """The tokens that are no text. All that is at or above `end` is none."""

    end: int
    start: int
    no_timestamps: int
    task: tuple[int, ...]


class WhisperRecogniser:
    """Loads its model when it is made (1 to 2 s). See `recognise.Recogniser`."""

    def __init__(self, models: Models, model_id: str) -> None:
        """Verify and load.

        Raises:
            ModelUnknownError, ModelMissingError, ModelChangedError: the model is not there.
            SpeechExtraMissingError: `etude[speech]` is not installed.
            SpeechEngineError: the library refuses the model.
        """
        self._model_card = models.card(model_id)
        folder = models.require(model_id)
        self._ct2 = load_library("ctranslate2")
        self._numpy = load_library("numpy")
        try:
            self._tokens = load_library("tokenizers").Tokenizer.from_file(
                str(folder / "tokenizer.json")
            )
            self._whisper = self._ct2.models.Whisper(
                str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=1
            )
        except Exception as error:  # the libraries raise bare RuntimeError and Exception
            raise _failed(error) from error
        self._multilingual = bool(self._whisper.is_multilingual)
        self.card = _card(self._model_card)

    def recognise(
        self, sound: Pcm, *, language: str, expected_text: str | None = None
    ) -> Recognised:
        """See `recognise.Recogniser`."""
        special = self._special(base_language(language))
        samples = floats(resampled(sound, SAMPLE_RATE))
        pieces = cut_at_pauses(samples, WINDOW_S)
        expected = self._encoded(expected_text or "") if len(pieces) == 1 else None
        try:
            heard = [self._piece(piece, special, expected) for piece in pieces]
        except RuntimeError as error:  # what CTranslate2 raises, whatever it is
            raise _failed(error) from error
        return Recognised(
            text=" ".join(one.text for one in heard if one.text),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
            no_speech_probability=min((one.no_speech for one in heard), default=1.0),
            tokens=tuple(token for one in heard for token in one.tokens),
            expected_tokens=heard[0].expected if heard and expected is not None else None,
            encoding=heard[0].encoding if heard and expected is not None else None,
        )

    def _piece(
        self, samples: "NDArray[np.float32]", special: _Special, expected: Sequence[int] | None
    ) -> "_Heard":
        mel = self._numpy.pad(log_mel(samples), ((0, 0), (0, _PAD_S * FRAMES_A_SECOND)))
        mel = mel[:, : mel.shape[1] // 2 * 2]  # the encoder halves the frames
        view = self._ct2.StorageView.from_array(self._numpy.ascontiguousarray(mel[None]))
        encoded = self._whisper.encode(view)
        seconds = len(samples) / SAMPLE_RATE
        result = self._whisper.generate(
            encoded,
            [[special.start, *special.task, special.no_timestamps]],
            beam_size=1,
            max_length=_longest(seconds, expected),
            repetition_penalty=_REPETITION_PENALTY,
            return_no_speech_prob=True,
        )[0]
        spoken = [token for token in result.sequences_ids[0] if token < special.end]
        frames = max(2, round(seconds * FRAMES_A_SECOND))
        return _Heard(
            text=str(self._tokens.decode(spoken)).strip(),
            no_speech=float(result.no_speech_prob),
            tokens=self._scores(encoded, special, spoken, frames),
            expected=self._scores(encoded, special, expected or (), frames),
            encoding=None if expected is None else self._encoding(encoded, seconds),
        )

    def _encoding(self, encoded: Any, seconds: float) -> Encoding:  # noqa: ANN401 - no types
        """Return the encoder's frames that are about sound."""
        frames = round(seconds * 1000) // _ENCODER_FRAME_MS + 1
        values = self._numpy.asarray(encoded)[0, :frames].astype("<f2")
        return Encoding(
            frame_ms=_ENCODER_FRAME_MS, width=int(values.shape[1]), values=values.tobytes()
        )

    def _scores(
        self,
        encoded: Any,  # noqa: ANN401 - the library has no types
        special: _Special,
        tokens: Sequence[int],
        frames: int,
    ) -> tuple[TokenScore, ...]:
        """Return how probable each token is after those before it."""
        if not tokens:
            return ()
        aligned = self._whisper.align(
            encoded, [special.start, *special.task], [list(tokens)], [frames]
        )[0]
        return tuple(
            TokenScore(str(self._tokens.decode([token])), float(probability))
            for token, probability in zip(tokens, aligned.text_token_probs, strict=False)
        )

    def _encoded(self, text: str) -> list[int] | None:
        """Return the tokens of a text; None = there is no word in it."""
        plain = plain_text(text)
        if not plain:
            return None
        # Whisper writes a space before a word, where the script has spaces.
        spaced = f" {plain}" if plain[:1].isascii() else plain
        found = self._tokens.encode(spaced, add_special_tokens=False).ids
        return list(found)[:_MOST_TOKENS]

    def _special(self, language: str) -> _Special:
        known = self._model_card.languages
        token = self._id(f"<|{language}|>")
        if (language not in known and "*" not in known) or token is None:
            raise SpeechLanguageError(
                engine=self.card.engine, language=language, known=", ".join(known)
            )
        task = (token, self._require("<|transcribe|>")) if self._multilingual else ()
        return _Special(
            end=self._require("<|endoftext|>"),
            start=self._require("<|startoftranscript|>"),
            no_timestamps=self._require("<|notimestamps|>"),
            task=task,
        )

    def _id(self, token: str) -> int | None:
        found: int | None = self._tokens.token_to_id(token)
        return found

    def _require(self, token: str) -> int:
        found = self._id(token)
        if found is None:
            raise SpeechEngineError(engine=self.card.engine, reason=f"its model has no {token}")
        return found


class _Heard(msgspec.Struct, frozen=True):
    text: str
    no_speech: float
    tokens: tuple[TokenScore, ...]
    expected: tuple[TokenScore, ...]
    encoding: Encoding | None


def cut_at_pauses(samples: "NDArray[np.float32]", window_s: int) -> "list[NDArray[np.float32]]":
    """Cut sound at 16 kHz into pieces of at most `window_s`, each at the quietest place. Pure."""
    import numpy as np  # noqa: PLC0415 - 0.1 s that commands without sound need not pay

    window = window_s * SAMPLE_RATE
    pieces: list[NDArray[np.float32]] = []
    while len(samples) > window:
        tail = samples[window - _CUT_SEARCH_S * SAMPLE_RATE : window]
        powers = (tail[: len(tail) // _CUT_FRAME * _CUT_FRAME].reshape(-1, _CUT_FRAME) ** 2).mean(1)
        quietest = int(np.argmin(powers))
        cut = window - len(tail) + quietest * _CUT_FRAME + _CUT_FRAME // 2
        pieces.append(samples[:cut])
        samples = samples[cut:]
    if len(samples) > _NOTHING_S * SAMPLE_RATE:
        pieces.append(samples)
    return pieces


def plain_text(text: str) -> str:
    """Return text in lower case without punctuation, so that its spelling moves no number. Pure."""
    straight = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower()
    return " ".join(_WORD.findall(straight))


def _longest(seconds: float, expected: Sequence[int] | None) -> int:
    by_time = round(seconds * _TOKENS_A_SECOND) + _SPARE_TOKENS
    by_text = by_time if expected is None else round(len(expected) * _CAP) + _SPARE_TOKENS
    return min(by_time, by_text, _MOST_TOKENS)


def _card(model: ModelCard) -> EngineCard:
    return EngineCard(
        engine=named_version("ctranslate2"),
        model=f"{model.id}/{model.version}",
        licence=model.licence,
        languages=model.languages,
        sample_rate=SAMPLE_RATE,
        releases_gil=True,
        notice=model.notice,
    )


def _failed(error: Exception) -> SpeechEngineError:
    return SpeechEngineError(engine=named_version("ctranslate2"), reason=str(error)[:200])
