"""Turns assessed, and the events that say so."""

import msgspec
import numpy as np
import pytest

from etude.assess.gate import (
    FEATURES,
    FEATURES_WITHOUT_TOKENS,
    fit_gate,
    held_out_rates,
    off_task,
)
from etude.assess.high_voices import SLOWED
from etude.assess.listening import Heard, Told
from etude.assess.metrics import Metric, load_methods
from etude.assess.model_file import FIRST, card_of, models_folder
from etude.assess.spoken_methods import (
    pause_ratio_v1,
    pronunciation_v1,
    pronunciation_v2,
    speech_rate_v1,
)
from etude.assess.table import shipped_table
from etude.assess.turns import assess_turn, event_line, lacking
from etude.events.ndjson import decode_line
from etude.sessions import turns
from etude.sessions.batch import server_batch
from etude.sessions.turns import VERDICTS, Turn
from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.recognise import Encoding, Recognised, TokenScore

RATE = 16_000
TEXT = "the cat"
MODEL = "whisper-tiny.en/e3a0b1a3fb99"
ACOUSTIC = "pocketsphinx-en-us/c8ee076bb5ae"
FIRST_VALUE = 8.0
"""What the first version said of `heard()` before there was a second one."""
VOICE = ("speech_rate_v2", "pause_ratio_v2")
SPOKEN = ("speech_rate_v1", "pause_ratio_v1", "pronunciation_v2", *VOICE)


def voiced(seconds: float = 2.0) -> np.ndarray:
    times = np.arange(int(RATE * seconds)) / RATE
    return (0.2 * np.sin(2 * np.pi * 220 * times)).astype(np.float32)


def alignment(score: float = -8.0) -> Alignment:
    def word(text: str, index: int, start_ms: int, *names: str) -> AlignedWord:
        phones = tuple(
            AlignedPhone(name, start_ms + 100 * place, 100, score)
            for place, name in enumerate(names)
        )
        return AlignedWord(
            text=text,
            index=index,
            start_ms=start_ms,
            duration_ms=100 * len(names),
            score=score * len(names),
            phones=phones,
            guessed=False,
        )

    words = (word("the", 0, 300, "DH", "AH"), word("cat", 1, 900, "K", "AE", "T"))
    return Alignment(words=words, duration_ms=2000, engine="pocketsphinx/5.1.1", model=ACOUSTIC)


def heard(
    text: str = TEXT, *, found: bool = True, no_speech: float = 0.1, model: str = MODEL
) -> Heard:
    frames = np.random.default_rng(3).normal(size=(100, 384)).astype("<f2")
    recognised = Recognised(
        text=text,
        language="en",
        engine="ctranslate2/4.8.5",
        model=model,
        no_speech_probability=no_speech,
        tokens=(TokenScore(" the", 0.9), TokenScore(" cat", 0.9)),
        expected_tokens=(TokenScore(" the", 0.9), TokenScore(" cat", 0.9)),
        encoding=Encoding(frame_ms=20, width=384, values=frames.tobytes()),
    )
    return Heard(
        samples=voiced(),
        recognised=recognised,
        alignment=alignment() if found else None,
        aligned=True,
    )


def without_tokens(what: Heard) -> Heard:
    """Return it as a server hears: a text, and no probabilities."""
    assert what.recognised is not None
    told = msgspec.structs.replace(
        what.recognised,
        engine="http/1",
        no_speech_probability=None,
        tokens=None,
        expected_tokens=None,
        encoding=None,
    )
    return msgspec.structs.replace(what, recognised=told)


def of(method: object, what: Heard) -> Metric:
    found = method.heard_by(Told(what))(TEXT, None, voiced(), RATE)
    assert len(found) == 1
    metric: Metric = found[0]
    return metric


def test_pace_and_pauses_come_from_the_alignment() -> None:
    """Two words in 0.9 s, with one pause of 0.4 s between them."""
    assert of(speech_rate_v1, heard()).value == pytest.approx(2 * 60 / 0.9, abs=0.1)
    pauses = of(pause_ratio_v1, heard())
    assert pauses.value == pytest.approx(0.4 / 0.9, abs=1e-3)
    assert pauses.detail["longest_s"] == 0.4


