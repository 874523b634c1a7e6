"""Voice activity: is somebody speaking now? For speech that arrives in pieces.

`SileroActivity` knows speech from noise; `EnergyActivity` only loud from quiet, and needs nothing
but numpy. Both are fed 32 ms at a time and answer with a number; `Endpointer` turns the numbers
into a beginning and an end. Where there is an expected text, alignment tells time better.
"""

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from etude.speech.audio import Pcm, floats, resampled
from etude.speech.libraries import load_library, named_version
from etude.speech.models import Models
from etude.speech.recognise import EngineCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_ID: Final = "silero-vad-6"
SAMPLE_RATE: Final = 16_000
FRAME: Final = 512
"""Samples of one frame."""
FRAME_MS: Final = 32

_CONTEXT: Final = 64
_QUIETEST_DB: Final = -60.0
_RANGE_DB: Final = 20.0
_FALL: Final = 0.2
_RISE: Final = 0.005


class VoiceActivity(Protocol):
    """One stream at a time."""

    @property
    def card(self) -> EngineCard:
        """What it is."""

    def reset(self) -> None:
        """Forget what was heard: another stream begins."""

    def push(self, frame: "NDArray[np.float32]") -> float:
        """Return how likely a frame of 512 samples at 16 kHz, in -1 … 1, is speech: 0 to 1."""


class SileroActivity:
    """Silero's network in ONNX, 0.1 ms of work a frame. See `VoiceActivity`."""

    def __init__(self, models: Models) -> None:
        """Verify and load.

        Raises:
            ModelMissingError, ModelChangedError: the model is not there.
            SpeechExtraMissingError: `etude[speech]` is not installed.
        """
        card = models.card(MODEL_ID)
        folder = models.require(MODEL_ID)
        self._numpy = load_library("numpy")
        runtime = load_library("onnxruntime")
        options = runtime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        self._session: Any = runtime.InferenceSession(
            str(folder / "silero_vad.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._rate = self._numpy.array(SAMPLE_RATE, dtype="int64")
        self.card = EngineCard(
            engine=named_version("onnxruntime"),
            model=f"{card.id}/{card.version}",
            licence=card.licence,
            languages=card.languages,
            sample_rate=SAMPLE_RATE,
            releases_gil=True,
        )
        self.reset()

    def reset(self) -> None:
        """See `VoiceActivity`."""
        self._state: Any = self._numpy.zeros((2, 1, 128), dtype="float32")
        self._context: Any = self._numpy.zeros(_CONTEXT, dtype="float32")

    def push(self, frame: "NDArray[np.float32]") -> float:
        """See `VoiceActivity`."""
        heard = self._numpy.concatenate([self._context, frame])
        given = {"input": heard[None], "state": self._state, "sr": self._rate}
        found, self._state = self._session.run(None, given)
        self._context = heard[-_CONTEXT:]
        return float(found[0, 0])


class EnergyActivity:
    """Loudness above a floor that follows the quietest of late. See `VoiceActivity`."""

    card = EngineCard(
        engine="etude-energy/1",
        model="",
        licence="Apache-2.0",
        languages=("*",),
        sample_rate=SAMPLE_RATE,
        releases_gil=False,
    )

    def __init__(self) -> None:
        """Nothing is loaded."""
        self.reset()

    def reset(self) -> None:
        """See `VoiceActivity`."""
        self._floor_db: float | None = None

    def push(self, frame: "NDArray[np.float32]") -> float:
        """See `VoiceActivity`."""
        np = load_library("numpy")
        power = float(np.mean(frame.astype(np.float64) ** 2))
        level_db = max(10 * float(np.log10(power + 1e-12)), _QUIETEST_DB)
        if self._floor_db is None:
            self._floor_db = level_db
        step = _FALL if level_db < self._floor_db else _RISE
        self._floor_db += step * (level_db - self._floor_db)
        return min(max((level_db - self._floor_db) / _RANGE_DB, 0.0), 1.0)


class Endpointer:
    """Says when somebody began and when they ended, from one number a frame. Pure state.

    Speech begins with `begin_frames` likely frames in a row and ends after `end_ms` of unlikely
    ones: a child who thinks is not cut off.
    """

    def __init__(self, *, likely: float = 0.5, begin_frames: int = 3, end_ms: int = 800) -> None:
        """Nothing was heard yet."""
        self._likely = likely
        self._begin_frames = begin_frames
        self._end_frames = -(-end_ms // FRAME_MS)
        self._speaking = False
        self._run = 0

    def push(self, probability: float) -> Literal["began", "ended"] | None:
        """Take the number of the next frame; return what it changes."""
        against = (probability >= self._likely) is not self._speaking
        self._run = self._run + 1 if against else 0
        needed = self._end_frames if self._speaking else self._begin_frames
        if self._run < needed:
            return None
        self._speaking, self._run = not self._speaking, 0
        return "began" if self._speaking else "ended"


class Span(msgspec.Struct, frozen=True):
    """From when to when somebody spoke, in ms from the beginning."""

    start_ms: int
    end_ms: int


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody spoke in a sound, and what found it.

    Attributes:
        spans: in order; what is between two of them is a pause.
        engine, model: as in `EngineCard`; they belong beside every number made from this.
    """

    spans: tuple[Span, ...]
    engine: str
    model: str


PAUSE_MS: Final = 100
"""Shorter gaps belong to speech: the closure of a plosive lasts as long."""


def spoken_in(sound: Pcm, activity: VoiceActivity) -> Spoken:
    """Return where somebody speaks in a whole sound, pauses of 0.1 s and longer left out."""
    spans = speech_spans(sound, activity, join_ms=PAUSE_MS)
    return Spoken(spans=spans, engine=activity.card.engine, model=activity.card.model)


def speech_spans(
    sound: Pcm, activity: VoiceActivity, *, likely: float = 0.5, join_ms: int = 300
) -> tuple[Span, ...]:
    """Return where there is speech in a whole sound; gaps shorter than `join_ms` are closed."""
    np = load_library("numpy")
    activity.reset()
    samples = floats(resampled(sound, SAMPLE_RATE))
    padded = np.pad(samples, (0, -len(samples) % FRAME))
    spans: list[Span] = []
    for at in range(0, len(padded), FRAME):
        if activity.push(padded[at : at + FRAME]) < likely:
            continue
        start_ms = at * 1000 // SAMPLE_RATE
        end_ms = min(start_ms + FRAME_MS, sound.duration_ms)
        if spans and start_ms - spans[-1].end_ms < join_ms:
            start_ms = spans.pop().start_ms
        spans.append(Span(start_ms, end_ms))
    return tuple(spans)
