"""What people read, in English and Simplified Chinese.

One catalogue a language and context (`en/people.toml`, `zh-CN/people.toml`): dotted keys, values
with `{named}` placeholders. A key or placeholder that one language lacks fails `make lint`.
The help of commands stands in English beside them; `help/zh-CN.toml` has its Chinese.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

LOCALES: Final = ("en", "zh-CN")
DEFAULT_LOCALE: Final = "en"


def text(key: str, locale: str = DEFAULT_LOCALE, /, **params: object) -> str:
    """Return the message `key` in `locale`; `KeyError` names a key that no catalogue has."""
    return catalogue(locale)[key].format(**params)


def negotiate(accept_language: str | None) -> str:
    """Choose the locale for an `Accept-Language` header (RFC 9110 §12.5.4), else the default."""
    if not accept_language:
        return DEFAULT_LOCALE
    wishes: list[tuple[float, str]] = []
    for part in accept_language[:1000].split(","):
        tag, _, quality = part.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=")) if quality else 1.0
        except ValueError:
            continue
        wishes.append((weight, tag.strip().lower()))
    for weight, tag in sorted(wishes, key=lambda wish: -wish[0]):
        language = tag.partition("-")[0]
        if weight <= 0:
            continue
        if language == "zh":
            return "zh-CN"
        if language in {"en", "*"}:
            return DEFAULT_LOCALE
    return DEFAULT_LOCALE


@cache
def catalogue(locale: str) -> Mapping[str, str]:
    """Return every message of `locale` by its dotted key."""
    messages: dict[str, str] = {}
    for file in sorted(files(__name__).joinpath(locale).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            _flatten("", tomllib.loads(file.read_text("utf-8")), messages)
    return messages


@cache
def help_texts(locale: str) -> Mapping[str, Mapping[str, str]]:
    """Return the help of commands in `locale`: by command, each paragraph by its English.

    Two tables are of no command: `common` is of several, `etude` of the root itself. There is
    nothing in the default language, whose texts stand in the code.
    """
    if locale == DEFAULT_LOCALE:
        return {}
    file = files(__name__).joinpath("help", f"{locale}.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _flatten(prefix: str, table: Mapping[str, object], into: dict[str, str]) -> None:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            _flatten(f"{key}.", value, into)
        else:
            into[key] = str(value)
