"""Pace and pauses of any recording: how long it is, in whatever language, with or without a text.

They come from the voice detector, which needs no text. Where a text was read and found in the
sound, `speech_rate_v1` and `pause_ratio_v1` come from the alignment; its pauses agree better with
raters (`docs/assess.md`), so both are said.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from etude.assess.gate import SILENCE_DB
from etude.assess.listening import LONGEST_S, SAMPLE_RATE, Heard, Listener
from etude.assess.metrics import UNIT_RATIO, Metric, nothing
from etude.assess.model_file import shipped_model
from etude.assess.quality import quality_of
from etude.assess.spoken_methods import (
    UNIT_WORDS_A_MINUTE,
    SpokenMethod,
    Why,
    own_engines,
    reading_of,
)
from etude.assess.words import is_chinese, words_of
from etude.speech.recognise import is_invented

SPEECH_RATE_OF_VOICE: Final = "speech_rate_v2"
PAUSE_RATIO_OF_VOICE: Final = "pause_ratio_v2"
_SHORTEST_S: Final = 0.2


Measure = Callable[[str, Heard], Metric]


class VoiceMethod(SpokenMethod):
    """A method that looks at where somebody speaks, however long the recording is."""

    def __init__(self, name: str, found: Measure, listener: Listener | None = None) -> None:
        """`listener` None = engines of this process."""
        super().__init__(name, lambda reading: found(reading.expected, reading.heard), listener)
        self._found = found

    def heard_by(self, listener: Listener) -> Self:
        """Return this method hearing with other engines."""
        return type(self)(self.name, self._found, listener)

    def __call__(
        self,
        expected_text: str | None,
        asr_text: str | None,  # noqa: ARG002 - it listens for itself
        audio: NDArray[np.float32] | None,
        sample_rate: int,
    ) -> list[Metric]:
        """See `metrics.Method`."""
        if audio is None:
            return []
        expected = expected_text or ""
        heard = (self._listener or own_engines()).hear(expected_text, audio, sample_rate)
        why_not = _why_not(expected, heard)
        if why_not is not None:
            return [nothing(self.name, why_not, **_detector(heard))]
        return [self._found(expected, heard)]


def _why_not(expected: str, heard: Heard) -> Why | None:
    if heard.spoken is None or heard.recognised is None:
        return "no_engine"
    if heard.aligned and words_of(expected) and not is_chinese(expected):
        return reading_of(expected, heard, shipped_model()).why_not
    silent = quality_of(heard.samples, SAMPLE_RATE)["level_db"] < SILENCE_DB
    nobody = not heard.spoken.spans or _span_s(heard) < _SHORTEST_S
    return "no_speech" if silent or nobody or is_invented(heard.recognised) else None


def _pause_ratio(expected: str, heard: Heard) -> Metric:  # noqa: ARG001 - a `Measure`
    """Share of silence from the first word to the last; pauses of 0.1 s and longer."""
    assert heard.spoken is not None  # noqa: S101 - see `_why_not`
    spans = heard.spoken.spans
    pauses = [(after.start_ms - before.end_ms) / 1000 for before, after in pairwise(spans)]
    span_s = _span_s(heard)
    detail: dict[str, Any] = {
        "pauses": len(pauses),
        "longest_s": round(max(pauses, default=0.0), 2),
        "span_s": round(span_s, 2),
        **_detector(heard),
    }
    value = round(sum(pauses) / span_s, 4)
    return Metric(method=PAUSE_RATIO_OF_VOICE, value=value, unit=UNIT_RATIO, detail=detail)


def _speech_rate(expected: str, heard: Heard) -> Metric:
    """Words a minute from the first word to the last: the text's where it was read, else heard."""
    assert heard.recognised is not None  # noqa: S101 - see `_why_not`
    was_read = heard.alignment is not None and len(heard.samples) <= LONGEST_S * SAMPLE_RATE
    words = words_of(expected if was_read else heard.recognised.text)
    span_s = _span_s(heard)
    detail: dict[str, Any] = {
        "words": len(words),
        "of": "text" if was_read else "heard",
        "span_s": round(span_s, 2),
        **heard.recognised.engines,
        **_detector(heard),
    }
    return Metric(
        method=SPEECH_RATE_OF_VOICE,
        value=round(len(words) * 60 / span_s, 1),
        unit=UNIT_WORDS_A_MINUTE,
        detail=detail,
    )


def _span_s(heard: Heard) -> float:
    spans = () if heard.spoken is None else heard.spoken.spans
    return (spans[-1].end_ms - spans[0].start_ms) / 1000 if spans else 0.0


def _detector(heard: Heard) -> dict[str, str]:
    if heard.spoken is None:
        return {}
    return {"detector": heard.spoken.engine, "detector_model": heard.spoken.model}


speech_rate_v2: Final = VoiceMethod(SPEECH_RATE_OF_VOICE, _speech_rate)
pause_ratio_v2: Final = VoiceMethod(PAUSE_RATIO_OF_VOICE, _pause_ratio)
