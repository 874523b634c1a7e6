"""Comparing a document with the struct that it should be: every mistake, not the first one."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final

import msgspec
from msgspec import inspect

from etude.documents.reading import Document, Mistake, Path


def check(document: Document, shape: type[Any], *, most: int | None = None) -> list[Mistake]:
    """Compare a document with `shape`, a struct; return every mistake, in the order of lines.

    Args:
        document: what was read.
        shape: what it should be.
        most: look for so many mistakes at most (documents of strangers may have millions).
    """
    if document.value is None and document.mistakes:
        return []
    found = islice(_compare(document.value, inspect.type_info(shape), ()), most)
    return sorted(
        (document.mistake(path, kind, **params) for path, kind, params in found),
        key=lambda mistake: mistake.line,
    )


_Found = Iterator[tuple[Path, str, dict[str, str]]]


def _compare(value: object, shape: inspect.Type, path: Path) -> _Found:
    """Yield what keeps `value` from being of `shape`."""
    if isinstance(shape, inspect.UnionType):
        yield from _compare_union(value, shape, path)
    elif isinstance(shape, inspect.StructType):
        yield from _compare_struct(value, shape, path)
    elif isinstance(shape, inspect.DictType):
        yield from _compare_mapping(value, shape, path)
    elif isinstance(shape, inspect.ListType | inspect.VarTupleType):
        yield from _compare_list(value, shape, path)
    elif isinstance(shape, inspect.LiteralType):
        if value not in shape.values or isinstance(value, bool):
            yield path, "not_one_of", {"known": ", ".join(str(one) for one in shape.values)}
    elif isinstance(shape, inspect.EnumType):
        known = [member.value for member in shape.cls]
        if value not in known:
            yield path, "not_one_of", {"known": ", ".join(str(one) for one in known)}
    else:
        yield from _compare_scalar(value, shape, path)


def _compare_union(value: object, shape: inspect.UnionType, path: Path) -> _Found:
    """A value of a union fits one member; the mistakes told are those of the likeliest one."""
    if isinstance(value, dict) and (tagged := _by_tag(shape)):
        yield from _compare_tagged(value, tagged, path)
        return
    attempts = [(member, list(_compare(value, member, path))) for member in shape.types]
    if any(not found for _, found in attempts):
        return
    same_kind = [found for member, found in attempts if _same_kind(value, member)]
    if same_kind:
        yield from min(same_kind, key=len)
        return
    names = [_kind(member) for member in shape.types if not isinstance(member, inspect.NoneType)]
    yield path, "not_a", {"wanted": " | ".join(dict.fromkeys(names))}


def _by_tag(shape: inspect.UnionType) -> dict[object, inspect.StructType]:
    """Return the members of a union that its values name by a tag; empty if it is no such union."""
    structs = [member for member in shape.types if isinstance(member, inspect.StructType)]
    return {member.tag: member for member in structs if member.tag_field is not None}


def _compare_tagged(
    value: dict[str, object], members: dict[object, inspect.StructType], path: Path
) -> _Found:
    """The tag says which member is meant: only that one's mistakes are told."""
    field = str(next(iter(members.values())).tag_field)
    tag = value.get(field, ...)
    if tag is ...:
        yield path, "missing", {"key": field}
    elif isinstance(tag, str | int) and tag in members:
        yield from _compare_struct(value, members[tag], path)
    else:
        known = ", ".join(str(one) for one in members)
        yield (*path, field), "not_one_of", {"known": known}


def _compare_struct(value: object, shape: inspect.StructType, path: Path) -> _Found:
    if not isinstance(value, dict):
        yield path, "not_a", {"wanted": "mapping"}
        return
    fields = {field.encode_name: field for field in shape.fields}
    for name, field in fields.items():
        if field.required and name not in value:
            yield path, "missing", {"key": name}
    for name, inner in value.items():
        if name in fields:
            yield from _compare(inner, fields[name].type, (*path, name))
        elif name != shape.tag_field:
            yield (*path, name), "unknown_key", {"key": name, "known": ", ".join(fields)}


def _compare_mapping(value: object, shape: inspect.DictType, path: Path) -> _Found:
    if not isinstance(value, dict):
        yield path, "not_a", {"wanted": "mapping"}
        return
    yield from _compare_size(len(value), shape, path)
    for name, inner in value.items():
        yield from _compare(name, shape.key_type, (*path, name))
        yield from _compare(inner, shape.value_type, (*path, name))


def _compare_list(
    value: object, shape: inspect.ListType | inspect.VarTupleType, path: Path
) -> _Found:
    if not isinstance(value, list):
        yield path, "not_a", {"wanted": "list"}
        return
    yield from _compare_size(len(value), shape, path)
    for index, inner in enumerate(value[: shape.max_length]):
        yield from _compare(inner, shape.item_type, (*path, index))


def _compare_size(
    size: int, shape: inspect.DictType | inspect.ListType | inspect.VarTupleType, path: Path
) -> _Found:
    least, most = shape.min_length or 0, shape.max_length
    if size == 0 < least:
        yield path, "empty", {}
    elif size < least:
        yield path, "out_of_bounds", {"reason": f"at least {least}"}
    elif most is not None and size > most:
        yield path, "out_of_bounds", {"reason": f"at most {most}"}


def _compare_scalar(value: object, shape: inspect.Type, path: Path) -> _Found:
    try:
        msgspec.convert(value, _annotated(shape))
    except msgspec.ValidationError as error:
        if _same_kind(value, shape):
            yield path, "out_of_bounds", {"reason": str(error)}
        else:
            yield path, "not_a", {"wanted": _kind(shape)}


def _annotated(shape: inspect.Type) -> Any:  # noqa: ANN401 - a type
    """Return the type that `shape` was read from, with its bounds."""
    plain = next((plain for kind, (plain, _) in _KINDS.items() if isinstance(shape, kind)), Any)
    bounds = {name: getattr(shape, name, None) for name in _BOUNDS}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[plain, msgspec.Meta(**given)] if given else plain


def _same_kind(value: object, shape: inspect.Type) -> bool:
    """Whether `value` is at least of the kind of `shape`, whatever is wrong inside."""
    if isinstance(shape, inspect.StructType | inspect.DictType):
        return isinstance(value, dict)
    if isinstance(shape, inspect.ListType | inspect.VarTupleType):
        return isinstance(value, list)
    if isinstance(value, bool):
        return isinstance(shape, inspect.BoolType)
    if isinstance(
        shape, inspect.StrType | inspect.LiteralType | inspect.EnumType | inspect.DateTimeType
    ):
        return isinstance(value, str)
    if isinstance(shape, inspect.IntType | inspect.FloatType):
        return isinstance(value, int | float)
    return value is None and isinstance(shape, inspect.NoneType)


def _kind(shape: inspect.Type) -> str:
    if isinstance(shape, inspect.StructType | inspect.DictType):
        return "mapping"
    if isinstance(shape, inspect.ListType | inspect.VarTupleType):
        return "list"
    return next((name for kind, (_, name) in _KINDS.items() if isinstance(shape, kind)), "text")


_BOUNDS: Final = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern", "tz")
_KINDS: Final[Mapping[type[inspect.Type], tuple[Any, str]]] = {
    inspect.StrType: (str, "text"),
    inspect.BoolType: (bool, "true | false"),
    inspect.IntType: (int, "whole number"),
    inspect.FloatType: (float, "number"),
    inspect.DateTimeType: (datetime, "time"),
    inspect.NoneType: (None, "nothing"),
}
