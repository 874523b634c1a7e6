"""Training: from a scored corpus to a model, its card and its table; split by speaker throughout.

The same corpus and the same engines give the same bytes. Nothing of the recordings is kept but
measured values.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.agreement import agreement, held_out
from etude.assess.corpus import Example, phone_ratings, word_ratings
from etude.assess.errors import TrainingDataFewError
from etude.assess.gate import FEATURES as GATE_FEATURES
from etude.assess.gate import FEATURES_WITHOUT_TOKENS, fit_gate, held_out_rates
from etude.assess.hints import RatedWords, fit_hints
from etude.assess.intervals import covered, fit_intervals
from etude.assess.learning import Lesson, learn, norms_of
from etude.assess.listening import Heard, Listener
from etude.assess.measures import PhoneNorm, measure, phones_of
from etude.assess.model_file import ARRAYS, CARD, Arrays, Card
from etude.assess.probes import PROBE_NAMES, Utterance, utterance_of
from etude.assess.regression import Floats
from etude.assess.regressor import Regressor
from etude.assess.table import ATTRIBUTION, TABLE, Table
from etude.assess.words import words_of
from etude.files import Files, replace_file
from etude.speech.align import Alignment
from etude.speech.audio import floats, read_audio
from etude.speech.recognise import Recognised

FOLDS: Final = 10
SEED: Final = 762
COVERAGE: Final = 0.9
_WELL_READ: Final = 8.0
_WRONG_EVERY: Final = 10
_FEWEST_UTTERANCES: Final = 50
_FEWEST_SPEAKERS: Final = 10
_MOST_LENGTHS_APART: Final = 1

Progress = Callable[[int, int], None]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What the engines answered for a recording and a text."""

    recognised: Recognised
    alignment: Alignment | None


class Answers:
    """Asks the engines, and keeps what they answered so that a second training need not ask."""

    def __init__(self, folder: Path | None, engines: Listener, files: Files) -> None:
        """`folder` = where answers are kept; None = nowhere."""
        self._folder = folder
        self._engines = engines
        self._files = files

    def of(self, path: Path, text: str) -> tuple[Answer | None, NDArray[np.float32]]:
        """Return the engines' answer and the samples; None = there is no engine."""
        sound = read_audio(path, 16_000)
        samples = floats(sound)
        key = hashlib.sha256(sound.samples + text.encode()).hexdigest()
        kept = None if self._folder is None else self._folder / f"{key}.mp"
        if kept is not None and kept.is_file():
            return msgspec.msgpack.decode(kept.read_bytes(), type=Answer), samples
        heard = self._engines.hear(text, samples, 16_000)
        if heard.recognised is None:
            return None, samples
        answer = Answer(heard.recognised, heard.alignment)
        if kept is not None:
            replace_file(self._files, kept, msgspec.msgpack.encode(answer))
        return answer, samples


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    example: Example
    answer: Answer
    measures: dict[str, float]
    lesson: Lesson | None


class _Control(msgspec.Struct, frozen=True):
    """A recording that was measured with the sentence of another."""

    speaker: str
    measures: dict[str, float]


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """What training makes."""

    arrays: bytes
    card: Card
    table: bytes

    def write(self, folder: Path, files: Files) -> None:
        """Write the three files."""
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(files, folder / ARRAYS, self.arrays)
        replace_file(files, folder / TABLE, self.table)
        card = msgspec.json.format(msgspec.json.encode(self.card, order="sorted"), indent=2)
        replace_file(files, folder / CARD, card + b"\n")


