"""Voice activity without a model: energy, beginnings and ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.speech.audio import from_floats
from etude.speech.voice_activity import (
    FRAME,
    FRAME_MS,
    SAMPLE_RATE,
    Endpointer,
    EnergyActivity,
    speech_spans,
)

QUIET = [0.0]
LOUD = [1.0]


def test_loud_after_quiet_is_speech() -> None:
    """A tone in silence is found to a frame."""
    rng = np.random.default_rng(1)
    sound = rng.normal(0, 0.001, 3 * SAMPLE_RATE).astype(np.float32)
    tone = 0.3 * np.sin(np.arange(SAMPLE_RATE) * 0.2)
    sound[SAMPLE_RATE : 2 * SAMPLE_RATE] += tone.astype(np.float32)
    (span,) = speech_spans(from_floats(sound, SAMPLE_RATE), EnergyActivity())
    assert span.start_ms == pytest.approx(1000, abs=FRAME_MS)
    assert span.end_ms == pytest.approx(2000, abs=FRAME_MS)


def test_silence_has_no_span() -> None:
    """Digital silence and even noise are nobody."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.02, SAMPLE_RATE).astype(np.float32)
    for sound in (np.zeros(SAMPLE_RATE, dtype=np.float32), noise, noise[:0]):
        assert speech_spans(from_floats(sound, SAMPLE_RATE), EnergyActivity()) == ()


def test_a_reset_forgets() -> None:
    """After `reset` the same frames give the same numbers."""
    rng = np.random.default_rng(1)
    frames = rng.normal(0, 0.1, (5, FRAME)).astype(np.float32)
    activity = EnergyActivity()
    first = [activity.push(frame) for frame in frames]
    activity.reset()
    assert [activity.push(frame) for frame in frames] == first


def test_a_word_begins_and_a_pause_ends() -> None:
    """Three likely frames begin; 800 ms of unlikely ones end, a shorter pause does not."""
    pause = 800 // FRAME_MS
    pushed = QUIET * 3 + LOUD * 3 + QUIET * (pause - 1) + LOUD + QUIET * pause
    endpointer = Endpointer()
    found = {at: said for at, one in enumerate(pushed) if (said := endpointer.push(one))}
    assert found == {5: "began", len(pushed) - 1: "ended"}


@given(st.lists(st.floats(0, 1)))
def test_beginnings_and_ends_take_turns(numbers: list[float]) -> None:
    """Whatever comes, nobody ends who did not begin."""
    endpointer = Endpointer(begin_frames=2, end_ms=64)
    said = [found for one in numbers if (found := endpointer.push(one))]
    assert said == ["began", "ended"] * (len(said) // 2) + ["began"] * (len(said) % 2)
