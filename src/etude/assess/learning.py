"""How the probes are learnt: norms of phones, the discriminant, and the linear models. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.measures import PhoneNorm
from etude.assess.probes import (
    Probes,
    Utterance,
    deviation_row,
    phone_rows,
    posterior,
    words_in_context,
)
from etude.assess.regression import Floats, Landmarks, Linear, Scaler
from etude.speech.align import Alignment

WELL_SAID: Final = 1.8
"""From this mean of the raters' 0 to 2 on, a phone shows how it should be."""

_FEWEST: Final = 10
_SHRINK: Final = 0.1
_PHONE_PENALTY: Final = 0.3
_WORD_PENALTY: Final = 3e-4
_WORD_WIDTH: Final = 0.3
_WHOLE_PENALTY: Final = 1.0
_DEVIATION_PENALTY: Final = 3.0
_LEAST_SD: Final = 1e-3


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """An utterance to learn from.

    Attributes:
        utterance: as arrays.
        phones: the raters' 0 to 2 for each aligned phone; nan = not told.
        words: the raters' 0 to 10 for each aligned word; nan = not told.
        targets: the raters' means for the sentence.
    """

    utterance: Utterance
    phones: Floats
    words: Floats
    targets: Floats


def norms_of(alignments: Sequence[Alignment]) -> dict[str, PhoneNorm]:
    """Return how phones are in sentences that were read well."""
    found: dict[str, list[tuple[float, float]]] = {}
    for alignment in alignments:
        for word in alignment.words:
            for phone in word.phones:
                frames = max(1.0, phone.duration_ms / 10)
                pair = (phone.score / frames, float(np.log(frames)))
                found.setdefault(phone.name, []).append(pair)
    return {
        name: _norm(np.array(pairs))
        for name, pairs in sorted(found.items())
        if len(pairs) >= _FEWEST
    }


def learn(lessons: Sequence[Lesson], names: Sequence[str]) -> Probes:
    """Learn all probes. `names` are the phones that are known, in order."""
    place = {name: number for number, name in enumerate(names)}
    columns = [
        np.array([place.get(name, 0) for name in one.utterance.phones.names]) for one in lessons
    ]
    pieces = np.concatenate([one.utterance.pieces for one in lessons]).astype(np.float64)
    truth = np.concatenate([one.phones for one in lessons])
    every = np.concatenate(columns)
    centres, projection, offset = _discriminant(pieces, every, truth >= WELL_SAID, len(names))
    fits = [
        posterior(one.utterance.pieces, own, projection, offset)
        for one, own in zip(lessons, columns, strict=True)
    ]
    rows = [
        phone_rows(one.utterance, own, centres, *fit)
        for one, own, fit in zip(lessons, columns, fits, strict=True)
    ]
    told = np.isfinite(truth)
    phone = Linear.fitted(
        *_standardised(np.concatenate(rows)[told], truth[told][:, None]), _PHONE_PENALTY
    )
    phone = _unstandardised(phone, np.concatenate(rows)[told])
    words = [
        words_in_context(one.utterance, *fit, phone.predict(row)[:, 0])
        for one, fit, row in zip(lessons, fits, rows, strict=True)
    ]
    word_scale, word = _word_probe(
        np.concatenate(words), np.concatenate([o.words for o in lessons])
    )
    targets = np.array([one.targets for one in lessons])
    whole_scale, whole = _probe(
        np.array([one.utterance.whole for one in lessons]), targets, _WHOLE_PENALTY
    )
    differing = np.array(
        [
            deviation_row(one.utterance, own, centres)
            for one, own in zip(lessons, columns, strict=True)
        ]
    )
    deviation_scale, deviation = _probe(differing, targets, _DEVIATION_PENALTY)
    return Probes(
        phones=tuple(names),
        centres=centres,
        projection=projection,
        offset=offset,
        phone=phone,
        word_scale=word_scale,
        word=word,
        whole_scale=whole_scale,
        whole=whole,
        deviation_scale=deviation_scale,
        deviation=deviation,
    )


def _norm(pairs: Floats) -> PhoneNorm:
    mean, sd = pairs.mean(axis=0), pairs.std(axis=0) + _LEAST_SD
    return PhoneNorm(float(mean[0]), float(sd[0]), float(mean[1]), float(sd[1]))


def _probe(rows: Floats, targets: Floats, penalty: float) -> tuple[Scaler, Linear]:
    scaler = Scaler.fitted(rows)
    return scaler, Linear.fitted(scaler.apply(rows), targets, penalty)


def _word_probe(rows: Floats, truth: Floats) -> tuple[Scaler, Landmarks]:
    told = np.isfinite(truth)
    scaler = Scaler.fitted(rows[told])
    scaled, targets = scaler.apply(rows[told]), truth[told][:, None]
    return scaler, Landmarks.fitted(scaled, targets, _WORD_WIDTH, _WORD_PENALTY)


def _standardised(rows: Floats, targets: Floats) -> tuple[Floats, Floats]:
    return (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-6), targets


def _unstandardised(model: Linear, rows: Floats) -> Linear:
    """Return a model of standardised rows as one of rows as they are."""
    sd = rows.std(axis=0) + 1e-6
    return Linear(model.weights / sd[:, None], rows.mean(axis=0), model.targets)


def _discriminant(
    pieces: Floats, columns: NDArray[np.int64], well: NDArray[np.bool_], count: int
) -> tuple[Floats, Floats, Floats]:
    """Return centres, projection and offset of a linear discriminant with one shared spread."""
    good, own = pieces[well], columns[well]
    overall = good.mean(axis=0)
    centres = np.array(
        [
            good[own == place].mean(axis=0) if (own == place).sum() >= _FEWEST else overall
            for place in range(count)
        ]
    )
    spread = good - centres[own]
    covariance = spread.T @ spread / len(spread)
    width = len(covariance)
    covariance = (1 - _SHRINK) * covariance + _SHRINK * np.trace(covariance) / width * np.eye(width)
    projection = np.linalg.solve(covariance, centres.T)
    offset = -0.5 * (centres.T * projection).sum(axis=0)
    return centres, projection, offset
