"""What is learnt about phones and words from the recogniser's encoder, and applied to a turn.

The encoder of a recogniser knows far more about a sound than its transcript says. Three linear
probes read it: which phone a piece of sound is, how well a phone was said, how well a word was
said; and two more read how the whole sentence was said. Everything is a matrix product.
"""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.measures import Norms, Phones, phones_of
from etude.assess.regression import Floats, Landmarks, Linear, Scaler
from etude.assess.words import capped, words_of
from etude.speech.align import Alignment
from etude.speech.recognise import Encoding, Recognised, TokenScore
from etude.speech.recognise_whisper import plain_text

WORD_NAMES: Final = (
    "z",
    "z_min",
    "length",
    "length_off",
    "log_p",
    "log_p_min",
    "was_heard",
    "phones",
    "tokens",
    "own",
    "own_min",
    "gap",
    "gap_min",
    "phone",
    "phone_min",
)
TARGETS: Final = ("accuracy", "fluency", "total")
PROBE_NAMES: Final = tuple(
    f"{what}_{how}" for what in ("own", "gap", "phone", "word") for how in ("mean", "min", "sd")
) + tuple(f"{what}_{target}" for what in ("whole", "deviation") for target in TARGETS)

_FLOOR: Final = -12.0
_SHIFT: Final = 0.5
_SHIFT_PHONES: Final = 5
_LEAST_P: Final = 1e-4


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """An aligned turn as arrays: what the probes read.

    Attributes:
        phones: of the alignment.
        whole: the encoder's mean from the first phone to the last.
        pieces: the encoder's mean over each phone.
        words: a row for each aligned word, the first nine of `WORD_NAMES`.
    """

    phones: Phones
    whole: Floats
    pieces: NDArray[np.float32]
    words: Floats


def frames_of(encoding: Encoding) -> NDArray[np.float32]:
    """Return the encoder's frames, one a row."""
    flat = np.frombuffer(encoding.values, dtype="<f2").astype(np.float32)
    return flat.reshape(-1, encoding.width)


def utterance_of(
    expected: str, recognised: Recognised, alignment: Alignment, norms: Norms
) -> Utterance | None:
    """Return an aligned turn as arrays; None where the engine shows no encoding."""
    if recognised.encoding is None or not alignment.words:
        return None
    frames = frames_of(recognised.encoding)
    phones = phones_of(alignment, norms)
    if not len(frames) or not phones.names:
        return None
    ratio = recognised.encoding.frame_ms / 10
    return Utterance(
        phones=phones,
        whole=_whole(frames, phones, ratio),
        pieces=_means(frames, phones, ratio),
        words=_word_rows(expected, recognised, alignment, phones),
    )


def _whole(frames: NDArray[np.float32], phones: Phones, ratio: float) -> Floats:
    first = min(int(phones.starts[0] / ratio), len(frames) - 1)
    behind = max(int((phones.starts[-1] + phones.frames[-1]) / ratio), first + 1)
    found: Floats = frames[first:behind].mean(axis=0).astype(np.float64)
    return found


def _means(frames: NDArray[np.float32], phones: Phones, ratio: float) -> NDArray[np.float32]:
    last = len(frames) - 1
    pieces = np.empty((len(phones.names), frames.shape[1]), dtype=np.float32)
    for row, (start, length) in enumerate(zip(phones.starts, phones.frames, strict=True)):
        first = min(int(start / ratio), last)
        behind = max(int((start + length + 1) / ratio), first + 1)
        pieces[row] = frames[first:behind].mean(axis=0)
    return pieces


def _word_rows(
    expected: str, recognised: Recognised, alignment: Alignment, phones: Phones
) -> Floats:
    heard = set(capped(words_of(recognised.text), words_of(expected)))
    tokens = token_logs(expected, recognised.expected_tokens or ())
    rows = []
    for place, word in enumerate(alignment.words):
        own = phones.words == place
        z, length = phones.score_z[own], phones.length_z[own]
        logs = tokens.get(word.index) or tokens.get(-1) or [0.0]
        was_heard = all(piece in heard for piece in words_of(word.text))
        rows.append(
            (
                z.mean(),
                z.min(),
                length.mean(),
                np.abs(length).max(),
                float(np.mean(logs)),
                min(logs),
                float(was_heard),
                len(z),
                len(logs),
            )
        )
    return np.array(rows, dtype=np.float64)


def token_logs(
    expected: str, tokens: tuple[TokenScore, ...] | list[TokenScore]
) -> dict[int, list[float]]:
    """Return the log-probabilities of the tokens by word (as in `AlignedWord.index`); -1 = all."""
    # `well-known` is one word of the text and two of the recogniser's.
    places = [
        place for place, word in enumerate(expected.split()) for _ in plain_text(word).split()
    ]
    found: dict[int, list[float]] = {}
    count = -1
    for token in tokens:
        if token.text.startswith(" ") or count < 0:
            count += 1
        log = float(np.log(max(token.probability, _LEAST_P)))
        found.setdefault(places[min(count, len(places) - 1)] if places else 0, []).append(log)
        found.setdefault(-1, []).append(log)
    return found


