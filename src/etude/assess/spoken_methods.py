"""Methods that hear: pace, pauses, pronunciation, and whether the sentence was read at all.

Each is a pure function like every method. Which engines they hear with can be chosen: the server
hears through its pool and hands the answer to all of them (`heard_by`), else they use engines of
their own process, loaded at first use.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from etude.assess.gate import off_task, tells_tokens
from etude.assess.high_voices import AS_SPOKEN
from etude.assess.listening import ENGLISH, LONGEST_S, Heard, Listener, OwnEngines
from etude.assess.measures import Phones, measure, pauses_of, phones_of, span_of
from etude.assess.metrics import UNIT_RATIO, Metric, nothing
from etude.assess.model_file import FIRST, NAME, Model, shipped_model
from etude.assess.probes import TARGETS, utterance_of
from etude.assess.quality import quality_of
from etude.assess.words import is_chinese, words_of

Why = Literal["off_task", "no_speech", "no_engine", "too_long"]
SPEECH_RATE: Final = "speech_rate_v1"
PAUSE_RATIO: Final = "pause_ratio_v1"
PRONUNCIATION: Final = NAME
UNIT_WORDS_A_MINUTE: Final = "words/min"
UNIT_POINTS: Final = "points (0-10)"
_HIGHEST: Final = 10.0


class Reading:
    """A turn that was heard: what all the methods below look at, worked out once."""

    def __init__(self, expected: str, heard: Heard, model: Model) -> None:
        """Measure a turn."""
        self.expected, self.heard, self.model = expected, heard, model
        self.phones: Phones | None = (
            None if heard.alignment is None else phones_of(heard.alignment, model.norms)
        )
        self.measures = (
            {}
            if heard.recognised is None
            else measure(expected, heard.recognised, heard.alignment, self.phones, heard.samples)
        )
        self.why_not = self._why_not()

    def is_of(self, expected: str, heard: Heard, model: Model) -> bool:
        """Say whether this is that turn, heard just then, by that model."""
        return self.heard is heard and self.model is model and self.expected == expected

    def _why_not(self) -> Why | None:
        if self.heard.recognised is None or not self.heard.aligned or is_chinese(self.expected):
            return "no_engine"
        level_db = quality_of(self.heard.samples, 16_000)["level_db"]
        card = self.model.card
        gate = card.gate if tells_tokens(self.heard.recognised) else card.gate_without_tokens
        return off_task(self.heard, self.measures, gate, level_db)


class _Last(threading.local):
    """What this thread has measured last: of a turn, all methods ask one after the other."""

    reading: Reading | None = None


_last: Final = _Last()


def reading_of(expected: str, heard: Heard, model: Model) -> Reading:
    """Return a turn measured; not again if it is the one that this thread has measured last."""
    last = _last.reading
    if last is None or not last.is_of(expected, heard, model):
        last = _last.reading = Reading(expected, heard, model)
    return last


Compute = Callable[[Reading], Metric]


class SpokenMethod:
    """A method that needs to hear a turn."""

    def __init__(
        self, name: str, compute: Compute, listener: Listener | None = None, *, model: str = NAME
    ) -> None:
        """`listener` None = engines of this process; `model` = the name of one that ships."""
        self.name = name
        self._compute = compute
        self._listener = listener
        self._model = model

    def heard_by(self, listener: Listener) -> Self:
        """Return this method hearing with other engines."""
        return type(self)(self.name, self._compute, listener, model=self._model)

    def __call__(
        self,
        expected_text: str | None,
        asr_text: str | None,  # noqa: ARG002 - it listens for itself
        audio: NDArray[np.float32] | None,
        sample_rate: int,
    ) -> list[Metric]:
        """See `metrics.Method`."""
        if audio is None or not expected_text or not words_of(expected_text):
            return []
        if len(audio) > LONGEST_S * sample_rate:
            return [nothing(self.name, "too_long", limit_s=LONGEST_S)]
        listener = self._listener or own_engines(slows=self._model != FIRST)
        heard = listener.hear(expected_text, audio, sample_rate)
        return [self.of(reading_of(expected_text, heard, shipped_model(self._model)))]

    def of(self, reading: Reading) -> Metric:
        """Return what it finds in a turn that was heard."""
        if reading.why_not is not None:
            return nothing(self.name, reading.why_not, **reading.heard.engines)
        return self._compute(reading)


@cache
def own_engines(*, slows: bool = True) -> OwnEngines:
    """Return the engines of this process; `slows`: see `OwnEngines`."""
    return OwnEngines(slows=slows)


def _speech_rate(reading: Reading) -> Metric:
    """Words a minute from the first phone to the last, pauses included; without them in detail."""
    assert reading.phones is not None  # noqa: S101 - `why_not` is None
    start, end = span_of(reading.phones)
    span_s = max(1, end - start) / 100
    words = len(words_of(reading.expected))
    phones = len(reading.phones.names)
    detail = {
        "phones_a_second": round(phones / span_s, 2),
        "articulation_phones_a_second": round(phones * 100 / float(reading.phones.frames.sum()), 2),
        "span_s": round(span_s, 2),
        **reading.heard.engines,
    }
    value = round(words * 60 / span_s, 1)
    return Metric(method=SPEECH_RATE, value=value, unit=UNIT_WORDS_A_MINUTE, detail=detail)


def _pause_ratio(reading: Reading) -> Metric:
    """Share of silence between the first phone and the last."""
    assert reading.phones is not None  # noqa: S101 - `why_not` is None
    start, end = span_of(reading.phones)
    pauses = pauses_of(reading.phones)
    detail = {
        "pauses": len(pauses),
        "longest_s": round(max(pauses, default=0.0), 2),
        **reading.heard.engines,
    }
    value = round(sum(pauses) * 100 / max(1, end - start), 4)
    return Metric(method=PAUSE_RATIO, value=value, unit=UNIT_RATIO, detail=detail)


def _pronunciation(reading: Reading) -> Metric:
    """How raters would hear it on average, with the interval that holds nine in ten of them."""
    model, heard, name = reading.model, reading.heard, reading.model.name
    assert heard.recognised is not None and heard.alignment is not None  # noqa: S101, PT018 - see above
    utterance = utterance_of(reading.expected, heard.recognised, heard.alignment, model.norms)
    if utterance is None or not _is_known(heard, model):
        return nothing(name, "no_engine", **heard.engines)
    probed, words = model.probes.read(utterance)
    row = np.array([reading.measures.get(name, np.nan) for name in model.names])
    found = model.regressor.predict(np.concatenate([row, probed])[None])[0]
    points = dict(zip(TARGETS, np.clip(found, 0.0, _HIGHEST).tolist(), strict=True))
    indexes = [word.index for word in heard.alignment.words]
    detail: dict[str, Any] = {
        "interval": _interval(points["total"], model.card.half_width("total", points["total"])),
        "coverage": model.card.coverage,
        "accuracy": round(points["accuracy"], 1),
        "fluency": round(points["fluency"], 1),
        "words": _words(indexes, words.tolist(), model.card.hint_below),
        "assessor": f"{name}/{model.card.version}",
        "language": ENGLISH,
        **heard.engines,
    }
    value = round(points["total"], 1)
    return Metric(method=name, value=value, unit=UNIT_POINTS, detail=detail)


def _is_known(heard: Heard, model: Model) -> bool:
    """Say whether the model was trained on these models' answers; libraries may be newer."""
    if model.name == FIRST and heard.pace != AS_SPOKEN:
        return False
    engines, known = heard.engines, model.card.engines
    return all(engines.get(key) == known[key] for key in ("model", "acoustic_model"))


def _interval(value: float, half: float) -> list[float]:
    return [round(max(0.0, value - half), 1), round(min(_HIGHEST, value + half), 1)]


def _words(indexes: list[int], values: list[float], hint_below: float) -> list[dict[str, Any]]:
    """Return a value for each word of the text; `look_again` where it is a hint, not a fact.

    A word that is spoken as several (`21`) has the lowest of their values.
    """
    lowest: dict[int, float] = {}
    for index, value in zip(indexes, values, strict=True):
        lowest[index] = min(value, lowest.get(index, _HIGHEST))
    return [
        {
            "index": index,
            "points": round(max(0.0, value), 1),
            **({"look_again": True} if value < hint_below else {}),
        }
        for index, value in sorted(lowest.items())
    ]


speech_rate_v1: Final = SpokenMethod(SPEECH_RATE, _speech_rate)
pause_ratio_v1: Final = SpokenMethod(PAUSE_RATIO, _pause_ratio)
pronunciation_v2: Final = SpokenMethod(PRONUNCIATION, _pronunciation)
pronunciation_v1: Final = SpokenMethod(FIRST, _pronunciation, model=FIRST)
"""Not asked of new turns; for whoever wants to make an old number again."""
