"""sherpa-onnx itself, with models of a few numbers in its real forms: loud and soft are words.

No model of a person's speech is small enough for a repository. These go through everything that
is ours and the library's: the list, verification, loading, features, decoding, the lexicon.
"""

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from etude.cli.speech import app
from etude.files import Files
from etude.speech.adding import NewModel, add_model
from etude.speech.audio import Pcm, floats, from_floats
from etude.speech.check import run_check, words_kept
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.errors import (
    ModelChangedError,
    ModelExistsError,
    ModelFolderError,
    ModelListInvalidError,
    SpeechLanguageError,
    SpeechTextError,
)
from etude.speech.pool import SpeechPool

onnx = pytest.importorskip("onnx", reason="SHERPA NOT TESTED: install onnx")
pytest.importorskip("sherpa_onnx", reason="SHERPA NOT TESTED: install etude[sherpa]")

RATE = 16_000
FEATURES = 80
STACKED = 7 * FEATURES
SPECIAL = ("<|zh|>", "<|NEUTRAL|>", "<|Speech|>", "<|woitn|>")
RECOGNISERS = ("sherpa-sense-voice", "sherpa-paraformer", "sherpa-zipformer-ctc")


def noise(level: float, seconds: float = 2.0) -> Pcm:
    drawn = np.random.default_rng(1).normal(size=int(seconds * RATE)) * level
    return from_floats(np.clip(drawn, -1, 1).astype(np.float32), RATE)


SILENT, SOFT, LOUD = noise(0.0), noise(0.01), noise(0.3)


def save(
    path: Path,
    nodes: Sequence[Any],
    inputs: dict[str, tuple[str, list[Any]]],
    output: tuple[str, list[Any]],
    constants: dict[str, Any],
    meta: dict[str, object],
    also: dict[str, tuple[str, list[Any]]] | None = None,
) -> None:
    """Write a network as sherpa-onnx reads them: what it must know stands in the metadata."""
    kinds = {
        "f": onnx.TensorProto.FLOAT,
        "i": onnx.TensorProto.INT32,
        "l": onnx.TensorProto.INT64,
    }

    def value(name: str, shape: tuple[str, list[Any]]) -> Any:
        return onnx.helper.make_tensor_value_info(name, kinds[shape[0]], shape[1])

    graph = onnx.helper.make_graph(
        list(nodes),
        "toy",
        [value(name, shape) for name, shape in inputs.items()],
        [value("out", output), *(value(name, shape) for name, shape in (also or {}).items())],
        [onnx.numpy_helper.from_array(np.asarray(what), name) for name, what in constants.items()],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8
    )
    onnx.helper.set_model_props(model, {key: str(what) for key, what in meta.items()})
    onnx.save(model, str(path))


def words(width: int, count: int, soft: int) -> dict[str, Any]:
    """Return weights by which the mean of the features chooses nothing, or one of two words."""
    weights = np.zeros((width, count), np.float32)
    bias = np.zeros(count, np.float32)
    weights[:, soft], weights[:, soft + 1] = 1 / width, 2 / width
    bias[soft], bias[soft + 1] = 8, 9.5
    return {"weights": weights, "bias": bias}


def tokens(folder: Path, names: Sequence[str]) -> int:
    lines = (f"{name} {number}\n" for number, name in enumerate(names))
    (folder / "tokens.txt").write_text("".join(lines), "utf-8")
    return len(names)


make = onnx.helper.make_node
UNMOVED = {"neg_mean": ",".join(["0"] * STACKED), "inv_stddev": ",".join(["1"] * STACKED)}
STACK = {"lfr_window_size": 7, "lfr_window_shift": 6, "version": 1, **UNMOVED}


def sense_voice(folder: Path) -> None:
    count = tokens(folder, ("<blk>", *SPECIAL, "你", "好"))
    head = np.zeros((1, 4, count), np.float32)
    for frame in range(4):
        head[0, frame, frame + 1] = 1
    languages = {"lang_auto": 0, "lang_zh": 3, "lang_en": 4, "lang_yue": 7}
    more = {"lang_ja": 11, "lang_ko": 12, "with_itn": 14, "without_itn": 15}
    save(
        folder / "model.onnx",
        (
            make("MatMul", ["x", "weights"], ["m"]),
            make("Add", ["m", "bias"], ["frames"]),
            make("Concat", ["head", "frames"], ["out"], axis=1),
        ),
        {
            "x": ("f", [1, None, STACKED]),
            "x_length": ("i", [1]),
            "language": ("i", [1]),
            "text_norm": ("i", [1]),
        },
        ("f", [1, None, count]),
        {"head": head, **words(STACKED, count, 5)},
        {"vocab_size": count, "normalize_samples": 1, **STACK, **languages, **more},
    )