def test_the_first_version_can_be_made_again_but_not_from_a_slowed_voice() -> None:
    """An old number stays what it was; where the engines heard another sound, there is none."""
    first = of(pronunciation_v1, heard())
    assert (first.method, first.value) == ("pronunciation_v1", FIRST_VALUE)
    assert first.detail["assessor"] == "pronunciation_v1/" + card_of(models_folder(), FIRST).version
    slowed = msgspec.structs.replace(heard(), pace=SLOWED)
    refused = of(pronunciation_v1, slowed)
    assert (refused.value, refused.detail["reason"]) == (None, "no_engine")
    again = of(pronunciation_v2, slowed)
    assert again.value is not None
    assert again.detail["heard_at"] == "0.87"


def test_pronunciation_carries_interval_versions_and_words() -> None:
    """The number comes with its interval, the engines and models, and a value for each word."""
    metric = of(pronunciation_v2, heard())
    assert metric.value is not None
    low, high = metric.detail["interval"]
    assert 0 <= low <= metric.value <= high <= 10
    assert metric.detail["model"] == MODEL
    assert metric.detail["assessor"].startswith("pronunciation_v2/")
    assert [word["index"] for word in metric.detail["words"]] == [0, 1]


def test_the_same_turn_gives_the_same_bytes() -> None:
    """Assessed twice, a turn makes the same lines: live or swept, alone or under load."""
    methods = load_methods()
    turn = Turn(step_index=3, expected_text=TEXT)
    lines = [
        [
            event_line("s", 3, 1.5, one)
            for one in assess_turn(turn, methods, heard(), voiced(), RATE)
        ]
        for _ in range(2)
    ]
    assert lines[0] == lines[1]
    assert len(set(lines[0])) == len(lines[0]) == 10


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (heard(found=False, text="something else"), "off_task"),
        (heard(found=False, text="", no_speech=0.9), "no_speech"),
        (heard(found=False, text="you", no_speech=0.9), "no_speech"),
        (heard(model="whisper-base/1"), "no_engine"),
        (Heard(samples=voiced(), recognised=None, alignment=None, aligned=False), "no_engine"),
    ],
)
def test_what_was_not_read_gets_no_number(what: Heard, reason: str) -> None:
    """Silence, another sentence and a missing engine leave null and the reason."""
    metric = of(pronunciation_v2, what)
    assert metric.value is None
    assert metric.detail["reason"] == reason


def test_silence_is_no_speech_whatever_the_engines_say() -> None:
    """Below the level of any voice, an alignment is an accident."""
    assert off_task(heard(), {}, {}, -75.0) == "no_speech"
    assert off_task(heard(), {}, {}, -30.0) is None


def test_the_gate_tells_right_from_wrong_texts() -> None:
    """What is learnt from both lets nearly all right ones through, and few wrong ones."""
    random = np.random.default_rng(5)
    right = random.normal(0.0, 1.0, (400, len(FEATURES)))
    wrong = random.normal(-3.0, 1.0, (60, len(FEATURES)))
    gate = fit_gate(right, wrong)
    assert gate["wrong_let_through"] <= 0.05
    value = sum(gate[name] * 0.0 for name in FEATURES)
    assert value >= gate["threshold"]
    assert fit_gate(right[:2], wrong) == {}


def test_a_gate_is_judged_by_speakers_that_it_was_not_learnt_from() -> None:
    """Few right ones are lost, few wrong ones let through; too few to learn from tell nothing."""
    random = np.random.default_rng(5)
    names = FEATURES_WITHOUT_TOKENS
    right = random.normal(0.0, 1.0, (400, len(names))), np.arange(400) % 10
    wrong = random.normal(-3.0, 1.0, (60, len(names))), np.arange(60) % 10
    rates = held_out_rates(right, wrong, names)
    assert 0.0 < rates["held_out_right_lost"] <= 0.04
    assert rates["held_out_wrong_let_through"] <= 0.05
    assert held_out_rates(right, (wrong[0][:5], wrong[1][:5]), names) == {}


@pytest.mark.parametrize("tells", [True, False])
def test_rightly_read_sentences_are_lost_as_rarely_without_probabilities(*, tells: bool) -> None:
    """Two in a hundred of the table that ships, whether or not the recogniser tells tokens."""
    table, card = shipped_table(), card_of(models_folder())
    gate = card.gate if tells else card.gate_without_tokens
    what = heard() if tells else without_tokens(heard())
    rows = [dict(zip(table.names, row, strict=True)) for row in table.features.tolist()]
    lost = np.mean([off_task(what, row, gate, -30.0) is not None for row in rows])
    assert 0.015 <= lost <= 0.025
    assert gate["held_out_right_lost"] <= 0.025
    assert gate["held_out_wrong_let_through"] <= 0.08


