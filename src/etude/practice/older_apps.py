"""The older runtime's `apps.json`, made to look like app files: other names, and and more of them.

Apps and tasks are lists, or mappings by id. Keys that mean nothing here are passed over. Every
place keeps the line that it has in the file.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from etude.documents import Document
from etude.practice.app_shapes import AppShape, AssessmentShape, RubricShape, TaskShape

SAME: Final = {"allowlist": "tools", "interaction_mode": "mode", "name": "title"}
"""Keys that are called otherwise here."""

_INNER: Final = {"assessment": AssessmentShape, "rubric": RubricShape}

_Path = tuple[str | int, ...]


def modernised(document: Document) -> Document:
    """Return the document as `AppsShape` has it."""
    return _Copy(document).apps()


class _Copy:
    """Copies what has a meaning, and the line of each part."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[_Path, int] = {}

    def apps(self) -> Document:
        value = self._document.value
        if not isinstance(value, dict):
            return self._document
        old: _Path = ()
        if "app_id" in value:
            value = [value]
        elif "apps" in value:
            old, value = ("apps",), value["apps"]
        copied = self._entries(value, old, ("apps",), "app_id", AppShape)
        return Document({"apps": copied}, self._lines, self._document.mistakes)

    def _entries(self, value: Any, old: _Path, new: _Path, id_key: str, shape: type[Any]) -> Any:  # noqa: ANN401 - any JSON value
        self._mark(new, old)
        if not isinstance(value, dict | list):
            return value
        return [
            self._entry(one, place, (*new, index), shape)
            for index, (one, place) in enumerate(_with_ids(value, old, id_key))
        ]

    def _entry(self, value: Any, old: _Path, new: _Path, shape: type[Any]) -> Any:  # noqa: ANN401 - any JSON value
        self._mark(new, old)
        if not isinstance(value, dict):
            return value
        copied: dict[str, Any] = {}
        for key, inner in value.items():
            name = str(SAME.get(key, key))
            if name not in shape.__struct_fields__ or inner is None:
                continue
            place, target = (*old, key), (*new, name)
            if name == "tasks":
                copied[name] = self._entries(inner, place, target, "task_id", TaskShape)
            elif name in _INNER:
                copied[name] = self._entry(inner, place, target, _INNER[name])
            else:
                copied[name] = self._whole(inner, place, target)
        return copied

    def _whole(self, value: Any, old: _Path, new: _Path) -> Any:  # noqa: ANN401 - any JSON value
        self._mark(new, old)
        if isinstance(value, Mapping):
            return {k: self._whole(one, (*old, k), (*new, k)) for k, one in value.items()}
        if isinstance(value, list):
            return [self._whole(one, (*old, i), (*new, i)) for i, one in enumerate(value)]
        return value

    def _mark(self, new: _Path, old: _Path) -> None:
        self._lines[new] = self._document.line(old)


def _with_ids(value: Any, old: _Path, id_key: str) -> Iterator[tuple[Any, _Path]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield one, (*old, index)
        return
    for key, one in value.items():
        yield ({id_key: key, **one} if isinstance(one, dict) else one), (*old, key)