def paraformer(folder: Path) -> None:
    count = tokens(folder, ("<blank>", "<s>", "</s>", "你", "好", "<unk>"))
    save(
        folder / "model.onnx",
        (
            make("ReduceMean", ["speech"], ["mean"], axes=[1], keepdims=1),
            make("MatMul", ["mean", "weights"], ["m"]),
            make("Add", ["m", "bias"], ["out"]),
            make("Identity", ["one"], ["token_num"]),
        ),
        {"speech": ("f", [1, None, STACKED]), "speech_lengths": ("i", [1])},
        ("f", [1, 1, count]),
        # its samples are 16-bit numbers, so all is louder by 10 nats a filter
        {"one": np.array([1], np.int32), **louder(words(STACKED, count, 3))},
        {"model_type": "paraformer", "vocab_size": count, **STACK},
        also={"token_num": ("i", [1])},
    )


def louder(chosen: dict[str, Any]) -> dict[str, Any]:
    by = 2 * np.log(32_768)
    lowered = chosen["bias"] - by * chosen["weights"].sum(axis=0)
    return {"weights": chosen["weights"], "bias": lowered.astype(np.float32)}


def zipformer_ctc(folder: Path) -> None:
    count = tokens(folder, ("<blk>", "<sos/eos>", "<unk>", "你", "好"))
    save(
        folder / "model.onnx",
        (
            make("MatMul", ["x", "weights"], ["m"]),
            make("Add", ["m", "bias"], ["l"]),
            make("LogSoftmax", ["l"], ["out"], axis=2),
            make("Identity", ["x_lens"], ["out_lens"]),
        ),
        {"x": ("f", [1, None, FEATURES]), "x_lens": ("l", [1])},
        ("f", [1, None, count]),
        words(FEATURES, count, 3),
        {"model_type": "zipformer2_ctc", "version": 1, "model_author": "k2-fsa", "comment": "toy"},
        also={"out_lens": ("l", [1])},
    )


def vits(folder: Path) -> None:
    """Write a voice that hums 0.1 s a token."""
    tokens(folder, ("_", "n", "i3", "h", "ao3", "sil", "eos", "sp"))
    (folder / "lexicon.txt").write_text("你 n i3\n好 h ao3\n", "utf-8")
    save(
        folder / "model.onnx",
        (
            make("Cast", ["x_length"], ["count"], to=onnx.TensorProto.FLOAT),
            make("Mul", ["count", "samples"], ["n0"]),
            make("Mul", ["n0", "length_scale"], ["n1"]),
            make("Squeeze", ["n1"], ["n"]),
            make("Range", ["zero", "n", "step"], ["time"]),
            make("Mul", ["time", "turn"], ["angle"]),
            make("Sin", ["angle"], ["sine"]),
            make("Mul", ["sine", "half"], ["soft"]),
            make("Unsqueeze", ["soft", "axes"], ["out"]),
        ),
        {
            "x": ("l", [1, None]),
            "x_length": ("l", [1]),
            "noise_scale": ("f", [1]),
            "length_scale": ("f", [1]),
            "noise_scale_w": ("f", [1]),
        },
        ("f", [1, 1, None]),
        {
            "samples": np.float32(RATE / 10),
            "zero": np.float32(0),
            "step": np.float32(1),
            "turn": np.float32(2 * np.pi * 220 / RATE),
            "half": np.float32(0.5),
            "axes": np.array([0, 1], np.int64),
        },
        {
            "model_type": "vits",
            "comment": "icefall",
            "language": "Chinese",
            "add_blank": 0,
            "n_speakers": 0,
            "sample_rate": RATE,
            "punctuation": "",
        },
    )


MAKERS: dict[str, Callable[[Path], None]] = {
    "sherpa-sense-voice": sense_voice,
    "sherpa-paraformer": paraformer,
    "sherpa-zipformer-ctc": zipformer_ctc,
    "sherpa-vits": vits,
}


