import io
import struct
from collections.abc import Iterator, Sequence

import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from etude.practice import recordings
from etude.speech.opus import OpusEncoder


def tone(frame_ms: int, count: int) -> list[bytes]:
    """Packets of a loud square wave, as a microphone sends them."""
    encoder = OpusEncoder(16_000, frame_ms)
    samples = 16 * frame_ms
    wave = [8000 if place // 40 % 2 else -8000 for place in range(samples)]
    pcm = struct.pack(f"<{samples}h", *wave)
    return [encoder.encode(pcm) for _ in range(count)]


def pages(data: bytes) -> Iterator[tuple[int, int, int, list[bytes]]]:
    """Take a file apart page by page (RFC 3533 §6): flags, granule, checksum, whole packets."""
    at = 0
    while at < len(data):
        magic, version, flags, granule, _, _, crc, count = struct.unpack_from(
            "<4sBBqIIIB", data, at
        )
        assert (magic, version) == (b"OggS", 0)
        lacing = data[at + 27 : at + 27 + count]
        at, packets, packet = at + 27 + count, [], b""
        for length in lacing:
            packet += data[at : at + length]
            at += length
            if length < 255:
                packets.append(packet)
                packet = b""
        assert packet == b"", "a packet goes on in the next page"
        yield flags, granule, crc, packets


def slow_crc(page: bytes) -> int:
    """The checksum of RFC 3533 bit by bit, as the document says it."""
    crc = 0
    for byte in page:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if crc >> 31 else crc << 1
    return crc


@pytest.mark.parametrize("frame_ms", [20, 40, 60])
def test_another_reader_hears_what_was_recorded(frame_ms: int) -> None:
    """libsndfile decodes the file to the declared length, and it is as loud as it was."""
    made = recordings.record(tone(frame_ms, 50))
    assert made is not None
    sound, rate = soundfile.read(io.BytesIO(made.data))
    assert rate == 16_000
    assert len(sound) / rate == pytest.approx(50 * frame_ms / 1000 - 0.0065, abs=0.0001)
    assert made.duration_ms == int(50 * frame_ms - 6.5)
    assert (made.unusable, abs(sound).mean() > 0.1) == (0, True)


def test_frames_may_change_in_the_middle() -> None:
    """The length is the sum of what each packet says of itself."""
    made = recordings.record([*tone(60, 10), *tone(20, 7)])
    assert made is not None
    sound, rate = soundfile.read(io.BytesIO(made.data))
    assert len(sound) / rate == pytest.approx(0.6 + 0.14 - 0.0065, abs=0.0001)


def test_what_is_no_opus_is_left_out_and_counted() -> None:
    """Empty, cut off, over 120 ms: the rest is there."""
    made = recordings.record([b"", *tone(60, 5), b"\x03", b"\x1b\x3f"])
    assert made is not None
    assert made.unusable == 3
    assert recordings.record([b"", b"\x03"]) is None
    assert recordings.record([]) is None


def test_each_page_says_what_it_must() -> None:
    """Head and tags alone on theirs, granules that grow, an end, and a true checksum."""
    made = recordings.record(tone(60, 40))
    assert made is not None
    found = list(pages(made.data))
    assert [flags for flags, _, _, _ in found] == [2, 0, *([0] * (len(found) - 3)), 4]
    (head,), (tags,) = found[0][3], found[1][3]
    assert head[:12] == b"OpusHead\x01\x01" + struct.pack("<H", 312)
    assert tags[:8] == b"OpusTags"
    granules = [granule for _, granule, _, _ in found]
    assert granules[:2] == [0, 0]
    assert granules[2:] == sorted(granules[2:])
    assert granules[-1] == 40 * 60 * 48
    at = 0
    for _, _, crc, packets in found:
        lacing = sum(len(packet) // 255 + 1 for packet in packets)
        end = at + 27 + lacing + sum(map(len, packets))
        page = made.data[at : at + 22] + bytes(4) + made.data[at + 26 : end]
        assert crc == slow_crc(page)
        at = end


PACKETS = st.lists(
    st.builds(
        lambda toc, body: bytes([toc]) + body,
        st.sampled_from([0x00, 0x08, 0x58, 0x78, 0x80, 0xF8]),
        st.one_of(st.binary(max_size=700), st.sampled_from([bytes(254), bytes(509), bytes(255)])),
    ),
    min_size=1,
    max_size=300,
)


@given(PACKETS)
def test_every_packet_comes_back_as_it_went_in(packets: Sequence[bytes]) -> None:
    """In order and byte for byte, whatever its length; no page is over its limits."""
    made = recordings.record(packets)
    assert made is not None
    found = list(pages(made.data))
    assert [packet for _, _, _, page in found[2:] for packet in page] == list(packets)
    assert all(sum(len(one) // 255 + 1 for one in page) <= 255 for _, _, _, page in found)
