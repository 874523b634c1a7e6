"""Documents that people write: YAML (JSON is a part of it), read strictly.

    rubric = load(text, Rubric, file="violin.yaml", rules=check_references)

Every mistake is found in one go and names file, line, place and reason; a key that nobody reads is
a mistake, because it is misspelt as a rule.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from etude.documents.errors import DocumentInvalidError, error_of
from etude.documents.reading import Document, Mistake, read
from etude.documents.shapes import check

Shape = TypeVar("Shape")

__all__ = [
    "Document",
    "DocumentInvalidError",
    "Mistake",
    "check",
    "load",
    "load_value",
    "read",
]


def load(
    text: str,
    shape: type[Shape],
    *,
    file: str,
    rules: Callable[[Document, Shape], Iterable[Mistake]] = lambda _document, _value: (),
) -> Shape:
    """Read `text` as `shape`, a msgspec struct.

    Args:
        text: the document.
        shape: what it should be.
        file: its name, for the messages.
        rules: what a shape cannot say (references, orders); asked once the shape fits.

    Raises:
        DocumentInvalidError: its parts are the mistakes, in the order of their lines.
    """
    return _fitted(read(text), shape, file, rules)


def load_value(
    value: object,
    shape: type[Shape],
    *,
    file: str,
    rules: Callable[[Document, Shape], Iterable[Mistake]] = lambda _document, _value: (),
) -> Shape:
    """Take plain JSON values as `load` takes a text: the same shape and rules, but no lines.

    Raises:
        DocumentInvalidError: its parts are the mistakes.
    """
    return _fitted(Document(value, {}), shape, file, rules)


def _fitted(
    document: Document,
    shape: type[Shape],
    file: str,
    rules: Callable[[Document, Shape], Iterable[Mistake]],
) -> Shape:
    mistakes = [*document.mistakes, *check(document, shape)]
    if not mistakes:
        try:
            value = msgspec.convert(document.value, shape)
        except msgspec.ValidationError as error:  # a rule of the struct's own
            mistakes = [Mistake(1, "", "rule", {"reason": str(error)})]
        else:
            mistakes = list(rules(document, value))
            if not mistakes:
                return value
    mistakes.sort(key=lambda mistake: mistake.line)
    parts = [error_of(mistake, file) for mistake in mistakes]
    raise DocumentInvalidError(*parts, file=file, mistakes=len(parts))
