import os
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.files import Files
from etude.speech import clip_cache
from etude.speech.audio import Pcm
from etude.speech.clip_cache import ClipCache, encode_clip
from etude.speech.errors import AudioUnknownError, AudioUnreadableError
from etude.speech.opus import OpusDecoder, packet_ms

Tone = Callable[..., Path]


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Holds one entry for each clip that is really encoded."""
    made: list[int] = []

    def count(pcm: Pcm, frame_ms: int = 60) -> object:
        made.append(pcm.count)
        return encode_clip(pcm, frame_ms)

    monkeypatch.setattr(clip_cache, "encode_clip", count)
    return made


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.clip"))


def test_a_clip_is_what_a_device_plays(tone: Tone) -> None:
    """24 kHz, 60 ms frames, as many as the sound and the encoder's delay need."""
    clip = ClipCache(None).encode(tone(seconds=1.0))
    assert (clip.sample_rate, clip.frame_ms, clip.duration_ms) == (24_000, 60, 1_000)
    assert {packet_ms(packet) for packet in clip.packets} == {60.0}
    assert clip.packets_ms == 1_020


def test_the_end_of_a_clip_is_not_cut_off() -> None:
    """A clip that fills its frames exactly gets one more for the encoder's delay."""
    pcm = Pcm(sample_rate=24_000, samples=bytes(2 * 1440 * 5))
    clip = encode_clip(pcm)
    decoder = OpusDecoder(24_000)
    decoded = sum(len(decoder.decode(packet)) // 2 for packet in clip.packets)
    assert decoded >= pcm.count + 156  # 6.5 ms at 24 kHz


def test_a_clip_is_encoded_once(tone: Tone, tmp_path: Path, encodings: list[int]) -> None:
    """The second time it comes from memory, in another process from disk, under any name."""
    path = tone()
    cache = ClipCache(tmp_path / "cache")
    clip = cache.encode(path)
    assert cache.encode(path) is clip
    copy = tmp_path / "copy.wav"
    copy.write_bytes(path.read_bytes())
    assert ClipCache(tmp_path / "cache").encode(copy) == clip
    assert len(encodings) == 1
    assert len(entries(tmp_path / "cache")) == 1


def test_other_parameters_are_another_clip(tone: Tone, tmp_path: Path) -> None:
    """What was encoded for one hello is not sent after another."""
    path = tone()
    assert ClipCache(tmp_path / "cache").encode(path).frame_ms == 60
    other = ClipCache(tmp_path / "cache", 16_000, 20).encode(path)
    assert (other.sample_rate, other.frame_ms) == (16_000, 20)


def test_a_changed_file_is_encoded_again(tone: Tone, encodings: list[int]) -> None:
    """The key is what the file holds."""
    cache = ClipCache(None)
    before = cache.encode(tone(seconds=1.0))
    after = cache.encode(tone(seconds=2.0))
    assert (before.duration_ms, after.duration_ms) == (1_000, 2_000)
    assert len(encodings) == 2


@pytest.mark.parametrize("damage", [b"", b"etude clip 1\n", None])
def test_a_damaged_entry_is_made_again(
    tone: Tone, tmp_path: Path, encodings: list[int], damage: bytes | None
) -> None:
    """One wrong bit, or nothing left: the clip is encoded and the entry mended."""
    path = tone()
    clip = ClipCache(tmp_path / "cache").encode(path)
    (entry,) = entries(tmp_path / "cache")
    whole = entry.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    entry.write_bytes(flipped if damage is None else damage)
    assert ClipCache(tmp_path / "cache").encode(path) == clip
    assert entry.read_bytes() == whole
    assert len(encodings) == 2


def test_a_disk_that_takes_nothing_costs_no_clip(tone: Tone, tmp_path: Path) -> None:
    """The cache is not needed for playing."""

    class FullDisk(Files):
        def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            raise OSError(28, f"no space for {len(data)} bytes", path, mode)

    cache = ClipCache(tmp_path / "cache", files=FullDisk())
    assert cache.encode(tone()).duration_ms == 1_000
    assert entries(tmp_path / "cache") == []


def test_memory_is_bounded_but_keeps_what_is_held(tone: Tone) -> None:
    """The least recently used go first; a clip that somebody holds can still be had."""
    cache = ClipCache(None, memory_bytes=6_000)
    paths = [tone(f"{n}.wav", hertz=300 + 50 * n) for n in range(6)]
    held = cache.encode(paths[0])
    for path in paths[1:]:
        cache.encode(path)
    assert cache.ready(paths[0]) is held
    assert cache.ready(paths[1]) is None
    assert cache.ready(paths[-1]) is not None


def test_ready_never_looks_at_the_disk(tone: Tone, tmp_path: Path) -> None:
    """Before `encode` there is nothing, whatever the disk holds; after it, no file is needed."""
    path = tone()
    ClipCache(tmp_path / "cache").encode(path)
    cache = ClipCache(tmp_path / "cache")
    assert cache.ready(path) is None
    clip = cache.encode(path)
    path.unlink()
    assert cache.ready(path) is clip


def test_a_file_that_changes_all_the_time_is_refused(
    tone: Tone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound never gets into the cache under the key of other sound."""
    path = tone()

    def encode(pcm: Pcm, frame_ms: int = 60) -> object:
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
        return encode_clip(pcm, frame_ms)

    monkeypatch.setattr(clip_cache, "encode_clip", encode)
    with pytest.raises(AudioUnreadableError):
        ClipCache(tmp_path / "cache").encode(path)
    assert entries(tmp_path / "cache") == []


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    """The error names the clip."""
    with pytest.raises(AudioUnknownError):
        ClipCache(None).encode(tmp_path / "01.mp3")
