"""What can be measured of how a sentence was read, before anybody has learnt anything from it.

Four groups: the texts, the recogniser's probabilities, the alignment with its timing, and the
sound itself (voice and level). The names are the columns of the table that ships. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.text_methods import error_rate, found_words, similarity
from etude.assess.voice import level_measures, voice_measures
from etude.assess.words import capped, normalise, words_of
from etude.speech.align import Alignment
from etude.speech.recognise import Recognised

Floats = NDArray[np.float64]

VOWELS: Final = frozenset(
    {"AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"}
)
FRAMES_A_SECOND: Final = 100
PAUSE_FRAMES: Final = 5
"""A gap between two words that lasts this long or longer is a pause (50 ms)."""

_FRAME_MS: Final = 10
_LEAST_P: Final = 1e-4
_MOST_EDGE_S: Final = 3.0


class PhoneNorm(msgspec.Struct, frozen=True, array_like=True):
    """How a phone is when it is said well: score a frame, and logarithm of its frames."""

    score_mean: float
    score_sd: float
    length_mean: float
    length_sd: float


Norms = Mapping[str, PhoneNorm]
UNKNOWN_PHONE: Final = PhoneNorm(-2.0, 1.5, 2.1, 0.5)


class Phones(msgspec.Struct, frozen=True):
    """The phones of an alignment, one array a property.

    Attributes:
        names: ARPAbet.
        words: which aligned word each belongs to.
        starts, frames: in frames of 10 ms; not whole ones where a voice was slowed.
        scores: a frame.
        score_z, length_z: against the norms.
    """

    names: tuple[str, ...]
    words: NDArray[np.int64]
    starts: Floats
    frames: Floats
    scores: Floats
    score_z: Floats
    length_z: Floats


def phones_of(alignment: Alignment, norms: Norms) -> Phones:
    """Return the phones of an alignment beside their norms."""
    found = [(place, phone) for place, word in enumerate(alignment.words) for phone in word.phones]
    names = tuple(phone.name for _, phone in found)
    frames = np.array([max(1.0, phone.duration_ms / _FRAME_MS) for _, phone in found])
    scores = np.array([phone.score for _, phone in found]) / frames
    table = np.array([_row(norms.get(name, UNKNOWN_PHONE)) for name in names])
    return Phones(
        names=names,
        words=np.array([place for place, _ in found]),
        starts=np.array([phone.start_ms / _FRAME_MS for _, phone in found], dtype=np.float64),
        frames=frames,
        scores=scores,
        score_z=(scores - table[:, 0]) / table[:, 1],
        length_z=(np.log(frames) - table[:, 2]) / table[:, 3],
    )


def measure(
    expected: str,
    recognised: Recognised,
    alignment: Alignment | None,
    phones: Phones | None,
    samples: NDArray[np.float32],
) -> dict[str, float]:
    """Return every measure that can be taken; those of an alignment only where there is one.

    Args:
        expected: what was to be read.
        recognised: with the probabilities of the expected text.
        alignment: None = the text was not found in the sound.
        phones: of that alignment.
        samples: mono at 16 kHz in -1 … 1.
    """
    found = _texts(expected, recognised.text) | _probabilities(expected, recognised)
    found |= voice_measures(samples)
    if alignment is None or phones is None or not phones.names:
        return found
    start, end = span_of(phones)
    found |= _fits(phones) | _timing(expected, alignment, phones, len(samples))
    return found | level_measures(samples, start, end, len(words_of(expected)))


def span_of(phones: Phones) -> tuple[int, int]:
    """Return the first frame of the text and the one behind its last."""
    return int(phones.starts[0]), int(phones.starts[-1] + phones.frames[-1])


def pauses_of(phones: Phones) -> list[float]:
    """Return the pauses between words, in seconds."""
    ends = phones.starts + phones.frames
    gaps = phones.starts[1:] - ends[:-1]
    return [float(gap) / FRAMES_A_SECOND for gap in gaps if gap >= PAUSE_FRAMES]


def _row(norm: PhoneNorm) -> tuple[float, float, float, float]:
    return norm.score_mean, norm.score_sd, norm.length_mean, norm.length_sd


def _texts(expected: str, heard: str) -> dict[str, float]:
    wanted = words_of(expected)
    got = capped(words_of(heard), wanted)
    text = " ".join(got)
    count = max(1, len(wanted))
    return {
        "similarity": similarity(expected, text),
        "word_fit": 1.0 - error_rate(wanted, got),
        "character_fit": 1.0 - error_rate(normalise(expected), normalise(text)),
        "words_found": sum(found_words(wanted, got)) / count,
        "length_ratio": len(got) / count,
        "log_words": float(np.log(count)),
    }


def _probabilities(expected: str, recognised: Recognised) -> dict[str, float]:
    wanted = _logs(recognised.expected_tokens)
    own = _logs(recognised.tokens)
    if not len(wanted):
        return {}
    words = max(1, len(words_of(expected)))
    no_speech = recognised.no_speech_probability
    return {
        "expected_log_p": float(wanted.mean()),
        "expected_p": float(np.exp(wanted).mean()),
        "expected_min": float(wanted.min()),
        "expected_sd": float(wanted.std()),
        "expected_q25": float(np.quantile(wanted, 0.25)),
        "expected_q50": float(np.median(wanted)),
        "expected_rest": float(wanted[1:].mean() if len(wanted) > 1 else wanted.mean()),
        "no_speech": 0.0 if no_speech is None else no_speech,
        "own_log_p": float(own.mean()) if len(own) else float(np.log(_LEAST_P)),
        "own_min": float(own.min()) if len(own) else float(np.log(_LEAST_P)),
        "own_q25": float(np.quantile(own, 0.25)) if len(own) else float(np.log(_LEAST_P)),
        "ratio": float(wanted.mean() - own.mean()) if len(own) else 0.0,
        "ratio_a_word": float(wanted.sum() - own.sum()) / words,
    }


def _logs(tokens: Sequence[object] | None) -> Floats:
    probabilities = [getattr(token, "probability", 0.0) for token in tokens or ()]
    logs: Floats = np.log(np.maximum(np.array(probabilities, dtype=np.float64), _LEAST_P))
    return logs


def _fits(phones: Phones) -> dict[str, float]:
    """Return how well the phones fit, and how evenly long they are."""
    z, length = phones.score_z, phones.length_z
    is_vowel = np.array([name in VOWELS for name in phones.names])
    vowel_lengths = length[is_vowel]
    return {
        "score": float(phones.scores.mean()),
        "score_by_time": float((phones.scores * phones.frames).sum() / phones.frames.sum()),
        "score_q10": float(np.quantile(phones.scores, 0.1)),
        "score_min": float(phones.scores.min()),
        "score_a_phone": float((phones.scores * phones.frames).mean()),
        "z": float(z.mean()),
        "z_q10": float(np.quantile(z, 0.1)),
        "z_sd": float(z.std()),
        "z_vowels": float(z[is_vowel].mean()) if is_vowel.any() else 0.0,
        "z_consonants": float(z[~is_vowel].mean()) if (~is_vowel).any() else 0.0,
        "length_off": float(np.abs(length).mean()),
        "length": float(length.mean()),
        "length_sd": float(length.std()),
        "length_max": float(length.max()),
        "length_min": float(length.min()),
        "vowel_length_sd": float(vowel_lengths.std()) if len(vowel_lengths) else 0.0,
        "vowel_unevenness": _unevenness(vowel_lengths),
    }


def _unevenness(lengths: Floats) -> float:
    return float(np.abs(np.diff(lengths)).mean()) if len(lengths) > 1 else 0.0


def _timing(
    expected: str, alignment: Alignment, phones: Phones, sample_count: int
) -> dict[str, float]:
    start, end = span_of(phones)
    span_s = max(1, end - start) / FRAMES_A_SECOND
    pauses = pauses_of(phones)
    duration_s = sample_count / 16_000
    words = max(1, len(words_of(expected)))
    rates = np.log([len(word.phones) / max(word.duration_ms, 10) for word in alignment.words])
    return {
        "pause_ratio": sum(pauses) / span_s,
        "longest_pause": float(np.log1p(10 * max(pauses, default=0.0))),
        "pauses_a_word": len(pauses) / words,
        "phones_a_second": len(phones.names) / span_s,
        "articulation": len(phones.names) / (phones.frames.sum() / FRAMES_A_SECOND),
        "log_span": float(np.log(span_s)),
        "log_duration": float(np.log(max(duration_s, 0.01))),
        "log_span_a_phone": float(np.log(span_s / len(phones.names))),
        "log_phones": float(np.log(len(phones.names))),
        "lead_s": min(start / FRAMES_A_SECOND, _MOST_EDGE_S),
        "trail_s": min(max(0.0, duration_s - end / FRAMES_A_SECOND), _MOST_EDGE_S),
        "word_rate_sd": float(rates.std()),
        "word_rate_min": float(rates.min()),
    }
