import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.practice.records import LONGEST_CLIP_MS, WINDOW_MIN_MS
from etude.practice.voice import is_voice, lasts_ms
from etude.practice.windows import GRACE_S, QUEUE_MS, Window, window_ms

VOICE = bytes([0x58, *range(80)])


@given(st.integers(0, LONGEST_CLIP_MS), st.floats(allow_nan=False))
def test_a_window_is_as_long_as_the_rule_says(duration_ms: int, ratio: float) -> None:
    """max(800, clamp(ratio, 1.2, 1.5) x duration), to the nearest millisecond."""
    found = window_ms(duration_ms, ratio)
    exact = max(800.0, min(max(ratio, 1.2), 1.5) * duration_ms)
    assert math.isclose(found, exact, abs_tol=0.5)


@given(st.integers(0, LONGEST_CLIP_MS), st.integers(0, LONGEST_CLIP_MS))
def test_a_longer_clip_never_has_a_shorter_window(one: int, other: int) -> None:
    """The window grows with the clip, and never falls below its minimum."""
    short, long = sorted((one, other))
    assert WINDOW_MIN_MS <= window_ms(short, 1.2) <= window_ms(long, 1.2)


@pytest.mark.parametrize(
    ("duration_ms", "ratio", "expected"),
    [(0, 1.2, 800), (666, 1.2, 800), (667, 1.2, 800), (2350, 1.2, 2820), (2000, 9.0, 3000)],
)
def test_windows_that_the_source_names(duration_ms: int, ratio: float, expected: int) -> None:
    """Short clips have 800 ms, others 1.2 times, at most 1.5 times."""
    assert window_ms(duration_ms, ratio) == expected


def test_what_is_late_still_belongs_to_the_window() -> None:
    """Until 400 ms after its end; neither before it opened nor later."""
    window = Window(0, 1000, 1200, opened_s=10.0)
    assert window.takes(10.0)
    assert window.takes(11.2 + GRACE_S - 0.001)
    assert not window.takes(9.999)
    assert not window.takes(11.2 + GRACE_S + 0.001)


def test_silence_is_kept_but_is_not_heard() -> None:
    """DTX packets and comfort noise stay in the recording; nobody spoke."""
    window = Window(0, 1000, 1200, opened_s=0.0)
    for packet in (b"\x58", b"\x58\x00", bytes([0x58] * 17)):
        window.hear(packet, 0.5)
    turn = window.turn("/a/b/lessons/c/01.mp3", None)
    assert (turn.heard, len(turn.packets)) == (False, 3)


SILENCE = b"\x58"


def test_speech_over_the_next_clip_does_not_make_a_silent_window_heard() -> None:
    """A microphone that is always on streams silence in the window, voice 60 ms after its end."""
    window = Window(0, 1000, 1200, opened_s=10.0)
    for index in range(1, 21):
        window.hear(SILENCE, 10.0 + index * 0.06)
    window.hear(SILENCE, 11.26)
    for index in range(1, 6):
        window.hear(VOICE, 11.26 + index * 0.06)
    assert not window.heard
    assert len(window.turn("", None).packets) == 26


def test_speech_that_the_device_held_back_is_heard() -> None:
    """It stalls in mid-window and sends what is missing at once, when the window has closed."""
    window = Window(0, 1000, 1200, opened_s=10.0)
    for index in range(1, 11):
        window.hear(SILENCE, 10.0 + index * 0.06)
    for _ in range(5):
        window.hear(VOICE, 11.4)
    assert window.heard


def test_speech_is_heard_where_every_packet_was_late() -> None:
    """Nothing came in time, so nothing tells how late the device is."""
    window = Window(0, 1000, 1200, opened_s=10.0)
    window.hear(VOICE, 11.3)
    assert window.heard


def test_a_network_that_comes_and_goes_does_not_move_the_end() -> None:
    """The fastest packet tells when the microphone began, whichever it is."""
    window = Window(0, 1000, 1200, opened_s=10.0)
    for index in range(1, 21):
        window.hear(SILENCE, min(11.19, 10.0 + index * 0.06 + (index % 4) * 0.05))
    window.hear(SILENCE, 11.27)
    window.hear(VOICE, 11.34)
    assert not window.heard


def test_a_window_holds_no_more_than_a_microphone_can_fill() -> None:
    """Somebody who floods the window fills no memory."""
    window = Window(0, 1000, 1200, opened_s=0.0)
    for _ in range(10_000):
        window.hear(VOICE, 0.5)
    kept = window.turn("", None).packets
    assert len(kept) * 60 <= 1200 + GRACE_S * 1000 + QUEUE_MS + 60


@pytest.mark.parametrize("packet", [b"", b"\x4b", b"\x4b\x00" + bytes(80), b"\x5b\x3f" + bytes(80)])
def test_what_is_no_opus_is_neither_kept_nor_heard(packet: bytes) -> None:
    """Empty, cut off, without frames, of more than 120 ms: it has no length, so it had no bound."""
    window = Window(0, 1000, 1200, opened_s=0.0)
    window.hear(packet, 0.5)
    assert (window.heard, window.turn("", None).packets) == (False, ())


@given(st.binary(max_size=60))
def test_any_bytes_last_a_finite_time(packet: bytes) -> None:
    """Garbage has a length, too, and never raises."""
    assert 0 <= lasts_ms(packet) <= 120
    assert is_voice(packet) == (len(packet) >= 25)
