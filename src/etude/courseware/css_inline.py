"""Styles of an activity: what they refer to is put into them, or refused."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import tinycss2  # type: ignore[import-untyped]  # it has none

Resolve = Callable[[str], str | None]
"""Returns what stands for a reference (`data:…`, `#…`); None if it cannot be had."""

_LOADING: Final = frozenset({"url", "src", "image", "image-set", "-webkit-image-set", "cross-fade"})
_URL_ONLY: Final = frozenset({"url", "src"})


def inline_css(source: str, resolve: Resolve, refuse: Callable[[str], None]) -> str:
    """Return a style sheet, or the value of a `style` attribute, that loads nothing."""
    if "(" not in source and "@" not in source and "\\" not in source:
        return source
    nodes = tinycss2.parse_component_value_list(source)
    _work_through(nodes, resolve, refuse)
    text: str = tinycss2.serialize(nodes)
    return text


def _work_through(nodes: list[Any], resolve: Resolve, refuse: Callable[[str], None]) -> None:
    for index, node in enumerate(nodes):
        kind = node.type
        if kind == "at-keyword" and node.lower_value == "import":
            refuse("@import " + _next_text(nodes, index))
        elif kind == "url":
            nodes[index] = _as_url(node.value, resolve, refuse)
        elif kind == "error":
            refuse(node.message)
        elif kind == "function":
            if node.lower_name in _LOADING:
                _strings(node, resolve, refuse)
            _work_through(node.arguments, resolve, refuse)
        elif (inner := getattr(node, "content", None)) is not None:
            _work_through(inner, resolve, refuse)


def _strings(node: Any, resolve: Resolve, refuse: Callable[[str], None]) -> None:  # noqa: ANN401 - tinycss2 has no types
    for place, argument in enumerate(node.arguments):
        if argument.type == "string":
            new = _as_url(argument.value, resolve, refuse)
            node.arguments[place] = _string_of(new) if node.lower_name in _URL_ONLY else new


def _as_url(reference: str, resolve: Resolve, refuse: Callable[[str], None]) -> Any:  # noqa: ANN401 - as above
    found = resolve(reference)
    if found is None:
        refuse(reference)
        found = "data:,"
    escaped = found.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ")
    return tinycss2.parse_one_component_value(f'url("{escaped}")')


def _string_of(url: Any) -> Any:  # noqa: ANN401 - as above
    """Return the string inside `url("…")`, however it was parsed."""
    inner = url.arguments[0] if url.type == "function" else url
    escaped = inner.value.replace("\\", "\\\\").replace('"', '\\"')
    return tinycss2.parse_one_component_value(f'"{escaped}"')


def _next_text(nodes: list[Any], index: int) -> str:
    texts: Iterator[str] = (
        str(node.value)
        for node in nodes[index + 1 :]
        if hasattr(node, "value") and node.type != "whitespace"
    )
    return next(texts, "")
