"""Reading YAML: plain values, and the line of each of its places.

Aliases are refused: a few lines of them can mean gigabytes. So are merges (`<<:`), keys that are no
text, values that JSON has no word for (dates, infinities, tagged lists), and keys that come twice.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent

MAX_CHARACTERS: Final = 1 << 20
MAX_DEPTH: Final = 32

Path = tuple[str | int, ...]


class Mistake(msgspec.Struct, frozen=True):
    """One thing that is wrong: where, and the parameters of the sentence `document.<kind>`."""

    line: int
    """From 1; 0 when the document as a whole is meant."""
    path: str
    """`signals.bow_hold_check.level`, `phases[0]`; empty for the whole."""
    kind: str
    params: Mapping[str, str] = {}


class Document(msgspec.Struct, frozen=True):
    """A document as read: plain values, and the line of each of its places."""

    value: Any
    lines: Mapping[Path, int]
    mistakes: tuple[Mistake, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of `path`, else of the nearest place around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def mistake(self, path: Path, kind: str, **params: str) -> Mistake:
        """Return a mistake at `path`, for rules that a shape cannot say."""
        return Mistake(self.line(path), spell(path), kind, params)


def read(text: str) -> Document:
    """Parse a document; one that is no YAML has a mistake and the value None."""
    if len(text) > MAX_CHARACTERS:
        return _unread(Mistake(0, "", "too_long", {"limit": str(MAX_CHARACTERS)}))
    try:
        if unwelcome := _unwelcome(text):
            return _unread(unwelcome)
        loaded = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join((error.problem or error.context or "").split())[:200]
        line = 0 if mark is None else mark.line + 1
        return _unread(Mistake(line, "", "syntax", {"reason": reason}))
    except (YAMLError, ValueError, RecursionError) as error:
        return _unread(Mistake(0, "", "syntax", {"reason": type(error).__name__}))
    lines: dict[Path, int] = {}
    mistakes: list[Mistake] = []
    value = _plain(loaded, (), 1, lines, mistakes)
    return Document(value, lines, tuple(mistakes))


def spell(path: Path) -> str:
    """Return a place as people write it: `phases[0].id`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _unwelcome(text: str) -> Mistake | None:
    """Look at the stream of events first: building what they describe could take for ever."""
    depth = 0
    for event in YAML(typ="rt").parse(text):
        if isinstance(event, AliasEvent):
            return Mistake(event.start_mark.line + 1, "", "alias")
        if isinstance(event, ScalarEvent) and event.value == "<<" and event.style is None:
            return Mistake(event.start_mark.line + 1, "", "merge")
        if isinstance(event, CollectionStartEvent) and event.tag is not None:
            return Mistake(event.start_mark.line + 1, "", "no_json", {"found": str(event.tag)[:40]})
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            return Mistake(event.start_mark.line + 1, "", "too_deep")
    return None


def _unread(mistake: Mistake) -> Document:
    return Document(None, {}, (mistake,))


def _plain(
    node: object, path: Path, line: int, lines: dict[Path, int], mistakes: list[Mistake]
) -> Any:  # noqa: ANN401 - any JSON value
    """Return `node` as plain values; what JSON has no word for is a mistake."""
    lines[path] = line
    if isinstance(node, CommentedMap):
        plain = {}
        for key, value in node.items():
            key_line = node.lc.key(key)[0] + 1
            if not isinstance(key, str):
                mistakes.append(Mistake(key_line, spell(path), "key_not_text", {"key": str(key)}))
                continue
            plain[str(key)] = _plain(value, (*path, str(key)), key_line, lines, mistakes)
        return plain
    if isinstance(node, CommentedSeq):
        return [
            _plain(value, (*path, index), node.lc.item(index)[0] + 1, lines, mistakes)
            for index, value in enumerate(node)
        ]
    return _scalar(node, path, line, mistakes)


def _scalar(node: object, path: Path, line: int, mistakes: list[Mistake]) -> Any:  # noqa: ANN401 - any JSON value
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float) and math.isfinite(node):
        return float(node)
    if isinstance(node, str):
        return str(node)
    mistakes.append(Mistake(line, spell(path), "no_json", {"found": str(node)[:40]}))
    return None
