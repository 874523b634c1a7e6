"""A mapping of a YAML document, read key by key; every refusal names file, line and key."""

import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from etude.practice.errors import (
    AppKeyMissingError,
    AppKeyTwiceError,
    AppKeyUnknownError,
    AppValueError,
)
from etude.practice.tasks import IDENTIFIER

_T = TypeVar("_T")
_TAG: Final = "tag:yaml.org,2002:"
LONGEST_TEXT: Final = 20_000
"""Characters of one text in an app file."""


class Fields:
    """The keys of one mapping.

    Attributes:
        file: the document, for messages.
        line: where the mapping begins, from 1.
    """

    def __init__(
        self, file: str, node: Node, same: Mapping[str, str], *, ids: tuple[str, Node] | None = None
    ) -> None:
        """Read the keys of `node`; `same` gives other names for keys, `ids` a key from outside.

        Raises:
            AppValueError: it is no mapping.
            AppKeyTwiceError: a key is there twice.
        """
        self.file = file
        self.line = node.start_mark.line + 1
        self._same = same
        self._keys: dict[str, Node] = {}
        self._values: dict[str, Node] = dict([ids]) if ids else {}
        if not isinstance(node, MappingNode):
            raise AppValueError(file=file, line=self.line, key="", wanted="a mapping")
        for key, value in node.value:
            name = same.get(str(key.value), str(key.value))
            if name in self._keys:
                raise AppKeyTwiceError(file=file, line=key.start_mark.line + 1, key=name)
            self._keys[name], self._values[name] = key, value

    def __contains__(self, key: str) -> bool:
        """Whether the key is there, with a value that is not null."""
        value = self._values.get(key)
        return value is not None and value.tag != f"{_TAG}null"

    def names(self) -> tuple[str, ...]:
        """Return the keys, in the order of the file."""
        return tuple(self._keys)

    def line_of(self, key: str) -> int:
        """Return the line of a key, else of the mapping."""
        node = self._keys.get(key)
        return int(node.start_mark.line) + 1 if node else self.line

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that are not `known`."""
        for key in self._keys:
            if key not in known:
                raise AppKeyUnknownError(file=self.file, line=self.line_of(key), key=key)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; a number is one, too."""
        if key not in self:
            return self._default(key, default)
        return self._text(key, self._values[key])

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list of one."""
        if key not in self:
            return ()
        node = self._values[key]
        if isinstance(node, SequenceNode):
            return tuple(self._text(key, item) for item in node.value)
        return (self._text(key, node),)

    def text_map(self, key: str) -> dict[str, str]:
        """Return a mapping of texts."""
        inner = self.inner(key)
        return {name: inner.text(name) for name in inner.names()} if inner else {}

    def identifier(self, key: str) -> str:
        """Return an id that may name a folder on a card."""
        found = self.text(key)
        if not IDENTIFIER.fullmatch(found):
            raise self._invalid(key, "[A-Za-z0-9_-], 1 to 31 characters")
        return found

    def number(self, key: str, default: float) -> float:
        """Return a finite number."""
        if key not in self:
            return default
        node = self._values[key]
        try:
            found = float(node.value) if node.tag in {f"{_TAG}int", f"{_TAG}float"} else math.nan
        except (TypeError, ValueError):
            found = math.nan
        if not math.isfinite(found):
            raise self._invalid(key, "a number")
        return found

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        found = self.number(key, default)
        if found != int(found) or not low <= found <= high:
            raise self._invalid(key, f"a whole number, {low} to {high}")
        return int(found)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        if key not in self:
            return default
        node = self._values[key]
        if node.tag != f"{_TAG}bool":
            raise self._invalid(key, "true, false")
        return str(node.value).casefold() == "true"

    def choice(self, key: str, choices: Mapping[str, _T], default: _T | None = None) -> _T:
        """Return what a word stands for."""
        if key not in self:
            return self._default(key, default)
        found = choices.get(self.text(key))
        if found is None:
            raise self._invalid(key, ", ".join(choices))
        return found

    def inner(self, key: str) -> "Fields | None":
        """Return the mapping below a key, None if there is none."""
        return Fields(self.file, self._values[key], {}) if key in self else None

    def entries(self, key: str, id_key: str) -> list["Fields"]:
        """Return mappings below a key: a list of them, or a mapping of them by id."""
        if key not in self:
            raise AppKeyMissingError(file=self.file, line=self.line, key=key)
        node = self._values[key]
        if isinstance(node, SequenceNode):
            return [Fields(self.file, item, self._same) for item in node.value]
        return Fields(self.file, node, {}).all_entries(id_key, self._same)

    def all_entries(self, id_key: str, same: Mapping[str, str] | None = None) -> list["Fields"]:
        """Return every value as a mapping whose id is its key."""
        names = self._same if same is None else same
        return [
            Fields(self.file, value, names, ids=(id_key, self._keys[key]))
            for key, value in self._values.items()
        ]

    def _text(self, key: str, node: Node) -> str:
        if not isinstance(node, ScalarNode) or node.tag in {f"{_TAG}null", f"{_TAG}bool"}:
            raise self._invalid(key, "a text")
        # A pair of surrogates that JSON escapes is one character.
        text: str = node.value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if len(text) > LONGEST_TEXT:
            raise self._invalid(key, f"at most {LONGEST_TEXT} characters")
        return text

    def _default(self, key: str, default: _T | None) -> _T:
        if default is None:
            raise AppKeyMissingError(file=self.file, line=self.line, key=key)
        return default

    def _invalid(self, key: str, wanted: str) -> AppValueError:
        line = self.line_of(key)
        return AppValueError(file=self.file, line=line, key=key, wanted=wanted)
