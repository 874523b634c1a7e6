"""A clip is encoded once: kept in memory while it is used, and on disk by what it holds.

The key is the SHA-256 of the file and the parameters of the encoding, so a renamed or copied clip
is not encoded again, and a changed one is. The disk holds nothing that cannot be made again: an
entry that is damaged or cannot be written costs time, never a clip. No entry is ever removed here;
the folder may be deleted at any time.
"""

import hashlib
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import structlog

from etude.files import Files, replace_file
from etude.speech.audio import Pcm, read_audio
from etude.speech.clips import EncodedClip
from etude.speech.errors import AudioUnknownError, AudioUnreadableError
from etude.speech.opus import OpusEncoder

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""Six hours of speech."""

_log = structlog.get_logger(__name__)

# Part of the key: raise it when the same file would be encoded otherwise.
_ENCODING: Final = "opus-1"
_MAGIC: Final = b"etude clip 1\n"
_DIGEST_BYTES: Final = 32
_SAMPLE_BYTES: Final = 2
_PACKET_OVERHEAD_BYTES: Final = 40
_KNOWN_FILES: Final = 20_000
_TRIES: Final = 3

_Identity = tuple[int, int, int]


class ClipCache:
    """Clips by file. Lives as long as the process; every method may be called from any thread."""

    def __init__(
        self,
        folder: Path | None,
        sample_rate: int = 24_000,
        frame_ms: int = 60,
        *,
        memory_bytes: int = MEMORY_BYTES,
        files: Files | None = None,
    ) -> None:
        """Nothing is read or made yet.

        Args:
            folder: where encoded clips are kept; None = in memory only.
            sample_rate: of the packets, in Hz.
            frame_ms: what each packet lasts.
            memory_bytes: how much is kept for the next use. A clip that somebody holds stays
                beyond it.
            files: the disk.
        """
        self._folder = folder
        self._sample_rate = sample_rate
        self._frame_ms = frame_ms
        self._memory_bytes = memory_bytes
        self._files = files or Files()
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[_Identity, str]] = OrderedDict()
        self._recent: OrderedDict[str, EncodedClip] = OrderedDict()
        self._recent_bytes = 0
        self._alive: WeakValueDictionary[str, EncodedClip] = WeakValueDictionary()

    def encode(self, path: Path) -> EncodedClip:
        """Return the clip of a file: from memory, from disk, or encoded now. Works on the disk.

        Raises:
            AudioUnknownError, AudioUnreadableError, AudioEmptyError, AudioTooLongError: `path` is
                no clip.
            SoundLibraryMissingError: what reads or encodes it is not there.
        """
        for _ in range(_TRIES):
            identity = _identity(path)
            key = self._key(path, identity)
            clip = self._in_memory(key) or self._on_disk(key)
            encoded = clip or self._encode(path)
            if _identity(path) != identity:  # replaced meanwhile: key and sound may differ
                continue
            if clip is None:
                self._keep_on_disk(key, encoded)
            self._keep(path, identity, key, encoded)
            return encoded
        raise AudioUnreadableError(file=path.name, reason="it keeps changing")

    def ready(self, path: Path) -> EncodedClip | None:
        """Return the clip that `encode` made last of the file, if it is in memory. No disk."""
        with self._lock:
            known = self._known.get(path)
        return None if known is None else self._in_memory(known[1])

    def _key(self, path: Path, identity: _Identity) -> str:
        with self._lock:
            known = self._known.get(path)
        if known is not None and known[0] == identity:
            return known[1]
        return f"{_sha256(path)}-{self._sample_rate}-{self._frame_ms}-{_ENCODING}"

    def _encode(self, path: Path) -> EncodedClip:
        return encode_clip(read_audio(path, self._sample_rate), self._frame_ms)

    def _in_memory(self, key: str) -> EncodedClip | None:
        with self._lock:
            clip = self._alive.get(key)
            if key in self._recent:
                self._recent.move_to_end(key)
        return clip

    def _keep(self, path: Path, identity: _Identity, key: str, clip: EncodedClip) -> None:
        with self._lock:
            self._known[path] = (identity, key)
            self._known.move_to_end(path)
            while len(self._known) > _KNOWN_FILES:
                self._known.popitem(last=False)
            self._alive[key] = clip
            if key not in self._recent:
                self._recent_bytes += _size_bytes(clip)
            self._recent[key] = clip
            self._recent.move_to_end(key)
            while self._recent_bytes > self._memory_bytes and self._recent:
                _, oldest = self._recent.popitem(last=False)
                self._recent_bytes -= _size_bytes(oldest)

    def _entry(self, folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key}.clip"

    def _on_disk(self, key: str) -> EncodedClip | None:
        if self._folder is None:
            return None
        entry = self._entry(self._folder, key)
        try:
            data = entry.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain("clip.unreadable", key, error)
            return None
        clip = _unpack(data)
        if clip is None or (clip.sample_rate, clip.frame_ms) != (self._sample_rate, self._frame_ms):
            _log.warning(
                "a kept clip is damaged; encoding it again", action="clip.damaged", key=key
            )
            return None
        return clip

    def _keep_on_disk(self, key: str, clip: EncodedClip) -> None:
        if self._folder is None:
            return
        entry = self._entry(self._folder, key)
        try:
            self._files.make_folder(entry.parent)
            replace_file(self._files, entry, _pack(clip))
        except OSError as error:
            self._complain("clip.not_kept", key, error)

    def _complain(self, action: str, key: str, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        _log.warning("the cache of clips does not work", action=action, key=key, reason=reason)


def encode_clip(pcm: Pcm, frame_ms: int = 60) -> EncodedClip:
    """Encode sound; silence fills the last packet and the encoder's delay, so no end is cut off.

    Raises:
        OpusFormatError: Opus has not the sound's rate, or no such frame.
        SoundLibraryMissingError: libopus is not there.
    """
    encoder = OpusEncoder(pcm.sample_rate, frame_ms)
    size = encoder.frame_samples * _SAMPLE_BYTES
    needed = len(pcm.samples) + encoder.delay_samples * _SAMPLE_BYTES
    padded = pcm.samples.ljust(-(-needed // size) * size, b"\0")
    packets = (encoder.encode(padded[at : at + size]) for at in range(0, len(padded), size))
    return EncodedClip(
        packets=tuple(packets),
        frame_ms=frame_ms,
        sample_rate=pcm.sample_rate,
        duration_ms=pcm.duration_ms,
    )


def _pack(clip: EncodedClip) -> bytes:
    body = msgspec.msgpack.encode(clip)
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpack(data: bytes) -> EncodedClip | None:
    """Return the clip of an entry, None if the entry is not whole."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        return None
    try:
        return msgspec.msgpack.decode(body, type=EncodedClip)
    except msgspec.MsgspecError:  # whole, but of another version of ours
        return None


def _size_bytes(clip: EncodedClip) -> int:
    return sum(len(packet) + _PACKET_OVERHEAD_BYTES for packet in clip.packets)


def _identity(path: Path) -> _Identity:
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise AudioUnknownError(file=path.name) from error
    except OSError as error:
        raise AudioUnreadableError(file=path.name, reason=error.strerror or "?") from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise AudioUnreadableError(file=path.name, reason=error.strerror or "?") from error
