"""What can be wrong with a lesson before anybody hears it. Pure: names, texts and measures in.

An error stops the lesson from being built: a device would skip a clip, play them in another order,
or have nothing to compare. A warning is for a person to listen to and decide.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from statistics import median
from typing import Final

import msgspec

from etude.i18n import text
from etude.practice.lesson_folders import TEXT_SUFFIX, byte_order
from etude.speech.audio import SUFFIXES
from etude.speech.loudness import Loudness

MANIFEST: Final = "lesson.json"
LONGEST_TEXT: Final = 2_000
"""Characters; some two minutes of speech."""
SHORT_MS: Final = 300
QUIET_LUFS: Final = -35.0
"""Speech is recorded at -16 to -24; what a toy's loudspeaker can still bring out."""
UNEVEN_LU: Final = 6.0
"""From the lesson's median: from one clip to the next it sounds like another distance."""
CLIPPED_RATIO: Final = 0.001

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BOM: Final = b"\xef\xbb\xbf"


class Severity(StrEnum):
    """Whether a finding stops the lesson from being built."""

    ERROR = "error"
    WARNING = "warning"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to mend or to look at; `params` fill in `lesson.finding.<code>`."""

    severity: Severity
    code: str
    file: str
    params: Mapping[str, str | float] = {}

    def message(self, locale: str) -> str:
        """Return the sentence that a person reads."""
        return text(f"lesson.finding.{self.code}", locale, file=self.file, **self.params)


class Sound(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a clip."""

    name: str
    sha256: str
    duration_ms: int
    loudness: Loudness


def error(code: str, file: str, **params: str | float) -> Finding:
    """Return a finding that stops the build."""
    return Finding(severity=Severity.ERROR, code=code, file=file, params=params)


def warning(code: str, file: str, **params: str | float) -> Finding:
    """Return a finding that does not."""
    return Finding(severity=Severity.WARNING, code=code, file=file, params=params)


def is_clip(name: str) -> bool:
    """Whether a file is a clip by its name."""
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def is_text(name: str) -> bool:
    """Whether a file is a clip's text by its name."""
    return PurePosixPath(name).suffix == TEXT_SUFFIX


def name_findings(names: Sequence[str]) -> Iterator[Finding]:
    """Look at the names of a folder's visible files: pairs, clashes, numbers."""
    clips = sorted(filter(is_clip, names), key=byte_order)
    texts = sorted(filter(is_text, names), key=byte_order)
    yield from _unpaired(clips, texts)
    yield from _clashes(names, clips)
    yield from _numbers(clips)
    for name in names:
        if not (is_clip(name) or is_text(name) or name == MANIFEST):
            yield warning("file_ignored", name)


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def _unpaired(clips: Sequence[str], texts: Sequence[str]) -> Iterator[Finding]:
    with_text, with_clip = set(map(_stem, texts)), set(map(_stem, clips))
    for clip in clips:
        if _stem(clip) not in with_text:
            yield error("text_missing", clip, wanted=_stem(clip) + TEXT_SUFFIX)
    for name in texts:
        if _stem(name) not in with_clip:
            yield error("audio_missing", name, wanted=f"{_stem(name)}.mp3")


def _clashes(names: Iterable[str], clips: Iterable[str]) -> Iterator[Finding]:
    """Name what a card (FAT: no difference of case) or a text cannot tell apart."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[name.casefold()].append(name)
    for first, *others in alike.values():
        for other in others:
            yield error("name_clash", other, other=first)
    by_stem: defaultdict[str, list[str]] = defaultdict(list)
    for clip in clips:
        by_stem[_stem(clip)].append(clip)
    for first, *others in by_stem.values():
        for other in others:
            if other.casefold() != first.casefold():
                yield error("two_clips_one_text", other, other=first)


def _numbers(clips: Sequence[str]) -> Iterator[Finding]:
    numbered = [clip for clip in clips if re.fullmatch(r"[0-9]+", _stem(clip))]
    for clip in clips:
        if clip not in numbered:
            yield warning("name_not_numbered", clip)
    for clip in numbered:
        if len(_stem(clip)) != len(_stem(numbered[0])):
            yield error("number_width", clip, other=numbered[0])
    present = {int(_stem(clip)) for clip in numbered}
    for clip in numbered:
        number = int(_stem(clip))
        if number > 1 and number - 1 not in present:
            yield warning("number_missing", clip, number=number - 1)


def text_findings(name: str, data: bytes) -> Iterator[Finding]:
    """Look at the bytes of a text."""
    try:
        words = data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        yield error("text_not_utf8", name, byte=wrong.start + 1)
        return
    if data.startswith(_BOM):
        yield warning("text_bom", name)
    shown = words.removeprefix("\ufeff").strip()
    if not shown:
        yield error("text_empty", name)
    if len(shown) > LONGEST_TEXT:
        yield error("text_too_long", name, characters=len(shown), limit=LONGEST_TEXT)
    if _CONTROL.search(shown):
        yield warning("text_control", name)


def sound_findings(sounds: Sequence[Sound]) -> Iterator[Finding]:
    """Look at the measures of all clips: length, loudness, and each against the others."""
    heard = [one.loudness.integrated_lufs for one in sounds]
    usual = median([lufs for lufs in heard if lufs is not None] or [0.0])
    first_with: dict[str, str] = {}
    for sound in sounds:
        yield from _of_one(sound, usual)
        first = first_with.setdefault(sound.sha256, sound.name)
        if first != sound.name:
            yield warning("audio_twice", sound.name, other=first)


def _of_one(sound: Sound, usual_lufs: float) -> Iterator[Finding]:
    if sound.duration_ms < SHORT_MS:
        yield warning("audio_short", sound.name, duration_ms=sound.duration_ms)
    if sound.loudness.clipped_ratio > CLIPPED_RATIO:
        percent = round(sound.loudness.clipped_ratio * 100, 1)
        yield warning("audio_clipped", sound.name, percent=percent)
    lufs = sound.loudness.integrated_lufs
    if lufs is None:
        yield error("audio_silent", sound.name)
    elif lufs < QUIET_LUFS:
        yield warning("audio_quiet", sound.name, lufs=round(lufs, 1), least=QUIET_LUFS)
    elif abs(lufs - usual_lufs) > UNEVEN_LU:
        yield warning("audio_uneven", sound.name, lufs=round(lufs, 1), usual=round(usual_lufs, 1))