def test_a_server_that_hears_what_was_read_costs_the_turn_its_pronunciation_only() -> None:
    """Pace and pauses come from the alignment, texts are compared; pronunciation has no engine."""
    turn = Turn(step_index=0, expected_text=TEXT)
    what = without_tokens(heard(model="sense-voice"))
    found = {one.method: one for one in assess_turn(turn, load_methods(), what, voiced(), RATE)}
    read = ("speech_rate_v1", "pause_ratio_v1", "text_similarity_v0", "wer_v1", "completeness_v1")
    assert all(found[name].value is not None for name in read)
    assert found["pronunciation_v2"].detail["reason"] == "no_engine"


@pytest.mark.parametrize("text", ["we went home", "a dog ran", ""])
def test_a_server_that_hears_another_sentence_leaves_no_number(text: str) -> None:
    """Even where the aligner finds a path: one that fits as badly as those of wrong texts do."""
    turn = Turn(step_index=0, expected_text=TEXT)
    misfit = msgspec.structs.replace(heard(text), alignment=alignment(-54.0))
    for what in (misfit, heard(text, found=False)):
        told = assess_turn(turn, load_methods(), without_tokens(what), voiced(), RATE)
        spoken = [one for one in told if one.method != "input_quality_v1"]
        assert {one.value for one in spoken} == {None}
        reasons = {one.method: one.detail["reason"] for one in spoken}
        assert {reasons.pop(name) for name in VOICE} == {"no_engine"}  # there is no detector
        assert set(reasons.values()) <= {"off_task", "no_speech"}


def test_a_recording_without_engines_leaves_what_can_be_said() -> None:
    """Quality is measured, texts are compared if there is one, spoken methods say `no_engine`."""
    turn = Turn(step_index=0, expected_text=TEXT, asr_text="the cat")
    found = {one.method: one for one in assess_turn(turn, load_methods(), None, voiced(), RATE)}
    assert {name for name, one in found.items() if one.value is None} == set(SPOKEN)
    assert found["text_similarity_v0"].value == 1.0
    silent = Turn(step_index=0, expected_text=TEXT)
    without_text = assess_turn(silent, load_methods(), None, voiced(), RATE)
    assert {one.method for one in without_text} == {"input_quality_v1", *SPOKEN}


def test_what_was_said_already_is_not_said_again() -> None:
    """A method with a metric is left alone; one that had no engine is asked again."""
    methods = load_methods()
    said = turns.Metric(method="cer_v1", value=0.0)
    failed = turns.Metric(method="pronunciation_v2", value=None, detail={"reason": "no_engine"})
    off = turns.Metric(method="speech_rate_v1", value=None, detail={"reason": "off_task"})
    turn = Turn(step_index=0, metrics=(said, failed, off))
    missing = lacking(turn, methods)
    assert "cer_v1" not in missing
    assert "speech_rate_v1" not in missing
    assert "pronunciation_v2" in missing


def test_long_recordings_are_not_measured() -> None:
    """Sound beyond one window is named as too long instead of being measured in part."""
    sound = np.zeros(26 * RATE, dtype=np.float32)
    metric = pronunciation_v2.heard_by(Told(heard()))(TEXT, None, sound, RATE)[0]
    assert metric.detail["reason"] == "too_long"


def test_a_metric_is_an_event_of_the_server() -> None:
    """The line is valid, names its turn, and no member of it is a verdict."""
    metric = of(pronunciation_v2, heard())
    line = event_line("session-1", 4, 2.0, metric)
    assert server_batch([line], "session-1").rejected == 0
    event = decode_line(line)
    assert (event.event_type, event.signal) == ("audio_observation", "pronunciation_v2")
    assert event.correlation_id == "session-1:4"
    assert event.is_server_made
    value = msgspec.to_builtins(event.value)
    assert turns.without_verdicts(value) == value
    assert not {word for word in VERDICTS if f'"{word}"'.encode() in line}


def test_another_step_or_content_is_another_event() -> None:
    """Ids come from session, step, time and content."""
    metric = Metric(method="cer_v1", value=0.25)
    lines = {
        event_line("a", 1, 0.0, metric),
        event_line("b", 1, 0.0, metric),
        event_line("a", 2, 0.0, metric),
        event_line("a", 1, 0.0, Metric(method="cer_v1", value=0.5)),
    }
    assert len({decode_line(line).event_id for line in lines}) == 4
