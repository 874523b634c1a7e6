"""Training on a made-up corpus, with engines that answer from the sound alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from etude.assess.corpus import read_corpus
from etude.assess.errors import (
    TrainingDataFewError,
    TrainingDataInvalidError,
    TrainingDataUnknownError,
)
from etude.assess.listening import Heard
from etude.assess.model_file import load_model
from etude.assess.table import TABLE, Table
from etude.assess.training import Answers, Trained, train
from etude.files import Files
from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.recognise import Encoding, Recognised, TokenScore

RATE = 16_000
SPEAKERS, EACH = 12, 6
WORDS = {"the": ("DH", "AH"), "cat": ("K", "AE", "T"), "sat": ("S", "AE", "T")}
TEXTS = ("the cat", "the cat sat", "cat sat", "sat the cat")


class Engines:
    """Hears worse, the quieter the sound: a learner in one number."""

    def __init__(self) -> None:
        self.asked = 0

    def hear(self, expected_text: str | None, audio: np.ndarray, sample_rate: int) -> Heard:
        assert sample_rate == RATE
        self.asked += 1
        text = expected_text or ""
        level = float(np.abs(audio).max())
        random = np.random.default_rng(len(audio))
        frames = (random.normal(size=(80, 16)) + level).astype("<f2")
        tokens = tuple(TokenScore(f" {word}", min(1.0, level)) for word in text.split())
        recognised = Recognised(
            text=text,
            language="en",
            engine="e/1",
            model="m/1",
            no_speech_probability=0.1,
            tokens=tokens,
            expected_tokens=tokens,
            encoding=Encoding(frame_ms=20, width=16, values=frames.tobytes()),
        )
        return Heard(
            samples=audio, recognised=recognised, alignment=_aligned(text, level), aligned=True
        )


def _aligned(text: str, level: float) -> Alignment:
    words, start_ms = [], 100
    for index, word in enumerate(text.split()):
        phones = tuple(
            AlignedPhone(name, start_ms + 80 * place, 80, -20 * (1 - level))
            for place, name in enumerate(WORDS[word])
        )
        length = 80 * len(phones)
        words.append(
            AlignedWord(
                text=word,
                index=index,
                start_ms=start_ms,
                duration_ms=length,
                score=0.0,
                phones=phones,
                guessed=False,
            )
        )
        start_ms += length + 40
    return Alignment(words=tuple(words), duration_ms=1600, engine="a/1", model="s/1")


def line(number: int, level: float) -> Mapping[str, Any]:
    text = TEXTS[number % len(TEXTS)]
    points = round(10 * level, 1)
    return {
        "id": f"u{number:03}",
        "file": f"u{number:03}.wav",
        "text": text.upper(),
        "speaker": f"s{number // EACH:02}",
        "child": number % 2 == 0,
        "sentence_mean": {"accuracy": points, "fluency": points, "total": points},
        "words": [
            {
                "text": word.upper(),
                "accuracy": points,
                "phones": [f"{name}0" for name in WORDS[word]],
                "phones_accuracy": [2.0] * len(WORDS[word]),
            }
            for word in text.split()
        ],
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(3)
    lines = []
    for number in range(SPEAKERS * EACH):
        level = float(random.uniform(0.3, 0.99))
        times = np.arange(25_600 + number) / RATE
        sound = level * np.sin(2 * np.pi * 200 * times)
        soundfile.write(folder / f"u{number:03}.wav", sound, RATE, subtype="PCM_16")
        lines.append(json.dumps(line(number, level)))
    (folder / "scores.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def trained(corpus: Path, work: Path | None, engines: Engines) -> Trained:
    answers = Answers(work, engines, Files())
    return train(read_corpus([corpus]), answers, lambda *_: None)


def test_the_same_corpus_gives_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    """Two trainings agree to the byte, and the second asks no engine for what is kept."""
    first = trained(corpus, tmp_path, Engines())
    engines = Engines()
    again = trained(corpus, tmp_path, engines)
    assert engines.asked == 0
    assert again == first
    assert trained(corpus, None, Engines()) == first


def test_a_trained_model_can_be_read_and_agrees(corpus: Path, tmp_path: Path) -> None:
    """The three files are whole; a learner in one number is recognised."""
    made = trained(corpus, None, Engines())
    made.write(tmp_path, Files())
    model = load_model(tmp_path)
    assert model.card == made.card
    assert made.card.figures["total"]["pearson"] > 0.9
    table = Table.decoded((tmp_path / TABLE).read_bytes())
    assert len(table.ids) == SPEAKERS * EACH
    assert made.card.trained_on["speakers"] == SPEAKERS


def test_no_sample_of_a_recording_is_kept(corpus: Path) -> None:
    """The table has a number a column for each utterance, and no text or path of the corpus."""
    table = Table.decoded(trained(corpus, None, Engines()).table)
    assert table.features.shape == (len(table.ids), len(table.names))
    assert not any("wav" in one for one in table.ids)


def test_too_few_are_refused(corpus: Path) -> None:
    """A handful of utterances cannot be split by speaker."""
    few = read_corpus([corpus])[:20]
    with pytest.raises(TrainingDataFewError):
        train(few, Answers(None, Engines(), Files()), lambda *_: None)


@pytest.mark.parametrize(
    "change",
    [
        {"sentence_mean": {"accuracy": 5}},
        {"sentence_mean": {"accuracy": 11, "fluency": 5, "total": 5}},
        {"file": "../elsewhere.wav"},
        {"speaker": "a name with spaces"},
        {"text": ""},
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, change: Mapping[str, Any]) -> None:
    """A line that breaks a rule is refused with its number."""
    lines = [json.dumps(line(0, 0.5)), json.dumps({**line(1, 0.5), **change})]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    with pytest.raises(TrainingDataInvalidError) as caught:
        read_corpus([tmp_path])
    assert caught.value.params["line"] == 2


def test_a_folder_without_scores_is_named(tmp_path: Path) -> None:
    """A folder that is no corpus is a typed error."""
    with pytest.raises(TrainingDataUnknownError):
        read_corpus([tmp_path])
