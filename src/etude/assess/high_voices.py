"""High voices, brought to where the engines hear best: slowed, so that they sound lower. Pure.

The aligner was trained on adults. A child's vocal tract is shorter: every resonance is higher, and
so a phone that is said well fits badly. Played at 0.87 of its speed a high voice fits, and
what the engines find agrees better with people (`docs/assess.md`); a low voice would fit worse, so
it is left alone. Times are brought back: nobody after the engines needs to know.
"""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.voice import voice_measures
from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.audio import Pcm, resampled
from etude.speech.recognise import Recognised

AS_SPOKEN: Final = 1.0
SLOWED: Final = 0.87
HIGH_HZ: Final = 185.0
"""From this median pitch on a voice is high: nearly all children and women, few men."""


def pace_for(samples: NDArray[np.float32]) -> float:
    """Return how fast engines are to hear a sound, mono at 16 kHz: as it was spoken, or slower."""
    found = voice_measures(samples)
    is_high = found["voiced"] > 0 and found["log_pitch"] >= np.log(HIGH_HZ)
    return SLOWED if is_high else AS_SPOKEN


def played(sound: Pcm, pace: float) -> Pcm:
    """Return a sound played at a pace, at its own sample rate."""
    if pace == AS_SPOKEN:
        return sound
    slower = Pcm(sample_rate=round(sound.sample_rate * pace), samples=sound.samples)
    return resampled(slower, sound.sample_rate)


def recognised_in_time(recognised: Recognised, pace: float) -> Recognised:
    """Return what was heard at a pace, with the times of the sound as it was spoken."""
    if pace == AS_SPOKEN or recognised.encoding is None:
        return recognised
    encoding = msgspec.structs.replace(
        recognised.encoding, frame_ms=recognised.encoding.frame_ms * pace
    )
    return msgspec.structs.replace(recognised, encoding=encoding)


def alignment_in_time(alignment: Alignment | None, pace: float) -> Alignment | None:
    """Return what was aligned at a pace, with the times of the sound as it was spoken.

    A score is summed over frames of 10 ms: it becomes smaller as the time does.
    """
    if pace == AS_SPOKEN or alignment is None:
        return alignment
    return msgspec.structs.replace(
        alignment,
        words=tuple(_word(word, pace) for word in alignment.words),
        duration_ms=round(alignment.duration_ms * pace),
    )


def _word(word: AlignedWord, pace: float) -> AlignedWord:
    phones = tuple(
        AlignedPhone(
            phone.name,
            round(phone.start_ms * pace),
            round((phone.start_ms + phone.duration_ms) * pace) - round(phone.start_ms * pace),
            phone.score * pace,
        )
        for phone in word.phones
    )
    return msgspec.structs.replace(
        word,
        start_ms=phones[0].start_ms,
        duration_ms=phones[-1].start_ms + phones[-1].duration_ms - phones[0].start_ms,
        score=word.score * pace,
        phones=phones,
    )
