"""The demo with real speech: the embedded voice reads, the engines hear and measure.

Nobody's recordings are needed, and no network: what ships with `etude[speech]` reads the course's
sentences, as a teacher would, and says what the learner says. The engines that hear run in
processes of the gateway and the worker. What is Chinese stays as it is without speech, and has no
numbers: nothing that ships speaks or hears it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from etude.assess.spoken_methods import PRONUNCIATION
from etude.authoring.material import Language
from etude.authoring.reading import read_material
from etude.authoring.samples import recordings, sample
from etude.authoring.voices import SpokenVoice
from etude.cli import terminal
from etude.cli.errors import DemoBrokenError
from etude.speech.audio import resampled
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.synthesise import Speech, Synthesiser
from etude.testing.learner_voice import SAMPLE_RATE, Voices
from etude.testing.learners_acting import Part
from etude.testing.speaking import SpokenVoices

MEASURED: Final = {
    "similarity": "text_similarity_v0",
    "pronunciation": PRONUNCIATION,
    "pauses": "pause_ratio_v2",
}
"""What is told of a turn, and the method that measures it."""
PATIENCE_S: Final = 240.0
_LOOK_S: Final = 0.5
LANGUAGE: Final[Language] = "en"
_RATE: Final = 1.05
"""Of the learner: a little quicker than the voice that is read after, to be done in the window."""

Turn = Mapping[str, Any]


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How the demo goes.

    Attributes:
        voice: the embedded one; None = sounds that ship, a learner who hums, and no engine runs.
        real_time: whether lessons take their time; else the clock jumps.
    """

    voice: Synthesiser | None = None
    real_time: bool = False

    @property
    def speaks(self) -> bool:
        """Whether there is speech to be heard and measured."""
        return self.voice is not None


def embedded_voice() -> Synthesiser:
    """Return the voice, once all that hears and measures could be loaded as well.

    Raises:
        SpeechExtraMissingError: a library of `etude[speech]` is not there.
        ModelMissingError, ModelChangedError: a model's files are not, or not what is listed.
    """
    engines = Engines(SpeechOptions())
    for load in (engines.recogniser, engines.aligner, engines.detector):
        load()  # and let go: those that work are in processes of their own
    return engines.synthesiser()


def course_sounds(name: str, way: Way) -> Mapping[str, bytes]:
    """Return the recordings of a sample's sentences by file name: the voice's, or those that ship.

    Args:
        name: of the sample; recordings of it ship.
        way: how the demo goes.
    """
    shipped = recordings(name)
    if way.voice is None:
        return shipped
    units = read_material([sample(name)], sounds=shipped.keys()).units
    voice = SpokenVoice(partial(_say, way.voice), {LANGUAGE})
    sounds: dict[str, bytes] = {}
    for number, unit in enumerate(units, 1):
        terminal.say("demo.reading", number=number, count=len(units), unit=unit.title)
        for fact in unit.sentences:
            if fact.sound is not None:
                sounds[fact.sound], _ = voice.speak(fact.text, LANGUAGE)
    return sounds


def _say(voice: Synthesiser, words: str, language: str, rate: float) -> Speech:
    return voice.synthesise(words, language=language, rate=rate)


def voices_of(parts: Sequence[Part], language: str, way: Way) -> Voices:
    """Return how the learner says `parts`: in the embedded voice, where it knows the language."""
    if way.voice is None or language != LANGUAGE:
        return Voices()
    texts = dict.fromkeys(part.text for part in parts)
    said = {text: way.voice.synthesise(text, language=LANGUAGE, rate=_RATE) for text in texts}
    return SpokenVoices({text: resampled(one.sound, SAMPLE_RATE) for text, one in said.items()})


def turns_when_measured(read: Callable[[], list[Turn]]) -> list[Turn]:
    """Wait until the engines are done with every turn that `read` returns; return them.

    Raises:
        DemoBrokenError: they never are, or there is a method that measured none of them.
    """
    until_s, told = time.monotonic() + PATIENCE_S, -1
    while True:
        turns = read()
        done = sum(PRONUNCIATION in _values(turn) for turn in turns)
        if done != told:
            terminal.say("demo.measuring", done=done, count=len(turns))
            told = done
        if done == len(turns):
            break
        _require(time.monotonic() < until_s, "metrics")
        time.sleep(_LOOK_S)
    for method in MEASURED.values():
        _require(any(_values(turn).get(method) is not None for turn in turns), method)
    return turns


def tell_measured(turns: Sequence[Turn]) -> None:
    """Tell of each turn what was heard and what was measured, and how many have no numbers."""
    measured = [turn for turn in turns if _values(turn)[PRONUNCIATION] is not None]
    for number, turn in enumerate(measured, 1):
        values = _values(turn)
        found = {name: values.get(method) for name, method in MEASURED.items()}
        told = {name: "-" if value is None else f"{value:.2f}" for name, value in found.items()}
        terminal.say("demo.measured", number=number, heard=turn["asr_text"] or "-", **told)
    terminal.say("demo.unmeasured", count=len(turns) - len(measured))


def _values(turn: Turn) -> dict[str, float | None]:
    return {one["method"]: one["value"] for one in turn["metrics"]}


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
