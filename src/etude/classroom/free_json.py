"""JSON whose shape nobody prescribes: only its depth and its numbers are bounded."""

from collections.abc import Iterator
from typing import Any, Final

from etude.classroom.errors import ClassroomConfigError
from etude.documents.reading import Path, spell

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1


def json_mistakes(value: Any, path: Path) -> Iterator[ClassroomConfigError]:  # noqa: ANN401 - JSON
    """Yield where free JSON has no canonical form (RFC 8785) or no sensible depth."""
    waiting = [(value, path)]
    while waiting:
        one, at = waiting.pop()
        if len(at) - len(path) > MAX_DEPTH or (isinstance(one, int) and abs(one) > MAX_INTEGER):
            yield ClassroomConfigError(path=spell(at[:12]))
        elif isinstance(one, dict):
            waiting += [(inner, (*at, key)) for key, inner in one.items()]
        elif isinstance(one, list | tuple):
            waiting += [(inner, (*at, index)) for index, inner in enumerate(one)]
