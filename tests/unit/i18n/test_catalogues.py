"""The catalogues against each other and against the code: nothing a person reads is missing."""

import ast
import importlib
import pkgutil
import string
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import etude
from etude.errors import EtudeError
from etude.i18n import DEFAULT_LOCALE, LOCALES, catalogue, text

SOURCES = sorted(Path(etude.__file__).parent.rglob("*.py"))
# functions whose first argument is a message key
SPEAKERS = {"text", "say", "ask_unseen", "require_yes"}


def leaves(table: dict[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def placeholders(message: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(message) if name is not None}


def error_classes() -> list[type[EtudeError]]:
    for module in pkgutil.walk_packages(etude.__path__, "etude."):
        if ".migrations" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[EtudeError]] = []
    waiting = [EtudeError]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += one.__subclasses__()
    return [one for one in dict.fromkeys(found) if one.__module__.startswith("etude.")]


def calls() -> Iterator[tuple[str, ast.Call]]:
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{source.name}:{node.lineno}", node


def called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def test_every_language_has_the_same_keys() -> None:
    """A key that one language lacks is named here."""
    keys = {locale: set(catalogue(locale)) for locale in LOCALES}
    every = set().union(*keys.values())
    assert {locale: sorted(every - have) for locale, have in keys.items()} == {
        locale: [] for locale in LOCALES
    }


def test_every_language_has_the_same_placeholders() -> None:
    """A placeholder that one language lacks is named here."""
    english = catalogue(DEFAULT_LOCALE)
    differing = {
        (key, locale)
        for locale in LOCALES
        for key, message in catalogue(locale).items()
        if placeholders(message) != placeholders(english.get(key, ""))
    }
    assert differing == set()


def test_no_key_is_said_twice_in_a_language() -> None:
    """Two files of one language never hold the same key: the later would hide the earlier."""
    for locale in LOCALES:
        folder = Path(etude.__file__).parent / "i18n" / locale
        keys = Counter(
            key for file in folder.glob("*.toml") for key in leaves(tomllib.loads(file.read_text()))
        )
        assert [key for key, count in keys.items() if count > 1] == [], locale


def test_every_error_class_has_its_message() -> None:
    """An error whose code has no message under `error.` is named here."""
    messages = catalogue(DEFAULT_LOCALE)
    missing = {one.code for one in error_classes() if f"error.{one.code}" not in messages}
    assert missing == set()


def test_a_code_belongs_to_one_error() -> None:
    """Two unrelated error classes never share a code; a subclass may keep its parent's."""
    owners: dict[str, type[EtudeError]] = {}
    shared = []
    for one in error_classes():
        owner = owners.setdefault(one.code, one)
        if not issubclass(one, owner):
            shared.append((one.code, owner.__qualname__, one.__qualname__))
    assert shared == []


def test_every_message_of_an_error_has_an_error() -> None:
    """A message under `error.` whose code no class and no line of code names is stale."""
    classes = {one.code for one in error_classes()}
    literals = {
        node.value
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    codes = {key.removeprefix("error.") for key in catalogue("en") if key.startswith("error.")}
    assert codes - classes - literals == set()


def test_every_key_that_code_names_exists() -> None:
    """`text("…")` and `say("…")` name keys that exist; a built key has at least one."""
    keys = set(catalogue(DEFAULT_LOCALE))
    missing = []
    for place, node in calls():
        if called(node) not in SPEAKERS or not node.args:
            continue
        key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if key.value not in keys and "." in key.value:
                missing.append((place, key.value))
        elif isinstance(key, ast.JoinedStr) and isinstance(key.values[0], ast.Constant):
            start = str(key.values[0].value)
            if not any(one.startswith(start) for one in keys):
                missing.append((place, f"{start}…"))
    assert missing == []


def test_an_error_is_raised_with_what_its_message_needs() -> None:
    """Each call of an error class passes every placeholder of that error's message."""
    needs = {
        one.__name__: placeholders(catalogue(DEFAULT_LOCALE)[f"error.{one.code}"])
        for one in error_classes()
        if one.__init__ is EtudeError.__init__ and f"error.{one.code}" in catalogue("en")
    }
    lacking = []
    for place, node in calls():
        name = called(node)
        if name not in needs or any(word.arg is None for word in node.keywords):
            continue
        absent = needs[name] - {word.arg for word in node.keywords}
        if absent:
            lacking.append((place, name, sorted(absent)))
    assert lacking == []


def test_a_message_is_filled_in() -> None:
    """`text` puts the parameters into the message of the language asked for."""
    shown = text("error.COMMAND_NEEDS_EXTRA", "zh-CN", extra="server", install="pip install x")
    assert "server" in shown
    assert shown.endswith("pip install x")
