"""The table of features that ships: what each figure can be recomputed from, without any sound.

A row is one utterance of the corpus: what was measured, what the probes said that had heard no
other sentence of its speaker, and what five raters gave on average. The first line says where it
comes from (`docs/assess.md`).
"""

import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.errors import TableDamagedError
from etude.assess.model_file import NAME
from etude.assess.probes import TARGETS
from etude.assess.regression import Floats

ATTRIBUTION: Final = (
    "Derived from speechocean762 (Zhang et al., Interspeech 2021, arXiv:2104.01378; "
    "github.com/jimbozhang/speechocean762, CC BY 4.0): a subset of its TRAIN list, scores rebuilt "
    "from the raters' sheets; measured values only, no sound"
)
TABLE: Final = f"{NAME}.csv.gz"
_KEYS: Final = ("id", "set", "speaker", "child", "fold")
_DIGITS: Final = 6


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Utterances and what is known of each.

    Attributes:
        ids: the corpus'.
        sets: which folder each came from.
        speakers: the corpus' numbers.
        child: whether the speaker is under 18.
        folds: which part each speaker was held out in.
        names: of the features.
        features: a row an utterance; nan = not measured.
        targets: the raters' means of `TARGETS`.
    """

    ids: Sequence[str]
    sets: Sequence[str]
    speakers: Sequence[str]
    child: NDArray[np.bool_]
    folds: NDArray[np.int64]
    names: Sequence[str]
    features: Floats
    targets: Floats

    def encoded(self) -> bytes:
        """Return it as compressed CSV; the same table gives the same bytes."""
        out = io.StringIO()
        out.write(f"# {ATTRIBUTION}\n")
        out.write(",".join([*_KEYS, *TARGETS, *self.names]) + "\n")
        for row, keys in enumerate(
            zip(self.ids, self.sets, self.speakers, self.child, self.folds, strict=True)
        ):
            numbers = (*self.targets[row], *self.features[row])
            told = [str(int(key)) if isinstance(key, np.generic) else str(key) for key in keys]
            out.write(",".join([*told, *map(_spelled, numbers)]) + "\n")
        return gzip.compress(out.getvalue().encode(), mtime=0)

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Read `encoded`'s bytes.

        Raises:
            TableDamagedError: they are not such a table.
        """
        try:
            lines = gzip.decompress(data).decode().splitlines()
            header = lines[1].split(",")
            rows = [line.split(",") for line in lines[2:]]
            first = len(_KEYS)
            numbers = np.array(
                [[float(cell) if cell else np.nan for cell in row[first:]] for row in rows]
            )
            targets = len(TARGETS)
            return cls(
                ids=[row[0] for row in rows],
                sets=[row[1] for row in rows],
                speakers=[row[2] for row in rows],
                child=np.array([row[3] == "1" for row in rows]),
                folds=np.array([int(row[4]) for row in rows]),
                names=tuple(header[first + targets :]),
                features=numbers[:, targets:],
                targets=numbers[:, :targets],
            )
        except (OSError, EOFError, ValueError, IndexError) as error:
            raise TableDamagedError(reason=type(error).__name__) from error


def shipped_table(name: str = NAME) -> Table:
    """Return the table that ships with a model.

    Raises:
        TableDamagedError: it is not whole.
    """
    return Table.decoded((Path(__file__).with_name("models") / f"{name}.csv.gz").read_bytes())


def _spelled(number: float) -> str:
    return "" if np.isnan(number) else f"{number:.{_DIGITS}g}"
