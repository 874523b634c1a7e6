import array
import contextlib
import math
import os
import sys
from ctypes.util import find_library
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.speech import opus
from etude.speech.errors import OpusFormatError, OpusPacketError, SoundLibraryMissingError
from etude.speech.opus import OpusDecoder, OpusEncoder, packet_ms, packet_samples
from etude.testing.waiting import run_bounded


def sine(samples: int, rate: int, hertz: float = 440.0) -> bytes:
    return array.array(
        "h", (round(8000 * math.sin(2 * math.pi * hertz * n / rate)) for n in range(samples))
    ).tobytes()


def power(pcm16: bytes) -> float:
    samples = array.array("h", pcm16)
    return math.sqrt(sum(one * one for one in samples) / len(samples))


@pytest.mark.parametrize("rate", opus.SAMPLE_RATES)
@pytest.mark.parametrize("frame_ms", opus.FRAMES_MS)
def test_a_frame_comes_back_as_long_as_it_went(rate: int, frame_ms: int) -> None:
    """Every rate and frame: the packet declares the frame's length, and decodes to as much."""
    encoder = OpusEncoder(rate, frame_ms)
    packet = encoder.encode(sine(encoder.frame_samples, rate))
    assert packet_ms(packet) == frame_ms
    assert packet_samples(packet, 16_000) == 16 * frame_ms
    assert len(OpusDecoder(16_000).decode(packet)) == 2 * 16 * frame_ms


def test_what_is_decoded_sounds_like_what_was_encoded() -> None:
    """A tone keeps its power, at about the bit rate that was asked for."""
    encoder, decoder = OpusEncoder(), OpusDecoder(24_000)
    pcm = sine(24_000 * 3, 24_000)
    size = encoder.frame_samples * 2
    packets = [encoder.encode(pcm[at : at + size]) for at in range(0, len(pcm), size)]
    heard = b"".join(decoder.decode(packet) for packet in packets)
    assert power(heard) == pytest.approx(power(pcm), rel=0.1)
    assert 50 < sum(map(len, packets)) / len(packets) < 300


def test_an_empty_packet_is_refused() -> None:
    """The library would invent 120 ms of sound for it."""
    with pytest.raises(OpusPacketError) as caught:
        OpusDecoder().decode(b"")
    assert caught.value.params["reason"] == "empty"


def test_a_silence_packet_of_one_byte_is_a_frame() -> None:
    """What stock firmware sends in silence keeps the timeline."""
    encoder = OpusEncoder(16_000)
    toc = encoder.encode(sine(960, 16_000))[:1]
    assert packet_ms(toc) == 60
    assert len(OpusDecoder(16_000).decode(toc)) == 1920


def test_garbage_is_an_error_and_leaves_the_decoder_usable() -> None:
    """A packet that is none is told apart, and the next one decodes."""
    encoder, decoder = OpusEncoder(16_000), OpusDecoder(16_000)
    good = encoder.encode(sine(960, 16_000))
    with pytest.raises(OpusPacketError):
        decoder.decode(b"\xff\xff" + b"\x55" * 40)
    assert len(decoder.decode(good)) == 1920
    decoder.reset()
    assert len(decoder.decode(good)) == 1920


@given(packet=st.binary(max_size=200))
def test_no_bytes_can_do_more_than_be_refused(packet: bytes) -> None:
    """Any bytes: at most 120 ms of sound or a typed error; what decodes is as long as declared."""
    try:
        samples = len(OpusDecoder(16_000).decode(packet)) // 2
    except OpusPacketError:
        return
    assert 0 < samples <= 1920
    assert packet_samples(packet, 16_000) == samples


@given(packet=st.binary(max_size=8))
def test_a_declared_length_is_one_that_opus_has(packet: bytes) -> None:
    """Any bytes: 2.5 to 120 ms or a typed error, without the library."""
    with contextlib.suppress(OpusPacketError):
        assert 2.5 <= packet_ms(packet) <= 120


@pytest.mark.parametrize("make", [lambda: OpusEncoder(44_100), lambda: OpusEncoder(24_000, 50)])
def test_a_rate_or_frame_that_opus_has_not_is_refused(make: object) -> None:
    """Parameters are checked before the library sees them."""
    assert callable(make)
    with pytest.raises(OpusFormatError):
        make()


def test_half_a_frame_is_refused() -> None:
    """The library would read behind the end of it."""
    with pytest.raises(OpusFormatError):
        OpusEncoder().encode(b"\0" * 100)


def test_a_missing_library_fails_at_its_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libopus, the first encoder says what to install."""

    def missing(_: str) -> ModuleType:
        message = "no libopus"
        raise RuntimeError(message)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(SoundLibraryMissingError) as caught:
        OpusEncoder()
    assert caught.value.params["install"] == "pip install 'etude[server]'"


@pytest.mark.skipif(find_library("opus") is None, reason="this machine has no libopus of its own")
def test_the_libopus_of_the_system_serves_as_well() -> None:
    """The second way: the same module with the library that the distribution keeps up to date."""
    code = (
        "from etude.speech.opus import *\n"
        "packet = OpusEncoder().encode(bytes(2880))\n"
        "assert packet_ms(packet) == 60 and len(OpusDecoder().decode(packet)) == 1920\n"
        "mapped = [line for line in open('/proc/self/maps') if '/libopus.so' in line]\n"
        "assert mapped and not any('opuslib' in line for line in mapped)"
    )
    run_bounded(
        [sys.executable, "-c", code],
        check=True,
        env=os.environ | {"OPUSLIB_NEXT_USE_SYSTEM_LIB": "1"},
    )
