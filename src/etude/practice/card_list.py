"""What a device says is on its card: the text that `self.mp3.get_list` answers, read leniently.

No page fixes its form, and boards differ: a JSON list of paths, a list of objects with a path or a
name and a folder, an object around either, or plain lines with numbers and sizes. Whatever it is,
it comes from outside: bounded in size, depth and count, and no path leads out of the card.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from etude.speech.audio import SUFFIXES

LONGEST_TEXT: Final = 256 * 1024
MOST_PATHS: Final = 4_000
LONGEST_PATH: Final = 255

_DEEPEST: Final = 6
_NAMES: Final = ("path", "full_path", "file_path", "file", "name", "filename", "file_name")
_FOLDERS: Final = ("dir", "folder", "directory", "parent")
_SUFFIX: Final = "|".join(sorted(suffix[1:] for suffix in SUFFIXES))
# A number or bullet, then a path up to the first suffix at which something ends. Possessive, so
# that no line takes longer than its length.
_IN_LINE: Final = re.compile(
    r"(?:^|(?<=[,;|]))\s*+(?:\d++\s*+[.):]\s++|[-*•]\s++)?+[\"']?+"
    rf"([^\s,;|\"'][^,;|\"']*?\.(?:{_SUFFIX}))(?=$|[\s,;|\"'(])",
    re.IGNORECASE,
)


def card_paths(text: str) -> tuple[str, ...]:
    """Return the paths of the audio files in the answer of `self.mp3.get_list`, in its order.

    Separators are `/`; repeated ones are dropped. What is no audio file, hidden, longer than 255
    characters or has `..` in it is left out; more than 4,000 paths or 256 Ki characters are cut.
    """
    cut = text[:LONGEST_TEXT]
    try:
        found = _in_json(msgspec.json.decode(cut.encode("utf-8", "replace")), "", 0)
    except (msgspec.DecodeError, RecursionError):
        found = _in_lines(cut)
    paths: dict[str, None] = {}
    for one in found:
        path = _cleaned(one)
        if path is not None:
            paths[path] = None
        if len(paths) >= MOST_PATHS:
            break
    return tuple(paths)


def _in_json(value: Any, folder: str, depth: int) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        # A string among others is a path; a string that is the whole answer may hold lines.
        yield from [_joined(folder, value)] if depth else _in_lines(value)
    elif isinstance(value, list):
        for one in value:
            yield from _in_json(one, folder, depth + 1)
    elif isinstance(value, dict):
        yield from _in_object(value, folder, depth)


def _in_object(value: Mapping[str, Any], folder: str, depth: int) -> Iterator[str]:
    within = next((value[key] for key in _FOLDERS if isinstance(value.get(key), str)), folder)
    named = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if named is not None:
        yield _joined(within, named)
    for key, one in value.items():
        if isinstance(one, list | dict):
            # `{"/app/task/lessons/unit01": ["01.mp3"]}`: the key is the folder.
            yield from _in_json(one, key if "/" in key else within, depth + 1)


def _joined(folder: str, name: str) -> str:
    return name if not folder or "/" in name else f"{folder}/{name}"


def _in_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for found in _IN_LINE.finditer(line[: 4 * LONGEST_PATH]):
            yield found.group(1)


def _cleaned(path: str) -> str | None:
    """Return a path as the card's own, None if it is none that a clip may have."""
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or any(part.startswith(".") for part in parts) or not path.isprintable():
        return None
    if not parts[-1].lower().endswith(tuple(SUFFIXES)):
        return None
    cleaned = "/" + "/".join(parts)
    return cleaned if len(cleaned) <= LONGEST_PATH else None