def train(examples: Sequence[Example], answers: Answers, progress: Progress) -> Trained:
    """Train on examples.

    Raises:
        TrainingDataFewError: fewer than 50 utterances or 10 speakers.
        AudioUnknownError, AudioUnreadableError: a recording cannot be read.
    """
    _require_enough(examples)
    wrong = _wrong_texts(examples)
    total = len(examples) + len(wrong)
    heard = []
    for number, example in enumerate(examples):
        answer, samples = answers.of(example.path, example.read_text)
        if answer is not None:
            heard.append((example, answer, samples))
        progress(number + 1, total)
    _require_enough([example for example, _, _ in heard])
    norms = norms_of(
        [
            answer.alignment
            for example, answer, _ in heard
            if answer.alignment is not None and example.targets[0] >= _WELL_READ
        ]
    )
    taken = [_taken(*one, norms) for one in heard]
    controls = []
    for number, (example, text) in enumerate(wrong):
        answer, samples = answers.of(example.path, text)
        if answer is not None:
            measures = _measured(text, answer, samples, norms)
            controls.append(_Control(example.rated.speaker, measures))
        progress(len(examples) + number + 1, total)
    return _fitted(taken, controls, norms)


def _fitted(
    taken: Sequence[_Taken],
    controls: Sequence[_Control],
    norms: Mapping[str, PhoneNorm],
) -> Trained:
    names = tuple(sorted({name for one in taken for name in one.measures}))
    rows = np.array([[one.measures.get(name, np.nan) for name in names] for one in taken])
    folds = _folds([one.example.rated.speaker for one in taken])
    probed, words = _probed(taken, folds, sorted(norms))
    table = _table(taken, folds, (*names, *PROBE_NAMES), np.column_stack([rows, probed]))
    # What ships is rounded: the figures are made from that, so that anyone gets the same ones.
    encoded = table.encoded()
    table = Table.decoded(encoded)
    predicted = held_out(table)
    lessons = [one.lesson for one in taken if one.lesson is not None]
    arrays = Arrays(
        norms=norms,
        names=names,
        probes=learn(lessons, sorted(norms)),
        regressor=Regressor.fitted(table.features, table.targets),
    ).encoded()
    threshold, hints = fit_hints(words)
    card = Card(
        sha256=hashlib.sha256(arrays).hexdigest(),
        attribution=ATTRIBUTION,
        engines=_engines(taken),
        trained_on={
            "utterances": len(taken),
            "speakers": len({one.example.rated.speaker for one in taken}),
            "children_utterances": sum(one.example.rated.child for one in taken),
        },
        figures=agreement(table, predicted),
        word_hints=hints,
        intervals=fit_intervals(table.targets, predicted, COVERAGE),
        coverage=COVERAGE,
        covered=covered(table, predicted, COVERAGE),
        hint_below=threshold,
        gate=_gate(taken, controls, folds, GATE_FEATURES),
        gate_without_tokens=_gate(taken, controls, folds, FEATURES_WITHOUT_TOKENS),
    )
    return Trained(arrays=arrays, card=card, table=encoded)


def _taken(
    example: Example,
    answer: Answer,
    samples: NDArray[np.float32],
    norms: Mapping[str, PhoneNorm],
) -> _Taken:
    text = example.read_text
    utterance = _utterance(text, answer, norms)
    lesson = None
    if utterance is not None and answer.alignment is not None:
        lesson = Lesson(
            utterance=utterance,
            phones=phone_ratings(example, answer.alignment),
            words=word_ratings(example, answer.alignment),
            targets=example.targets,
        )
    measures = _measured(text, answer, samples, norms)
    answer = Answer(msgspec.structs.replace(answer.recognised, encoding=None), answer.alignment)
    return _Taken(example=example, answer=answer, measures=measures, lesson=lesson)


def _utterance(text: str, answer: Answer, norms: Mapping[str, PhoneNorm]) -> Utterance | None:
    if answer.alignment is None:
        return None
    return utterance_of(text, answer.recognised, answer.alignment, norms)


def _measured(
    text: str,
    answer: Answer,
    samples: NDArray[np.float32],
    norms: Mapping[str, PhoneNorm],
) -> dict[str, float]:
    phones = None if answer.alignment is None else phones_of(answer.alignment, norms)
    return measure(text, answer.recognised, answer.alignment, phones, samples)


