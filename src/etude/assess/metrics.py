"""What a method finds, and what every method is: a pure function with a versioned name.

Methods are found through the entry point group `etude.assess`; the product's own are registered
the same way. A better method has another name, so what an older one found is never rewritten.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from etude.assess.errors import MethodUnusableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP: Final = "etude.assess"
UNIT_RATIO: Final = "ratio"
Reason = Literal["off_task", "no_speech", "no_engine", "too_long"]


class Metric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a method found in a turn.

    Attributes:
        method: name and version: `cer_v1`.
        value: None = it could not tell; `detail["reason"]` says why, and no aggregate counts it.
        unit: of the value.
        detail: engine, model, interval, parts; JSON values only.
    """

    method: str
    value: float | None
    unit: str | None = None
    detail: Mapping[str, Any] = {}


class Method(Protocol):
    """A way to assess a turn: the same arguments, the same engines, the same numbers."""

    def __call__(
        self,
        expected_text: str | None,
        asr_text: str | None,
        audio: "NDArray[np.float32] | None",
        sample_rate: int,
    ) -> list[Metric]:
        """Assess.

        Args:
            expected_text: what was to be read; None = nothing was (a check-in).
            asr_text: what a recogniser heard; None = none was asked.
            audio: mono in -1 … 1; None = there is no recording.
            sample_rate: in Hz.
        """


def nothing(method: str, reason: Reason, **detail: object) -> Metric:
    """Return the metric of a method that could not tell (`docs/rules.md 24`)."""
    return Metric(method=method, value=None, detail={"reason": reason, **detail})


def load_methods() -> dict[str, Method]:
    """Load every method that is installed, by name, in the order of their names.

    Raises:
        MethodUnusableError: one cannot be imported, or is nothing that can be called.
    """
    found = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    return {one.name: _loaded(one) for one in found}


def _loaded(point: EntryPoint) -> Method:
    try:
        method = point.load()
    except (ImportError, AttributeError) as error:
        raise MethodUnusableError(method=point.name, reason=str(error)) from error
    if not callable(method):
        raise MethodUnusableError(method=point.name, reason=point.value)
    loaded: Method = method
    return loaded
