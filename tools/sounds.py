"""Make the sounds that ship: the prompts, the clips of the sample lessons, a sample course's.

Needs espeak-ng (Debian: `apt install espeak-ng`), `etude[server]` and pypinyin, because the
Mandarin voice of Debian's espeak-ng misreads characters: it gets pinyin with tones. The texts are
those of the catalogues (`prompt.<name>`), the `.txt` files of the sample lessons and the sample
course; run it after changing one: `.venv/bin/python tools/sounds.py`. Only what this script made
ships: tones computed here, and the speech of espeak-ng's formant synthesiser, which holds no
recording of a person.
"""  # noqa: INP001 - a script beside the package

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile
import soxr
from pypinyin import Style, lazy_pinyin

from etude.authoring.reading import read_material
from etude.authoring.samples import sample
from etude.cli.app import run
from etude.i18n import LOCALES, text
from etude.practice.prompts import SOUNDS, sound_name
from etude.practice.records import Prompt
from etude.speech.audio import Pcm
from etude.speech.loudness import measure

PACKAGE: Final = Path(__file__).parents[1] / "src" / "etude" / "practice"
COURSES: Final = PACKAGE.parent / "authoring" / "samples"
SPOKEN_COURSE: Final = "everyday-english.txt"
RATE: Final = 24_000
AUDIBLE: Final = 0.005
LOUDNESS_LUFS: Final = -20.0
VOICES: Final = {"en": "en-us", "zh-CN": "cmn-latn-pinyin"}
WORDS_A_MINUTE: Final = {"en": "140", "zh-CN": "160"}
LANGUAGE_OF_APP: Final = {"chinese_reading": "zh-CN"}
PUNCTUATION: Final = str.maketrans("，。！？", ",.!?")  # noqa: RUF001 - Chinese punctuation
CHIMES_HZ: Final = {
    Prompt.GREETING: (523.25, 783.99),
    Prompt.FIXED_ANSWER: (659.26, 659.26),
    Prompt.NO_LESSON: (783.99, 523.25),
    Prompt.RIGHT_ANSWER: (659.26, 783.99),
    Prompt.OTHER_ANSWER: (587.33, 587.33),
}

Wave = Any  # a one-dimensional array of float64


def spoken(words: str, locale: str) -> Wave:
    """Let espeak-ng speak."""
    program = shutil.which("espeak-ng")
    if program is None:
        message = "espeak-ng is not installed (Debian: apt install espeak-ng)"
        raise SystemExit(message)
    if locale == "zh-CN":
        syllables = lazy_pinyin(words, style=Style.TONE3, neutral_tone_with_five=True)
        words = " ".join(syllables).translate(PUNCTUATION)
    voice = ["-v", VOICES[locale], "-s", WORDS_A_MINUTE[locale], "--stdout"]
    made = subprocess.run(  # noqa: S603 - a program of the system, with our own words
        [program, *voice], input=words.encode(), capture_output=True, check=True
    )
    wave, rate = soundfile.read(io.BytesIO(made.stdout))
    loud = np.flatnonzero(np.abs(wave) > AUDIBLE)
    trimmed = wave[loud[0] : loud[-1] + rate // 20]
    return soxr.resample(trimmed, rate, RATE)


def chime(tones_hz: tuple[float, ...]) -> Wave:
    """Return soft tones, one after the other."""
    time_s = np.arange(RATE // 6) / RATE
    shape = np.exp(-12 * time_s) * np.minimum(1, time_s / 0.005)
    return np.concatenate([0.4 * shape * np.sin(2 * np.pi * hertz * time_s) for hertz in tones_hz])


def levelled(wave: Wave) -> Wave:
    """Bring a sound to the same loudness as the others, without clipping."""
    pcm = Pcm(sample_rate=RATE, samples=np.rint(wave * 32767).astype(np.int16).tobytes())
    loudness = measure(pcm).integrated_lufs
    if loudness is None:
        message = "espeak-ng said nothing"
        raise SystemExit(message)
    gain = 10 ** ((LOUDNESS_LUFS - loudness) / 20)
    return wave * min(gain, 0.89 / np.abs(wave).max())


def padded(wave: Wave) -> Wave:
    """Put 80 ms of silence around."""
    silence = np.zeros(RATE * 8 // 100)
    return np.concatenate([silence, wave, silence])


def write_clip(path: Path, words: Wave, level: float) -> None:
    """Write what was spoken as an MP3; the higher the level, the smaller."""
    soundfile.write(
        path,
        padded(levelled(words)),
        RATE,
        format="MP3",
        subtype="MPEG_LAYER_III",
        bitrate_mode="CONSTANT",  # libsndfile's decoder complains of its own variable rate
        compression_level=level,
    )


def make_course() -> None:
    """Write the recordings of the sample course whose sentences are English, by their number."""
    syllabus = read_material([sample(SPOKEN_COURSE)])
    folder = COURSES / Path(SPOKEN_COURSE).stem
    folder.mkdir(exist_ok=True)
    sentences = [fact.text for unit in syllabus.units for fact in unit.sentences]
    for number, words in enumerate(sentences, 1):
        write_clip(folder / f"{number:02}.mp3", spoken(words, "en"), 0.9)


def make_prompts() -> None:
    """Write `sounds/<prompt>.<locale>.ogg`."""
    for prompt in Prompt:
        for locale in LOCALES:
            words = levelled(spoken(text(f"prompt.{prompt}", locale), locale))
            wave = padded(np.concatenate([chime(CHIMES_HZ[prompt]), words]))
            path = PACKAGE / SOUNDS / sound_name(prompt, locale)
            soundfile.write(path, wave, RATE, format="OGG", subtype="OPUS")


def make_lessons() -> None:
    """Write `NN.mp3` beside each `NN.txt` of the sample lessons, and check each lesson."""
    samples = PACKAGE / "sample_lessons"
    texts = sorted(samples.rglob("*.txt"))
    for path in texts:
        app_id = path.relative_to(samples).parts[0]
        words = spoken(path.read_text("utf-8"), LANGUAGE_OF_APP.get(app_id, "en"))
        write_clip(path.with_suffix(".mp3"), words, 0.8)
    for folder in sorted({path.parent for path in texts}):
        if run(["lesson", "build", str(folder)]):
            raise SystemExit(1)


if __name__ == "__main__":
    make_prompts()
    make_lessons()
    make_course()
