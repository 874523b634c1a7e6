"""Speak the clips that a lesson lacks, from its texts: only when somebody asks for it.

What is made is an MP3 beside its text, with a note inside it of which voice has made it: the note
goes wherever the file goes, and `lesson.json` shows it. What was spoken once is kept, by what was
said and by whom, because a voice says nothing the same way twice.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.files import Files, replace_file
from etude.practice.lesson_build import CheckedLesson, reason
from etude.practice.lesson_errors import LessonUnwritableError, LessonVoiceLanguageError
from etude.practice.lesson_findings import Finding, Severity
from etude.practice.lesson_folders import read_text
from etude.practice.lesson_voice import SpokenBy, note_of
from etude.speech.audio import resampled
from etude.speech.mp3 import encode_mp3
from etude.speech.recognise import EngineCard, base_language
from etude.speech.synthesise import Speech, Synthesiser, levelled

AUDIO_MISSING: Final = "audio_missing"
SUFFIX: Final = ".mp3"

# Part of the key of what is kept: raise it when the same speech would be written otherwise.
_RECIPE: Final = "mp3-1"
_RATE: Final = 24_000
_CLIP_MODE: Final = 0o644
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

_log = structlog.get_logger(__name__)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A text without a clip."""

    clip: Path
    text: str
    language: str


def lines_to_speak(checked: CheckedLesson, language: str | None = None) -> tuple[Line, ...]:
    """Return what a lesson lacks, in its order; nothing if a voice would not make it whole.

    Args:
        checked: the lesson. With errors of another kind it has to be mended first.
        language: of all texts; None = `zh` where there are Chinese characters, else `en`.
    """
    if any(one.severity is Severity.ERROR and not _is_missing(one) for one in checked.findings):
        return ()
    return tuple(_lines(checked, language))


def _lines(checked: CheckedLesson, language: str | None) -> Iterator[Line]:
    for finding in filter(_is_missing, checked.findings):
        file = checked.folder / finding.file
        words = read_text(file)
        if words:
            found = language or language_of(words)
            yield Line(clip=file.with_suffix(SUFFIX), text=words, language=found)


def _is_missing(finding: Finding) -> bool:
    return finding.code == AUDIO_MISSING


def language_of(words: str) -> str:
    """Return `zh` for a text with Chinese characters, else `en`."""
    return "zh" if _HAN.search(words) else "en"


def speak_lines(
    lines: tuple[Line, ...],
    voice: Synthesiser,
    kept: Path | None,
    files: Files,
    told: Callable[[Line, int], None] = lambda *_: None,
) -> int:
    """Make the clips of `lines`; return how many were spoken now and not taken from what is kept.

    Each clip is written whole or not at all. Who is interrupted goes on by calling it again.

    Args:
        lines: from `lines_to_speak`.
        voice: the configured one.
        kept: where spoken clips are kept; None = nowhere.
        files: the disk.
        told: called before each clip with its line and its number from 1.

    Raises:
        LessonVoiceLanguageError: the voice does not know a language; nothing was spoken.
        LessonUnwritableError: the disk did not take a clip.
        SpeechTextError, SpeechEngineError, SpeechServerError: the voice failed.
    """
    _require_languages(lines, voice.card)
    spoken = 0
    for number, line in enumerate(lines, 1):
        told(line, number)
        entry = None if kept is None else kept / f"{_key(line, voice.card)}{SUFFIX}"
        data = _read(entry)
        if data is None:
            said = voice.synthesise(line.text, language=line.language)
            data = _as_mp3(said)
            spoken += 1
            _keep(entry, data, files)
        _write(line.clip, data, files)
    return spoken


def _require_languages(lines: tuple[Line, ...], card: EngineCard) -> None:
    """Refuse before anything is spoken: half a lesson in the wrong voice helps nobody."""
    for line in lines:
        if "*" not in card.languages and base_language(line.language) not in card.languages:
            known = ", ".join(card.languages)
            missing = [one.clip.name for one in lines if one.language == line.language]
            raise LessonVoiceLanguageError(
                language=line.language, model=card.model, known=known, clips=", ".join(missing)
            )


def _key(line: Line, card: EngineCard) -> str:
    made_of = (line.text, base_language(line.language), card.engine, card.model, _RECIPE)
    return hashlib.sha256(msgspec.json.encode(made_of)).hexdigest()


def _as_mp3(said: Speech) -> bytes:
    by = SpokenBy(
        engine=said.engine,
        model=said.model,
        language=said.language,
        licence=said.licence,
        notice=said.notice,
    )
    return encode_mp3(levelled(resampled(said.sound, _RATE)), note_of(by))


def _read(entry: Path | None) -> bytes | None:
    try:
        return None if entry is None else entry.read_bytes()
    except OSError:
        return None


def _keep(entry: Path | None, data: bytes, files: Files) -> None:
    if entry is None:
        return
    try:
        files.make_folder(entry.parent)
        replace_file(files, entry, data)
    except OSError as wrong:
        _log.warning("a clip is not kept", action="lesson.not_kept", reason=reason(wrong))


def _write(clip: Path, data: bytes, files: Files) -> None:
    try:
        replace_file(files, clip, data, _CLIP_MODE)
    except OSError as wrong:
        raise LessonUnwritableError(path=str(clip), reason=reason(wrong)) from wrong