def new_model(source: Path, form: str, **changes: object) -> NewModel:
    said: dict[str, Any] = {
        "folder": source,
        "model_id": "own",
        "format": form,
        "languages": ("zh",),
        "licence": "Apache-2.0",
        "origin": "https://example.org/own",
        **changes,
    }
    return NewModel(**said)


def placed(tmp_path: Path, form: str, model_id: str = "own") -> Path:
    """Make a model of a form, add it; return `<data>/models`."""
    folder = tmp_path / "downloads" / model_id
    folder.mkdir(parents=True)
    MAKERS[form](folder)
    models = tmp_path / "models"
    add_model(new_model(folder, form, model_id=model_id), models, Files())
    return models


@pytest.mark.parametrize("form", RECOGNISERS)
def test_a_model_on_disk_recognises(tmp_path: Path, form: str) -> None:
    """Added from a folder, chosen by its id: soft and loud are told apart, silence is nothing."""
    recogniser = Engines(
        SpeechOptions(models=placed(tmp_path, form), recogniser="own")
    ).recogniser()
    heard = [
        recogniser.recognise(sound, language="zh-CN", expected_text="好").text
        for sound in (SOFT, LOUD)
    ]
    assert heard == ["你", "好"]
    assert recogniser.recognise(SILENT, language="zh").text == ""
    assert recogniser.card.engine.startswith("sherpa-onnx/")
    assert recogniser.card.model.startswith("own/")
    with pytest.raises(SpeechLanguageError):
        recogniser.recognise(LOUD, language="fr")


def test_long_sound_is_heard_in_pieces(tmp_path: Path) -> None:
    """A minute of sound is heard from beginning to end, and no sound at all is no fault."""
    models = placed(tmp_path, "sherpa-zipformer-ctc")
    recogniser = Engines(SpeechOptions(models=models, recogniser="own")).recogniser()
    long = Pcm(sample_rate=RATE, samples=(LOUD.samples * 30))
    assert recogniser.recognise(long, language="zh").text.split() == ["好"] * 3
    assert recogniser.recognise(Pcm(sample_rate=RATE, samples=b""), language="zh").text == ""


def test_a_voice_on_disk_speaks(tmp_path: Path) -> None:
    """A Chinese sentence becomes sound by the lexicon, slower when it is asked to be."""
    models = placed(tmp_path, "sherpa-vits")
    voice = Engines(SpeechOptions(models=models, voice="own")).synthesiser()
    spoken = voice.synthesise("你好", language="zh-CN")
    slower = voice.synthesise("你好", language="zh", rate=0.5)
    assert spoken.sound.duration_ms > 300
    assert slower.sound.duration_ms == pytest.approx(2 * spoken.sound.duration_ms, rel=0.05)
    assert np.abs(floats(spoken.sound)).max() > 0.05
    assert (spoken.licence, spoken.model.partition("/")[0]) == ("Apache-2.0", "own")
    for text in ("", "。"):
        with pytest.raises(SpeechTextError):
            voice.synthesise(text, language="zh")
    with pytest.raises(SpeechLanguageError):
        voice.synthesise("hello", language="en")


def test_the_pool_hears_with_it_beside_the_engines_that_ship(tmp_path: Path) -> None:
    """In a process that has two runtimes of ONNX loaded, both work, and numbers are the same."""
    models = placed(tmp_path, "sherpa-sense-voice")
    options = SpeechOptions(models=models, recogniser="own")
    alone = Engines(options).recogniser().recognise(LOUD, language="zh")
    with SpeechPool(options, processes=1) as pool:
        spoken = pool.synthesise("Well read!", language="en").result(timeout=120)
        heard = pool.recognise(LOUD, language="zh").result(timeout=120)
    assert heard == alone
    assert spoken.sound.duration_ms > 200


def test_the_check_tells_what_chinese_it_can(tmp_path: Path) -> None:
    """With a Chinese recogniser and voice the round trip is in Chinese."""
    models = placed(tmp_path, "sherpa-sense-voice", "ears")
    placed(tmp_path, "sherpa-vits", "mouth")
    report = run_check(Engines(SpeechOptions(models=models, recogniser="ears", voice="mouth")))
    chinese = next(one for one in report.languages if one.language == "zh")
    assert (chinese.recognise, chinese.synthesise, chinese.align) == (True, True, False)
    assert report.round_trip is not None
    assert report.round_trip.said.startswith("今天")
    assert report.round_trip.aligned is None
    assert not report.is_sound  # a hum is no speech: said, and not hidden


