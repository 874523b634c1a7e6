"""A model as one file of arrays, and beside it a card that holds its sha256 and says what it is.

Every version that ever gave a number stays, so that the number can be made again.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.errors import ModelFileDamagedError
from etude.assess.measures import PhoneNorm
from etude.assess.probes import Probes
from etude.assess.regression import Floats, Kernel, Landmarks, Linear, Scaler
from etude.assess.regressor import Regressor

FIRST: Final = "pronunciation_v1"
"""High voices heard as they are, words read by a linear probe, one width of interval for all."""
NAME: Final = "pronunciation_v2"
"""What training makes."""
NAMES: Final = (FIRST, NAME)
ARRAYS: Final = f"{NAME}.npz"
CARD: Final = f"{NAME}.json"
VERSION_DIGITS: Final = 12
SURE_FROM: Final = 9.0


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says of itself.

    Attributes:
        sha256: of the file of arrays.
        attribution: of the data that it was trained on; must be shown.
        engines: whose answers it reads; other engines need another model.
        trained_on: numbers of utterances, speakers and children.
        figures: agreement with raters, held out by speaker.
        word_hints: precision and recall at the threshold.
        intervals: by target, half the width of the interval that holds `coverage` of the raters'
            means: at 9 and above, and how much wider it is for each point below; or one for all.
        coverage: see `intervals`.
        covered: the share of raters' means that is inside, by group, speakers held out.
        hint_below: words below this value are hinted at.
        gate: weights, and the threshold below which another sentence was read.
        gate_without_tokens: the same where the recogniser gives the expected text no
            probabilities; empty = none was learnt, and what was aligned counts as read.
    """

    sha256: str
    attribution: str
    engines: dict[str, str]
    trained_on: dict[str, int]
    figures: dict[str, Any]
    word_hints: dict[str, float]
    intervals: dict[str, float | tuple[float, float]]
    coverage: float
    covered: dict[str, float] = {}
    hint_below: float
    gate: dict[str, float]
    gate_without_tokens: dict[str, float] = {}

    @property
    def version(self) -> str:
        """The beginning of the sha256: another file, another version."""
        return self.sha256[:VERSION_DIGITS]

    def half_width(self, target: str, value: float) -> float:
        """Return half the width of the interval around a value."""
        told = self.intervals[target]
        if isinstance(told, tuple):
            return told[0] + told[1] * max(0.0, SURE_FROM - value)
        return told


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a turn is assessed with."""

    name: str
    card: Card
    norms: Mapping[str, PhoneNorm]
    names: tuple[str, ...]
    probes: Probes
    regressor: Regressor


class Arrays(msgspec.Struct, frozen=True, kw_only=True):
    """A model without its card."""

    norms: Mapping[str, PhoneNorm]
    names: tuple[str, ...]
    probes: Probes
    regressor: Regressor

    def encoded(self) -> bytes:
        """Return it as a file of 32-bit arrays; the same model gives the same bytes."""
        out = io.BytesIO()
        np.savez(out, allow_pickle=False, **self._flat())
        return out.getvalue()

    def _flat(self) -> dict[str, NDArray[Any]]:
        flat: dict[str, NDArray[Any]] = {
            "norms.names": np.array(sorted(self.norms)),
            "norms.values": _single(
                np.array([msgspec.to_builtins(self.norms[name]) for name in sorted(self.norms)])
            ),
            "names": np.array(self.names),
            "probes.phones": np.array(self.probes.phones),
        }
        flat |= _flattened("probes", self.probes) | _flattened("regressor", self.regressor)
        return flat

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Read `encoded`'s bytes.

        Raises:
            ModelFileDamagedError: they are not such a file.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as found:
                flat = {name: found[name] for name in found.files}
            return cls(
                norms={
                    str(name): PhoneNorm(*map(float, row))
                    for name, row in zip(flat["norms.names"], flat["norms.values"], strict=True)
                },
                names=tuple(map(str, flat["names"])),
                probes=_probes(flat),
                regressor=Regressor(
                    _scaler(flat, "regressor.scaler"),
                    _linear(flat, "regressor.linear"),
                    _kernel(flat, "regressor.kernel"),
                ),
            )
        except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise ModelFileDamagedError(file=ARRAYS, reason=type(error).__name__) from error


def card_of(folder: Path, name: str = NAME) -> Card:
    """Read a model's card.

    Raises:
        ModelFileDamagedError: it is missing or is none.
    """
    try:
        return msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=Card)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelFileDamagedError(file=f"{name}.json", reason=type(error).__name__) from error


def load_model(folder: Path, name: str = NAME) -> Model:
    """Read a model whose arrays are those that its card names.

    Raises:
        ModelFileDamagedError: they are not, or one of the two cannot be read.
    """
    card = card_of(folder, name)
    file = f"{name}.npz"
    try:
        data = (folder / file).read_bytes()
    except OSError as error:
        raise ModelFileDamagedError(file=file, reason=type(error).__name__) from error
    if hashlib.sha256(data).hexdigest() != card.sha256:
        raise ModelFileDamagedError(file=file, reason="sha256")
    arrays = Arrays.decoded(data)
    return Model(
        name=name,
        card=card,
        norms=arrays.norms,
        names=arrays.names,
        probes=arrays.probes,
        regressor=arrays.regressor,
    )


@cache
def shipped_model(name: str = NAME) -> Model:
    """Return a model that ships; read once a process."""
    return load_model(models_folder(), name)


def models_folder() -> Path:
    """Return the folder of the model that ships."""
    return Path(__file__).with_name("models")


def _flattened(prefix: str, record: msgspec.Struct) -> dict[str, NDArray[Any]]:
    flat: dict[str, NDArray[Any]] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        key = f"{prefix}.{name}"
        if isinstance(value, msgspec.Struct):
            flat |= _flattened(key, value)
        elif isinstance(value, np.ndarray):
            flat[key] = _single(value)
        elif isinstance(value, float):
            flat[key] = _single(np.array(value))
    return flat


def _single(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype="<f4")


def _double(flat: Mapping[str, NDArray[Any]], name: str) -> Floats:
    return flat[name].astype(np.float64)


def _scaler(flat: Mapping[str, NDArray[Any]], prefix: str) -> Scaler:
    return Scaler(*(_double(flat, f"{prefix}.{name}") for name in Scaler.__struct_fields__))


def _linear(flat: Mapping[str, NDArray[Any]], prefix: str) -> Linear:
    return Linear(*(_double(flat, f"{prefix}.{name}") for name in Linear.__struct_fields__))


def _kernel(flat: Mapping[str, NDArray[Any]], prefix: str) -> Kernel:
    return Kernel(
        _double(flat, f"{prefix}.rows"),
        _double(flat, f"{prefix}.weights"),
        _double(flat, f"{prefix}.targets"),
        float(flat[f"{prefix}.width"].item()),
    )


def _landmarks(flat: Mapping[str, NDArray[Any]], prefix: str) -> Landmarks:
    return Landmarks(
        _double(flat, f"{prefix}.rows"),
        _linear(flat, f"{prefix}.linear"),
        float(flat[f"{prefix}.width"].item()),
    )


def _probes(flat: Mapping[str, NDArray[Any]]) -> Probes:
    return Probes(
        phones=tuple(map(str, flat["probes.phones"])),
        centres=_double(flat, "probes.centres"),
        projection=_double(flat, "probes.projection"),
        offset=_double(flat, "probes.offset"),
        phone=_linear(flat, "probes.phone"),
        word_scale=_scaler(flat, "probes.word_scale"),
        word=_landmarks(flat, "probes.word")
        if "probes.word.rows" in flat
        else _linear(flat, "probes.word"),
        whole_scale=_scaler(flat, "probes.whole_scale"),
        whole=_linear(flat, "probes.whole"),
        deviation_scale=_scaler(flat, "probes.deviation_scale"),
        deviation=_linear(flat, "probes.deviation"),
    )