class Probes(msgspec.Struct, frozen=True, kw_only=True):
    """The learnt probes.

    Attributes:
        phones: the names that are known, in the order of the columns.
        centres: the encoder's mean for each phone when it is said well.
        projection, offset: of the discriminant that tells phones apart.
        phone: how well a phone was said, 0 to 2.
        word_scale, word: how well a word was said, 0 to 10; of `_v1` linear.
        whole: the sentence, from the encoder's mean.
        deviation: the sentence, from how its phones differ from the centres.
    """

    phones: tuple[str, ...]
    centres: Floats
    projection: Floats
    offset: Floats
    phone: Linear
    word_scale: Scaler
    word: Landmarks | Linear
    whole_scale: Scaler
    whole: Linear
    deviation_scale: Scaler
    deviation: Linear

    def read(self, utterance: Utterance) -> tuple[Floats, Floats]:
        """Return the values of `PROBE_NAMES`, and how well each aligned word was said."""
        rows = self.word_rows(utterance)
        words = self.words_from(rows)
        own, gap = self.fits(utterance)
        phone = self.phone_values(utterance, own, gap)
        found = [
            statistic
            for values in (own, gap, phone, words)
            for statistic in (values.mean(), values.min(), values.std())
        ]
        whole = self.whole.predict(self.whole_scale.apply(utterance.whole[None]))[0]
        differing = self.deviation_row(utterance)[None]
        deviation = self.deviation.predict(self.deviation_scale.apply(differing))[0]
        return np.concatenate([found, whole, deviation]), words

    def columns(self, utterance: Utterance) -> NDArray[np.int64]:
        """Return the column of each phone; one that is unknown is taken for the first."""
        place = {name: number for number, name in enumerate(self.phones)}
        return np.array([place.get(name, 0) for name in utterance.phones.names])

    def fits(self, utterance: Utterance) -> tuple[Floats, Floats]:
        """Return the log-posterior of each phone, and its distance to the best other one."""
        return posterior(utterance.pieces, self.columns(utterance), self.projection, self.offset)

    def phone_values(self, utterance: Utterance, own: Floats, gap: Floats) -> Floats:
        """Return how well each phone was said."""
        rows = phone_rows(utterance, self.columns(utterance), self.centres, own, gap)
        found: Floats = self.phone.predict(rows)[:, 0]
        return found

    def word_rows(self, utterance: Utterance) -> Floats:
        """Return a row for each word, and behind it the means over the sentence."""
        own, gap = self.fits(utterance)
        return words_in_context(utterance, own, gap, self.phone_values(utterance, own, gap))

    def words_from(self, rows: Floats) -> Floats:
        """Return how well each word was said."""
        found: Floats = self.word.predict(self.word_scale.apply(rows))[:, 0]
        return found

    def deviation_row(self, utterance: Utterance) -> Floats:
        """Return how the phones differ from their centres: mean, and root of the mean square."""
        return deviation_row(utterance, self.columns(utterance), self.centres)


def posterior(
    pieces: NDArray[np.float32], columns: NDArray[np.int64], projection: Floats, offset: Floats
) -> tuple[Floats, Floats]:
    """Return the log-posterior of the phone of each piece, and its distance to the best other."""
    logs = pieces @ projection + offset
    logs = logs - logs.max(axis=1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    rows = np.arange(len(columns))
    own = logs[rows, columns]
    logs[rows, columns] = -np.inf
    return np.maximum(own, _FLOOR), np.clip(own - logs.max(axis=1), _FLOOR, -_FLOOR)


def phone_rows(
    utterance: Utterance, columns: NDArray[np.int64], centres: Floats, own: Floats, gap: Floats
) -> Floats:
    """Return what the probe for phones reads, a row a phone."""
    phones = utterance.phones
    differing = utterance.pieces - centres[columns]
    # Half of what all phones of the speaker have in common is the voice or the microphone.
    share = _SHIFT * len(columns) / (len(columns) + _SHIFT_PHONES)
    return np.column_stack(
        [
            differing - share * differing.mean(axis=0),
            phones.score_z,
            phones.length_z,
            own,
            gap,
            np.abs(phones.length_z),
            np.eye(len(centres))[columns],
        ]
    )


def words_in_context(utterance: Utterance, own: Floats, gap: Floats, phone: Floats) -> Floats:
    """Return what the probe for words reads: `WORD_NAMES`, and their means over the sentence."""
    count = len(utterance.words)
    columns = [utterance.words]
    for values in (own, gap, phone):
        groups = [values[utterance.phones.words == place] for place in range(count)]
        columns.append(np.array([(group.mean(), group.min()) for group in groups]))
    rows = np.column_stack(columns)
    return np.column_stack([rows, np.broadcast_to(rows.mean(axis=0), rows.shape)])


def deviation_row(utterance: Utterance, columns: NDArray[np.int64], centres: Floats) -> Floats:
    """See `Probes.deviation_row`."""
    differing = utterance.pieces - centres[columns]
    return np.concatenate([differing.mean(axis=0), np.sqrt((differing**2).mean(axis=0))])
