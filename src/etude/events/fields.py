"""Which value each field of an event may have (`docs/events.md §Fields`, `docs/rules.md 1, 45`).

Values outside an enumerated field's list (a tier nobody knows) are not refused but linted: a
later protocol version may name them. A wrong JSON type is refused.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeGuard

from etude.events.errors import BadTypeError, MissingFieldError
from etude.events.strict import MAX_INTEGER

MAX_ID: Final = 128
MAX_NAME: Final = 256

# Character classes, spelled out: the JSON Schema uses the same text, and there `\s` is another set.
NOT_IN_ID: Final = (
    r"[\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000/?#]"
)
NOT_IN_NAME: Final = r"[\u0000-\u001f\u007f-\u009f]"
UNADDRESSABLE_IDS: Final = (".", "..")

_not_of_id: Final = re.compile(NOT_IN_ID).search
_not_of_name: Final = re.compile(NOT_IN_NAME).search


def is_id(text: str) -> bool:
    """Whether `text` can name an event or a session, also in a path of a URL."""
    if text.replace("-", "").isalnum() and len(text) <= MAX_ID:  # a UUID: no need to look closer
        return True
    return 0 < len(text) <= MAX_ID and _not_of_id(text) is None and text not in UNADDRESSABLE_IDS


is_known_id: Final = lru_cache(maxsize=4096)(is_id)
"""`is_id` for ids that come again and again (one session's)."""


def _is_id(value: object) -> bool:
    return isinstance(value, str) and is_id(value)


def _is_label(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME and _not_of_name(value) is None


def _is_name(value: object) -> bool:
    return value != "" and _is_label(value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return _is_number(value) and value >= 0


def _is_confidence(value: object) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_seq(value: object) -> bool:
    return _is_number(value) and value == int(value) and 1 <= value <= MAX_INTEGER


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_Rule = tuple[Callable[[object], bool], str]
_AN_ID: Final[_Rule] = (_is_id, "string[1..128], no space, control, / ? #")
_A_NAME: Final[_Rule] = (_is_name, "string[1..256], no control")
_A_LABEL: Final[_Rule] = (_is_label, "string[0..256], no control")

_REQUIRED: Final[Mapping[str, _Rule]] = {
    "event_id": _AN_ID,
    "session_id": _AN_ID,
    "ts": (_is_time, "number >= 0"),
    "event_type": _A_NAME,
}
_OPTIONAL: Final[Mapping[str, _Rule]] = {
    "phase": _A_LABEL,
    "confidence": (_is_confidence, "number 0..1"),
    "alert_tier": _A_LABEL,
    "cloud_review_available": (_is_flag, "boolean"),
    "transition_source": _A_LABEL,
    "meta": (_is_object, "object"),
    "journey_id": _A_LABEL,
    "perception_level": _A_LABEL,
    "primitive": _A_LABEL,
    "correlation_id": _A_LABEL,
    "seq": (_is_seq, "integer >= 1"),
}


def check(fields: Mapping[str, Any], number: int) -> None:
    """Raise `MissingFieldError` or `BadTypeError` for the first field of line `number` at fault.

    Null stands for an absent field, except in a required one.
    """
    signal = "signal_id" if "signal" not in fields and "signal_id" in fields else "signal"
    for name in (*_REQUIRED, signal):
        if name not in fields:
            raise MissingFieldError(number, field=name)
    for name, rule in _REQUIRED.items():
        _require(rule, name, fields[name], number)
    _require(_A_NAME, signal, fields[signal], number)
    for name, rule in _OPTIONAL.items():
        if (value := fields.get(name)) is not None:
            _require(rule, name, value, number)


def _require(rule: _Rule, name: str, value: object, number: int) -> None:
    accepts, expected = rule
    if not accepts(value):
        raise BadTypeError(number, field=name, expected=expected)
