"""A scored corpus on disk: `scores.jsonl` and the recordings that it names.

One JSON object a line: `id`, `file`, `text`, `speaker`, `child`, `words` (each with `text`,
`accuracy`, `phones`, `phones_accuracy`) and the raters' means in `sentence_mean`, or their single
scores in `experts` (`docs/assess.md`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from etude.assess.errors import TrainingDataInvalidError, TrainingDataUnknownError
from etude.assess.probes import TARGETS
from etude.assess.regression import Floats
from etude.speech.align import Alignment

SCORES: Final = "scores.jsonl"
Points = Annotated[float, Meta(ge=0, le=10)]


class RatedWord(msgspec.Struct, frozen=True, kw_only=True):
    """A word and what raters gave for it and for its phones."""

    text: str
    accuracy: Points
    phones: tuple[str, ...] = ()
    phones_accuracy: tuple[Annotated[float, Meta(ge=0, le=2)], ...] | None = None


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """An utterance and what raters gave for it."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    file: str
    text: Annotated[str, Meta(min_length=1, max_length=2_000)]
    speaker: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    child: bool
    words: tuple[RatedWord, ...] = ()
    sentence_mean: Mapping[str, Points] = {}
    experts: Mapping[str, tuple[Points, ...]] = {}


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the corpus, with the folder that it is in."""

    folder: Path
    rated: Rated
    targets: Floats

    @property
    def path(self) -> Path:
        """The recording."""
        return self.folder / self.rated.file

    @property
    def read_text(self) -> str:
        """The sentence in lower case, as lessons are aligned."""
        return self.rated.text.lower()


def read_corpus(folders: Sequence[Path]) -> list[Example]:
    """Read the lines of all folders, in their order.

    Raises:
        TrainingDataUnknownError: a folder has no `scores.jsonl`.
        TrainingDataInvalidError: a line is wrong.
    """
    return [example for folder in folders for example in _read(folder)]


def _read(folder: Path) -> list[Example]:
    try:
        lines = (folder / SCORES).read_bytes().splitlines()
    except OSError as error:
        raise TrainingDataUnknownError(folder=str(folder), file=SCORES) from error
    return [_example(folder, line, number) for number, line in enumerate(lines, 1) if line.strip()]


def _example(folder: Path, line: bytes, number: int) -> Example:
    try:
        rated = msgspec.json.decode(line, type=Rated)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TrainingDataInvalidError(file=SCORES, line=number, reason=str(error)) from error
    if Path(rated.file).is_absolute() or ".." in Path(rated.file).parts:
        raise TrainingDataInvalidError(file=SCORES, line=number, reason="file")
    targets = [_mean(rated, target) for target in TARGETS]
    if None in targets:
        missing = TARGETS[targets.index(None)]
        raise TrainingDataInvalidError(file=SCORES, line=number, reason=f"sentence_mean.{missing}")
    return Example(folder=folder, rated=rated, targets=np.array(targets, dtype=np.float64))


def _mean(rated: Rated, target: str) -> float | None:
    if target in rated.sentence_mean:
        return rated.sentence_mean[target]
    scores = rated.experts.get(target)
    return None if not scores else sum(scores) / len(scores)


def word_ratings(example: Example, alignment: Alignment) -> Floats:
    """Return the raters' value for each aligned word; nan where the words do not match."""
    words = example.rated.words
    told = len(words) == len(example.rated.text.split())
    return np.array([words[one.index].accuracy if told else np.nan for one in alignment.words])


def phone_ratings(example: Example, alignment: Alignment) -> Floats:
    """Return the raters' value for each aligned phone; nan where the phones do not match."""
    words = example.rated.words
    told = len(words) == len(example.rated.text.split())
    found: list[float] = []
    for one in alignment.words:
        names = [phone.name for phone in one.phones]
        rated = words[one.index] if told else None
        same = rated is not None and [_bare(name) for name in rated.phones] == names
        values = rated.phones_accuracy if rated is not None and same else None
        found += (
            values if values is not None and len(values) == len(names) else [np.nan] * len(names)
        )
    return np.array(found)


def _bare(phone: str) -> str:
    return phone.rstrip("012")
