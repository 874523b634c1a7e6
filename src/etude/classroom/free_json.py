"""JSON whose shape nobody prescribes: only its depth and its numbers are bounded."""

from collections.abc import Iterator
from typing import Any, Final

from etude.classroom.errors import ClassroomConfigError
from etude.documents.reading import Path, spell

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1


def json_mistakes(value: Any, path: Path) -> Iterator[ClassroomConfigError]:  # noqa: ANN401 - JSON
    """Yield where free JSON has no canonical form (RFC 8785) or no sensible depth.

    Args:
        value: a mapping or list; nothing has no mistakes.
        path: where it is.
    """
    waiting: list[tuple[Any, Path]] = [] if value is None else [(value, path)]
    while waiting:
        holder, at = waiting.pop()
        for key, inner in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(inner, dict | list | tuple):
                if len(at) - len(path) >= MAX_DEPTH - 1:
                    yield ClassroomConfigError(path=spell((*at[: len(path) + 8], key)))
                else:
                    waiting.append((inner, (*at, key)))
            elif isinstance(inner, int) and abs(inner) > MAX_INTEGER:
                yield ClassroomConfigError(path=spell((*at, key)))


def is_deeper(value: Any, most: int) -> bool:  # noqa: ANN401 - any JSON value
    """Whether lists and mappings are nested more than `most` deep."""
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for holder in level
            if isinstance(holder, dict | list)
            for inner in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
