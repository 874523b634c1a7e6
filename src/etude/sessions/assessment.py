"""By which methods the turns of a task are assessed, as its `session_start` says. Pure."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

NEVER: Final = frozenset({"CHAT", "INLINE", "PLAY_AUDIO", "TRANSLATE"})
"""Modes that leave nothing to assess: the answer was judged in the stream, or none was asked for
(`docs/rules.md 19, 20`)."""
_MethodT = TypeVar("_MethodT")


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What a task's app declares; the defaults are those of a session that says nothing.

    Attributes:
        enabled: whether its turns are assessed at all.
        methods: by these only; none = by every one that is installed.
    """

    enabled: bool = True
    methods: tuple[str, ...] = ()

    def among(self, installed: Mapping[str, _MethodT]) -> dict[str, _MethodT]:
        """Return those of the installed methods that are asked for."""
        if not self.enabled:
            return {}
        return {
            name: one for name, one in installed.items() if not self.methods or name in self.methods
        }


NO_ASSESSMENT: Final = Assessment(enabled=False)


def declared(meta: Mapping[str, object] | None) -> Assessment | None:
    """Return the `assessment` in the `meta` of a `session_start`; None if it holds none."""
    said = None if meta is None else meta.get("assessment")
    if not isinstance(said, Mapping):
        return None
    try:
        return msgspec.convert(said, Assessment)
    except msgspec.ValidationError:
        return None  # whoever wrote it meant something else
