"""Of what kind a file is: by its ending and its first bytes, which have to agree."""

import re
from collections.abc import Mapping
from typing import Final

_PICTURES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif", "svg"})
_SOUNDS: Final = frozenset({"mp3", "wav", "ogg", "opus", "flac", "m4a"})
_FILMS: Final = frozenset({"mp4", "webm", "ogv", "m4v"})
_OF_SLOT: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("image", "background", "poster", "avatar"), _PICTURES),
    **dict.fromkeys(("sound", "speech", "clip"), _SOUNDS),
    **dict.fromkeys(("video", "prompt"), _FILMS),
}
_ISO: Final = re.compile(rb"....ftyp", re.DOTALL)
_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpg": re.compile(rb"\xff\xd8\xff"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "avif": _ISO,
    "svg": re.compile(rb"\s*<(?:svg|\?xml|!--)"),
    "mp3": re.compile(rb"ID3|\xff[\xe2-\xff]"),
    "wav": re.compile(rb"RIFF....WAVE", re.DOTALL),
    "ogg": re.compile(rb"OggS"),
    "opus": re.compile(rb"OggS"),
    "ogv": re.compile(rb"OggS"),
    "flac": re.compile(rb"fLaC"),
    "m4a": _ISO,
    "mp4": _ISO,
    "m4v": _ISO,
    "webm": re.compile(rb"\x1a\x45\xdf\xa3"),
}
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "svg": "image/svg+xml",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
    "woff2": "font/woff2",
    "woff": "font/woff",
}
_SVG_UNSAFE: Final = re.compile(
    rb"<\s*(?:script|foreignObject|iframe|embed|object|image|feImage)\b|\son[a-z]+\s*=|javascript:"
    rb"|href\s*=\s*[\"'](?!#)|url\s*\(\s*[\"']?(?!#)|@import|<!ENTITY|<\?xml-stylesheet",
    re.IGNORECASE,
)
SVG_BYTES: Final = 4 << 20


def ending_of(name: str) -> str:
    """Return the ending of a file's name, in lower case, without the dot."""
    return name.rpartition(".")[2].lower()


def is_of_kind(name: str, beginning: bytes, slot: str) -> bool:
    """Whether a file with this name and these first bytes may stand in a slot."""
    ending = ending_of(name)
    return ending in _OF_SLOT[slot] and _BEGINNINGS[ending].match(beginning) is not None


def is_plain_svg(content: bytes) -> bool:
    """Whether an SVG draws and does nothing else: no script, nothing from elsewhere."""
    return len(content) <= SVG_BYTES and _SVG_UNSAFE.search(content) is None
