"""A part of a classroom as plain JSON values, one form for one meaning.

msgspec's own writer leaves a default out or not by which object it is; what is hashed may not
depend on that. Here a field is left out exactly if it is nothing or equal to its default.
"""

from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec


class _Field(NamedTuple):
    name: str
    key: str
    default: Any


def plain(value: Any, *, spelled_out: bool = False) -> Any:  # noqa: ANN401 - any part, any JSON value
    """Return `value` as dicts, lists, text and numbers.

    Args:
        value: a part of a classroom, or JSON in it.
        spelled_out: write defaults too; only what is nothing is left out.
    """
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        found = {} if config.tag_field is None else {config.tag_field: config.tag}
        for name, key, default in _fields(type(value)):
            inner = getattr(value, name)
            if inner is not None and (spelled_out or inner != default):
                found[key] = plain(inner, spelled_out=spelled_out)
        return found
    if isinstance(value, dict):
        return {key: plain(inner, spelled_out=spelled_out) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, spelled_out=spelled_out) for inner in value]
    if isinstance(value, datetime):
        return msgspec.to_builtins(value)
    return value


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    return tuple(
        _Field(field.name, field.encode_name, _default(field))
        for field in msgspec.structs.fields(kind)
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 - as the field has it
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