def _probed(
    taken: Sequence[_Taken], folds: NDArray[np.int64], phones: Sequence[str]
) -> tuple[Floats, RatedWords]:
    """Return what probes say that never heard the speaker; and of each rated word, both values."""
    found = np.full((len(taken), len(PROBE_NAMES)), np.nan)
    words: list[tuple[float, float, bool]] = []
    for fold in range(FOLDS):
        lessons = [
            one.lesson
            for one, own in zip(taken, folds, strict=True)
            if own != fold and one.lesson is not None
        ]
        probes = learn(lessons, phones)
        for row in np.flatnonzero(folds == fold).tolist():
            lesson = taken[row].lesson
            if lesson is not None:
                found[row], values = probes.read(lesson.utterance)
                child = taken[row].example.rated.child
                words += [
                    (rating, value, child)
                    for rating, value in zip(lesson.words.tolist(), values.tolist(), strict=True)
                ]
    return found, RatedWords.of(words)


def _table(
    taken: Sequence[_Taken], folds: NDArray[np.int64], names: Sequence[str], rows: Floats
) -> Table:
    rated = [one.example.rated for one in taken]
    return Table(
        ids=[one.id for one in rated],
        sets=[one.example.folder.name for one in taken],
        speakers=[one.speaker for one in rated],
        child=np.array([one.child for one in rated]),
        folds=folds,
        names=names,
        features=rows,
        targets=np.array([one.example.targets for one in taken]),
    )


def _folds(speakers: Sequence[str]) -> NDArray[np.int64]:
    """Return the part in which each utterance is held out: all of a speaker in one."""
    every = np.array(sorted(set(speakers)))
    order = np.random.default_rng(SEED).permutation(len(every))
    place = {str(every[one]): position % FOLDS for position, one in enumerate(order)}
    return np.array([place[speaker] for speaker in speakers])


def _wrong_texts(examples: Sequence[Example]) -> list[tuple[Example, str]]:
    """Return every tenth example with the sentence of another one, about as long."""
    found = []
    for number, example in enumerate(examples):
        if number % _WRONG_EVERY:
            continue
        count = len(words_of(example.read_text))
        for other in (*examples[number + 1 :], *examples[:number]):
            apart = abs(len(words_of(other.read_text)) - count)
            if other.read_text != example.read_text and apart <= _MOST_LENGTHS_APART:
                found.append((example, other.read_text))
                break
    return found


def _gate(
    taken: Sequence[_Taken],
    controls: Sequence[_Control],
    folds: NDArray[np.int64],
    features: Sequence[str],
) -> dict[str, float]:
    place = {one.example.rated.speaker: int(fold) for one, fold in zip(taken, folds, strict=True)}
    known = [one for one in controls if one.speaker in place]
    own = np.array([place[one.speaker] for one in known], dtype=np.int64)
    right = _gate_rows([one.measures for one in taken], features)
    wrong = _gate_rows([one.measures for one in known], features)
    gate = fit_gate(right, wrong, features)
    return gate | held_out_rates((right, folds), (wrong, own), features) if gate else gate


def _gate_rows(measures: Sequence[dict[str, float]], features: Sequence[str]) -> Floats:
    rows = [[one.get(name, np.nan) for name in features] for one in measures]
    return np.array(rows, dtype=np.float64).reshape(-1, len(features))


def _engines(taken: Sequence[_Taken]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in taken:
        heard = Heard(
            samples=np.zeros(0, dtype=np.float32),
            recognised=one.answer.recognised,
            alignment=one.answer.alignment,
            aligned=True,
        )
        found |= heard.engines
    return found


def _require_enough(examples: Sequence[Example]) -> None:
    speakers = len({example.rated.speaker for example in examples})
    if len(examples) < _FEWEST_UTTERANCES or speakers < _FEWEST_SPEAKERS:
        raise TrainingDataFewError(utterances=len(examples), speakers=speakers)
