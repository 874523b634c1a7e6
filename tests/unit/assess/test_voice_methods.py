"""Pace and pauses from the voice detector: any recording, however long, with or without a text."""

import msgspec
import numpy as np
import pytest

from etude.assess.listening import Heard, Told
from etude.assess.metrics import Metric
from etude.assess.voice_methods import pause_ratio_v2, speech_rate_v2
from etude.speech.audio import from_floats
from etude.speech.recognise import Recognised
from etude.speech.voice_activity import EnergyActivity, Span, Spoken, spoken_in

RATE = 16_000


def heard(text: str, *spans: tuple[int, int], seconds: float = 40.0) -> Heard:
    random = np.random.default_rng(2)
    samples = (0.05 * random.normal(size=int(RATE * seconds))).astype(np.float32)
    recognised = Recognised(
        text=text, language="en", engine="e/1", model="m/1", no_speech_probability=0.1
    )
    return Heard(
        samples=samples,
        recognised=recognised,
        alignment=None,
        aligned=False,
        spoken=Spoken(spans=tuple(Span(*one) for one in spans), engine="d/1", model="silero/6"),
    )


def of(method: object, what: Heard, expected: str | None = None) -> Metric:
    found = method.heard_by(Told(what))(expected, None, what.samples, RATE)
    assert len(found) == 1
    metric: Metric = found[0]
    return metric


def test_a_long_retelling_has_pace_and_pauses() -> None:
    """Forty seconds without a text: words that were heard, silence between spans."""
    what = heard(" ".join(["word"] * 60), (1000, 11_000), (13_000, 26_000), (26_500, 31_000))
    rate = of(speech_rate_v2, what)
    assert rate.value == pytest.approx(60 * 60 / 30)
    assert rate.detail["of"] == "heard"
    pauses = of(pause_ratio_v2, what)
    assert pauses.value == pytest.approx(2.5 / 30, abs=1e-4)
    assert (pauses.detail["pauses"], pauses.detail["longest_s"]) == (2, 2.0)
    assert pauses.detail["detector_model"] == "silero/6"


def test_a_long_reading_counts_what_was_heard_of_it() -> None:
    """Nobody knows whether all of a long text was read, so its words are not counted."""
    assert of(speech_rate_v2, heard("the cat", (0, 30_000)), "the cat sat").detail["words"] == 2


def test_chinese_counts_syllables() -> None:
    """Each character is a word: pace needs no aligner."""
    rate = of(speech_rate_v2, heard("小猫坐着", (0, 2000), seconds=3), "小猫坐着")
    assert rate.value == pytest.approx(120)


@pytest.mark.parametrize("spans", [(), ((100, 200),)])
def test_where_nobody_speaks_there_is_no_number(spans: tuple[tuple[int, int], ...]) -> None:
    """Nothing, or a click, is no speech; whatever the recogniser invents in it."""
    for method in (speech_rate_v2, pause_ratio_v2):
        metric = of(method, heard("you", *spans))
        assert (metric.value, metric.detail["reason"]) == (None, "no_speech")


def test_without_a_detector_there_is_no_engine() -> None:
    """A missing detector is said, and no recording at all says nothing."""
    what = msgspec.structs.replace(heard("the cat", (0, 900)), spoken=None)
    assert of(pause_ratio_v2, what).detail["reason"] == "no_engine"
    assert pause_ratio_v2("the cat", "the cat", None, 0) == []


def test_pauses_shorter_than_a_tenth_of_a_second_are_speech() -> None:
    """The detector's own frames decide; a stop of 64 ms is none, one of 0.5 s is."""
    loud = np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE).astype(np.float32) * 0.3
    quiet = np.zeros(RATE, dtype=np.float32)
    sound = np.concatenate([quiet, loud, quiet[:1024], loud, quiet[:8192], loud, quiet])
    found = spoken_in(from_floats(sound, RATE), EnergyActivity())
    assert len(found.spans) == 2
    assert found.engine == EnergyActivity.card.engine