def test_words_of_chinese_are_its_characters() -> None:
    """Half of the characters that came back are half."""
    assert words_kept("今天很好。", "今天") == 0.5
    assert words_kept("The cat sat.", "the cat") == pytest.approx(2 / 3)


def test_another_form_than_was_said_is_refused(tmp_path: Path) -> None:
    """The library would end the process: the refusal says why, and the list stays as it was."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    paraformer(folder)
    with pytest.raises(ModelFolderError) as caught:
        add_model(new_model(folder, "sherpa-sense-voice"), tmp_path / "models", Files())
    assert "metadata" in str(caught.value.params["reason"])
    assert not (tmp_path / "models").exists()


def test_a_changed_file_is_never_loaded(tmp_path: Path) -> None:
    """What was tried is what is loaded."""
    models = placed(tmp_path, "sherpa-paraformer")
    (tmp_path / "downloads" / "own" / "tokens.txt").write_text("x 0\n", "utf-8")
    with pytest.raises(ModelChangedError):
        Engines(SpeechOptions(models=models, recogniser="own")).recogniser()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": "kaldi"}, ModelFolderError),
        ({"weights": "missing.onnx"}, ModelFolderError),
        ({"model_id": "With Space"}, ModelListInvalidError),
        ({"folder": Path("/nonexistent")}, ModelFolderError),
    ],
)
def test_what_is_said_wrongly_is_refused(
    tmp_path: Path, change: dict[str, object], error: type[Exception]
) -> None:
    """Nothing is written."""
    folder = tmp_path / "own"
    folder.mkdir()
    sense_voice(folder)
    with pytest.raises(error):
        add_model(new_model(folder, "sherpa-sense-voice", **change), tmp_path / "models", Files())
    assert not (tmp_path / "models").exists()


def test_two_weights_need_a_choice(tmp_path: Path) -> None:
    """Of `model.onnx` and `model.int8.onnx` a person says which; the list names only that."""
    folder = tmp_path / "own"
    folder.mkdir()
    sense_voice(folder)
    (folder / "model.int8.onnx").write_bytes((folder / "model.onnx").read_bytes())
    with pytest.raises(ModelFolderError):
        add_model(new_model(folder, "sherpa-sense-voice"), tmp_path / "models", Files())
    chosen = new_model(folder, "sherpa-sense-voice", weights="model.int8.onnx")
    card = add_model(chosen, tmp_path / "models", Files())
    assert sorted(card.files) == ["model.int8.onnx", "tokens.txt"]


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    """And another model of the id is refused, what a person wrote by hand stays."""
    folder = tmp_path / "own"
    folder.mkdir()
    sense_voice(folder)
    models = tmp_path / "models"
    models.mkdir()
    (models / "models.toml").write_text("# of ours\n", "utf-8")
    add = functools.partial(add_model, models=models, files=Files())
    add(new_model(folder, "sherpa-sense-voice"))
    written = (models / "models.toml").read_bytes()
    add(new_model(folder, "sherpa-sense-voice"))
    assert (models / "models.toml").read_bytes() == written
    assert written.startswith(b"# of ours\n\n")
    with pytest.raises(ModelExistsError):
        add(new_model(folder, "sherpa-sense-voice", licence="MIT"))


def test_the_command_adds_and_says_how_to_choose(tmp_path: Path) -> None:
    """`etude speech add` prints the setting; with `--json` the card."""
    folder = tmp_path / "own"
    folder.mkdir()
    sense_voice(folder)
    asked = ["add", str(folder), "--id", "own", "--format", "sherpa-sense-voice"]
    said = ["--language", "zh", "--language", "en", "--licence", "Apache-2.0"]
    where = ["--origin", "https://example.org", "--data", str(tmp_path / "data")]
    done = CliRunner().invoke(app, [*asked, *said, *where])
    assert done.exit_code == 0, done.output
    assert "ETUDE_SPEECH_RECOGNISER=own" in done.stdout
    shown = CliRunner().invoke(app, [*asked, *said, *where, "--json"])
    assert json.loads(shown.stdout)["languages"] == ["zh", "en"]
